"""The clock of sight: it runs exactly while both APIs were seen to answer within a fifth of the grace period."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopwatch.pools.derive import sight as sights
from loopwatch.pools.derive.sight import Sight

RESOURCES = ("leases", "machinepools")


def answered(sight: Sight, *answers: tuple[str, float]) -> Sight:
    for resource, at in answers:
        sight, _ = sights.answered(sight, resource, at)
    return sight


def test_a_process_starts_blind_and_its_clock_at_zero() -> None:
    sight = sights.begin(50, RESOURCES, 100)
    assert not sight.has(100)
    assert sight.seconds(1000) == 0


def test_one_api_alone_gives_no_sight() -> None:
    sight = answered(sights.begin(50, RESOURCES, 100), ("leases", 101), ("leases", 105))
    assert not sight.has(106)
    assert sight.seconds(106) == 0


def test_the_clock_runs_from_the_second_answer_and_stops_a_fifth_of_the_grace_after_the_older_one() -> None:
    sight = answered(sights.begin(50, RESOURCES, 100), ("leases", 101), ("machinepools", 103))
    assert sight.seconds(107) == 4
    assert sight.has(110.9)
    assert not sight.has(111)
    assert sight.seconds(500) == 111 - 103


def test_the_first_sight_of_all_ends_no_gap_and_every_later_return_does() -> None:
    sight, ended = sights.answered(answered(sights.begin(50, RESOURCES, 0), ("leases", 1)), "machinepools", 2)
    assert not ended
    sight, ended = sights.answered(sight, "leases", 100)
    assert not ended
    sight, ended = sights.answered(sight, "machinepools", 101)
    assert ended
    assert sight.seconds(101) == 11 - 2


def test_blindness_is_counted_from_the_moment_the_last_answer_stopped_to_count() -> None:
    sight = answered(sights.begin(50, RESOURCES, 0), ("leases", 5), ("machinepools", 7))
    assert sight.lost_at("leases") == 15
    assert sight.lost_at("machinepools") == 17


@given(st.lists(st.tuples(st.sampled_from(RESOURCES), st.floats(0, 30)), max_size=40), st.floats(0, 50))
def test_the_clock_equals_the_time_covered_by_answers_of_both(steps: list[tuple[str, float]], rest: float) -> None:
    """Against the definition, read literally: moments sampled every tenth of a second at which both last answers are fresh."""
    now, sight, last = 0.0, sights.begin(50, RESOURCES, 0.0), dict.fromkeys(RESOURCES, float("-inf"))
    expected = 0.0
    for resource, wait in [*steps, ("", rest)]:
        fresh_until = min(last.values()) + 10
        expected += max(min(fresh_until, now + wait) - now, 0.0)
        now += wait
        if resource:
            last[resource] = now
            sight, _ = sights.answered(sight, resource, now)
    assert abs(sight.seconds(now) - expected) < 1e-6


@given(st.lists(st.tuples(st.sampled_from(RESOURCES), st.floats(0, 30)), max_size=40))
def test_the_clock_never_runs_back_nor_faster_than_time(steps: list[tuple[str, float]]) -> None:
    now, sight = 0.0, sights.begin(50, RESOURCES, 0.0)
    for resource, wait in steps:
        before, now = sight.seconds(now), now + wait
        sight, _ = sights.answered(sight, resource, now)
        assert before - 1e-9 <= sight.seconds(now) <= before + wait + 1e-6
