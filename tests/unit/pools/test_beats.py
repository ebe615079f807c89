"""Lease against Ready, and late heartbeats: what is shown of them at each moment, whoever looks, and what blindness does to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.pools.derive import beats as states
from loopwatch.pools.derive.beats import Beats
from tests.support.observed import Seen
from tests.support.pools import lease, pool, ready_condition, renewal

UNKNOWN = ready_condition("Unknown", "MachinePoolStatusUnknown")
POOL = {"machinepool": "pool-a"}


def seen(*conditions: dict[str, object], duration: int | None = 40, with_lease: bool = True) -> Seen:
    """A pool that was renewed once since it was first seen, a moment ago."""
    made = Seen()
    made.answer()
    made.pools(pool("pool-a", *(conditions or (ready_condition(),))))
    made.leases(*([lease(duration=duration)] if with_lease else []))
    made.passes(1)
    if with_lease:
        made.renew(lease(duration=duration, renew_time=renewal(1)))
    return made


def late(here: Seen) -> float | None:
    return here.value("late_heartbeats_total", **POOL)


def test_ready_without_lease_turns_when_the_lease_has_run_out_without_any_event() -> None:
    here = seen()
    here.passes(40)
    assert here.lines("ready_without_lease") == ['ready_without_lease{machinepool="pool-a"} 0']
    here.passes(0.001)
    assert here.lines("ready_without_lease") == ['ready_without_lease{machinepool="pool-a"} 1']
    here.renew(lease(renew_time=renewal(2)))
    assert here.lines("ready_without_lease") == ['ready_without_lease{machinepool="pool-a"} 0']


@pytest.mark.parametrize("condition", [ready_condition("False"), UNKNOWN], ids=["False", "Unknown"])
def test_a_pool_that_does_not_say_it_is_ready_is_never_ready_without_a_lease(condition: dict[str, object]) -> None:
    here = seen(condition)
    here.passes(100)
    assert here.value("ready_without_lease", **POOL) == 0


def test_ready_without_any_lease_counts_as_silent_from_first_sight_for_the_default_duration() -> None:
    here = seen(with_lease=False)
    here.passes(39)
    assert here.value("ready_without_lease", **POOL) == 0
    here.passes(1.001)
    assert here.value("ready_without_lease", **POOL) == 1


def test_a_change_of_ready_is_no_heartbeat() -> None:
    """A reporter that lost its right to the Lease answers each Unknown with True, and the lifecycle takes that for progress."""
    here = seen()
    here.passes(35)
    here.pool_event(pool("pool-a", UNKNOWN))
    here.pool_event(pool("pool-a", ready_condition()))
    assert here.value("silence_seconds", **POOL) == 0
    here.passes(6)
    assert here.value("ready_without_lease", **POOL) == 1


def test_blindness_is_no_silence_and_the_first_gap_gives_the_lease_its_duration_once_more() -> None:
    here = seen()
    here.passes(35)
    here.clock.step(1000)
    assert here.value("ready_without_lease", **POOL) == 1, "the 10 s for which an answer gives sight are counted"
    here.answer()
    assert here.value("ready_without_lease", **POOL) == 0
    here.passes(40)
    assert here.value("ready_without_lease", **POOL) == 0
    here.passes(1)
    here.clock.step(1000)
    here.answer()
    assert here.value("ready_without_lease", **POOL) == 1, "gaps that recur don't hide a dead reporter"


def test_unready_but_renewed_needs_a_renewal_that_this_process_saw() -> None:
    here = Seen()
    here.answer()
    here.pools(pool("pool-a", UNKNOWN))
    here.leases(lease())
    assert here.value("unready_but_renewed", **POOL) == 0, "a Lease at first sight may be as stale as its pool"
    here.passes(10)
    here.renew(lease(renew_time=renewal(1)))
    assert here.value("unready_but_renewed", **POOL) == 1
    here.passes(39.9)
    assert here.value("unready_but_renewed", **POOL) == 1
    here.passes(0.1)
    assert here.value("unready_but_renewed", **POOL) == 0, "the Lease has run out: the reporter is as silent as Ready says"


@pytest.mark.parametrize(
    ("conditions", "shown"),
    [((ready_condition(),), 0), ((ready_condition("False", "RuntimeUnreachable"),), 1), ((UNKNOWN,), 1), (({"type": "Other"},), 1)],
    ids=["True", "False", "Unknown", "absent"],
)
def test_unready_but_renewed_by_what_ready_says(conditions: tuple[dict[str, object], ...], shown: int) -> None:
    assert seen(*conditions).value("unready_but_renewed", **POOL) == shown


def test_a_lease_that_is_made_under_our_eyes_is_a_renewal_and_one_that_is_deleted_ends_it() -> None:
    here = seen(UNKNOWN, with_lease=False)
    here.renew(lease())
    assert here.value("unready_but_renewed", **POOL) == 1
    here.lease_deleted("pool-a")
    assert here.value("unready_but_renewed", **POOL) == 0


def test_a_renew_time_that_is_taken_away_is_nobodys_heartbeat() -> None:
    here = seen(UNKNOWN)
    assert here.value("unready_but_renewed", **POOL) == 1
    here.renew(lease(renew_time=None))
    assert here.value("unready_but_renewed", **POOL) == 0


def test_a_gap_in_sight_renews_nothing() -> None:
    here = seen(UNKNOWN)
    here.passes(20)
    here.clock.step(1000)
    here.answer()
    here.passes(9.9)
    assert here.value("unready_but_renewed", **POOL) == 1, "the 10 s for which an answer gives sight are counted"
    here.passes(0.2)
    assert here.value("unready_but_renewed", **POOL) == 0


def test_never_reported_ends_with_the_first_lease_or_ready_and_does_not_come_back() -> None:
    here = Seen()
    here.pools(pool("pool-a"), pool("pool-b"), pool("pool-c", ready_condition()))
    assert here.lines("never_reported") == [], "nobody knows yet which Leases there are"
    here.leases(lease("pool-b"))
    assert sorted(here.lines("never_reported")) == [
        'never_reported{machinepool="pool-a"} 1',
        'never_reported{machinepool="pool-b"} 0',
        'never_reported{machinepool="pool-c"} 0',
    ]
    here.renew(lease("pool-a"))
    here.lease_deleted("pool-a")
    here.pool_event(pool("pool-c"))
    assert sorted(here.lines("never_reported")) == [f'never_reported{{machinepool="{name}"}} 0' for name in ("pool-a", "pool-b", "pool-c")]


def test_a_pool_made_again_has_never_reported() -> None:
    here = seen(with_lease=False)
    here.pool_event(pool("pool-a", uid="another"))
    assert here.value("never_reported", **POOL) == 1


def test_a_heartbeat_is_late_from_three_quarters_of_the_lease_on_and_once_whether_it_comes_or_not() -> None:
    here = seen()
    here.passes(30)
    assert late(here) == 0
    here.passes(0.001)
    assert late(here) == 1, "it moves when the time is over, without any event"
    here.passes(1000)
    assert late(here) == 1, "one silence, however long"
    here.renew(lease(renew_time=renewal(2)))
    assert late(here) == 1
    here.passes(31)
    here.renew(lease(renew_time=renewal(3)))
    assert late(here) == 2


def test_a_late_heartbeat_is_counted_also_where_nobody_looked_before_it_came() -> None:
    """No scrape, no timer: the event alone."""
    here = seen()
    here.passes(35)
    here.renew(lease(renew_time=renewal(2)))
    assert late(here) == 1


def test_heartbeats_in_time_are_never_late() -> None:
    here = seen()
    for number in range(2, 20):
        here.passes(30)
        here.renew(lease(renew_time=renewal(number)))
    assert late(here) == 0


def test_what_was_late_stays_counted_when_the_lease_says_another_duration() -> None:
    here = seen()
    here.passes(31)
    here.renew(lease(duration=4000, renew_time=renewal(1)))
    assert late(here) == 1
    here.passes(3100)
    assert late(here) == 1


def test_blindness_makes_no_heartbeat_late() -> None:
    here = seen()
    here.passes(15)
    here.clock.step(1000)
    here.answer()
    here.passes(30)
    assert late(here) == 0
    here.passes(1)
    assert late(here) == 1
    here.clock.step(1000)
    here.answer()
    here.passes(100)
    assert late(here) == 1, "still the same silence"


def test_a_lease_that_cannot_be_read_is_neither_silent_nor_renewed() -> None:
    here = seen(UNKNOWN)
    here.leases(broken=["pool-a"])
    assert here.lines("ready_without_lease", "unready_but_renewed", "never_reported") == []
    here.passes(300)
    assert late(here) == 0
    here.renew(lease(renew_time=renewal(9)))
    assert late(here) == 0
    assert here.value("unready_but_renewed", **POOL) == 0, "it may have been renewed long ago"


def test_the_counter_begins_anew_with_a_pool_made_again() -> None:
    here = seen()
    here.passes(31)
    here.renew(lease(renew_time=renewal(2)))
    here.pool_deleted("pool-a")
    assert here.lines("late_heartbeats_total") == []
    here.passes(100)
    here.pool_event(pool("pool-a", ready_condition(), uid="uid-2"))
    assert late(here) == 0
    assert here.value("ready_without_lease", **POOL) == 0, "the new pool's silence begins with it"


@pytest.mark.parametrize("duration", [-40, 0, None, -(2**31)])
def test_a_duration_that_is_none_is_shown_as_it_is_and_taken_for_the_default(duration: int | None) -> None:
    here = seen(duration=duration)
    assert here.value("lease_duration_seconds", **POOL) == duration
    here.passes(30.5)
    assert late(here) == 1
    here.passes(9)
    assert here.value("ready_without_lease", **POOL) == 0
    here.passes(1)
    assert here.value("ready_without_lease", **POOL) == 1


@pytest.mark.parametrize("renew_time", ["9999-12-31T23:59:59.999999Z", "2026-02-28T20:11:41.636526400Z", "0001-01-01T00:00:00Z", "never"])
def test_any_renew_time_is_only_compared_for_difference(renew_time: str) -> None:
    here = seen()
    here.passes(31)
    here.renew(lease(renew_time=renew_time))
    assert here.value("silence_seconds", **POOL) == 0
    here.passes(31)
    here.renew(lease(renew_time=renew_time))
    assert here.value("silence_seconds", **POOL) == 31
    assert late(here) == 2
    here.renew(lease(renew_time=renewal(2)))
    assert here.value("silence_seconds", **POOL) == 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["renew", "still", "duration", "delete", "unreadable", "gap", "ready"]), st.integers(0, 60)), max_size=40
)


@given(STEPS)
def test_the_counter_never_falls_and_never_counts_a_silence_twice(steps: list[tuple[str, int]]) -> None:
    here, number, counted, silences = seen(), 1, 0.0, 1
    duration = 40
    for kind, seconds in steps:
        here.passes(seconds)
        number += 1
        if kind == "renew":
            here.renew(lease(renew_time=renewal(number), duration=duration))
        elif kind == "duration":
            duration = 10 + number
            here.renew(lease(renew_time=renewal(number - 1), duration=duration))
        elif kind == "delete":
            here.lease_deleted("pool-a")
        elif kind == "unreadable":
            here.leases(broken=["pool-a"])
        elif kind == "gap":
            here.clock.step(100)
        elif kind == "ready":
            here.pool_event(pool("pool-a", ready_condition("True" if number % 2 else "False")))
        silences += kind in {"renew", "duration", "delete", "unreadable"}
        shown = late(here)
        assert shown is not None
        assert counted <= shown <= silences
        counted = shown


@given(st.floats(0, 100), st.floats(0, 100), st.floats(1, 100))
def test_a_silence_is_counted_exactly_where_it_passed_three_quarters(first: float, second: float, duration: float) -> None:
    state = Beats(0.0, duration)
    looked = states.count(state, first)
    assert looked.late == (first > 0.75 * duration)
    assert states.count(looked, first + second).late == (first + second > 0.75 * duration)
