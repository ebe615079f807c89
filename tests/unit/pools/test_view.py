"""What counts as progress of a pool, and what does not: upstream's rules (IronCore v0.5.0), case by case."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.pools.derive import view as views
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.model import MachinePool, ready_status
from tests.support.pools import FIRST_RENEWAL, lease, pool, ready_condition, renewal

START, LATER = 100.0, 130.0


def seen(*, with_pool: MachinePool | None = None) -> PoolView:
    """A pool with a lease, both first seen at START."""
    view = views.first_sight("pool-a", at=START, sight_at=START)
    view = views.see_pool(view, with_pool or pool("pool-a", ready_condition()), at=START, sight_at=START)
    return views.see_lease(view, lease(), at=START, sight_at=START)


def silence_after(view: PoolView) -> float:
    """The silence at LATER, on a clock of sight that ran all the time."""
    return LATER - view.silent_since


def test_first_sight_starts_at_zero_however_old_the_timestamps_are() -> None:
    view = views.first_sight("pool-a", at=START, sight_at=START)
    view = views.see_lease(view, lease(renew_time="1999-01-01T00:00:00.000000Z"), at=START, sight_at=START)
    assert view.silent_since == START


def test_a_relist_is_not_progress() -> None:
    view = views.see_pool(seen(), pool("pool-a", ready_condition()), at=LATER, sight_at=LATER)
    view = views.see_lease(view, lease(), at=LATER, sight_at=LATER)
    assert silence_after(view) == LATER - START
    assert view.lease_changed_at == START
    assert view.transitions == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "renew_time", ["2026-05-01T13:18:58.065888Z", "2026-05-01T12:18:48.065888Z", None], ids=["forwards", "an hour back", "to none"]
)
def test_a_renew_time_that_differs_is_progress_in_either_direction(renew_time: str | None) -> None:
    assert silence_after(views.see_lease(seen(), lease(renew_time=renew_time), at=LATER, sight_at=LATER)) == 0


def test_another_spelling_of_the_same_instant_is_no_progress() -> None:
    view = views.see_lease(seen(), lease(renew_time="2026-05-01T15:18:48.065888000+02:00"), at=LATER, sight_at=LATER)
    assert silence_after(view) == LATER - START


def test_a_renew_time_that_comes_after_none_is_progress() -> None:
    view = views.see_lease(seen(), lease(renew_time=None), at=START, sight_at=START)
    assert silence_after(views.see_lease(view, lease(), at=LATER, sight_at=LATER)) == 0


def test_the_first_look_at_the_leases_is_no_progress_of_any_pool() -> None:
    """Pools and Leases are listed one after the other; that a Lease then shows up says nothing about who lives."""
    view = views.first_sight("pool-a", at=START, sight_at=START)
    view = views.see_pool(view, pool("pool-a", ready_condition("Unknown", "MachinePoolStatusUnknown")), at=START, sight_at=START)
    view = views.see_lease(view, lease(), at=LATER, sight_at=LATER)
    assert silence_after(view) == LATER - START
    assert not view.was_alive


def test_a_lease_that_comes_where_there_was_known_to_be_none_is_progress() -> None:
    view = views.first_sight("pool-a", at=START, sight_at=START, lease_known=True)
    view = views.see_pool(view, pool("pool-a"), at=START, sight_at=START)
    assert silence_after(views.see_lease(view, lease(), at=LATER, sight_at=LATER)) == 0


def test_a_deleted_lease_is_progress_as_upstream_has_it() -> None:
    assert silence_after(views.see_lease(seen(), None, at=LATER, sight_at=LATER)) == 0


def test_another_holder_alone_is_no_progress_but_a_change_of_the_lease() -> None:
    view = views.see_lease(seen(), lease(holder="pool-a_2"), at=LATER, sight_at=LATER)
    assert silence_after(view) == LATER - START
    assert view.lease_changed_at == LATER
    assert view.holder_changes == 1


@pytest.mark.parametrize(
    ("before", "after", "progress"),
    [
        (ready_condition("True"), ready_condition("False"), True),
        (ready_condition("False"), ready_condition("True"), True),
        (ready_condition("True"), ready_condition("True", observed_generation=2), True),
        (ready_condition("True"), ready_condition("True", reason="Another"), False),
        (ready_condition("True"), ready_condition("True", message="another"), False),
        (ready_condition("True"), ready_condition("True", lastTransitionTime="2031-01-01T00:00:00Z"), False),
        (ready_condition("True"), None, True),
        (None, ready_condition("True"), True),
        (ready_condition("True"), ready_condition("Unknown", "MachinePoolStatusUnknown"), False),
        (None, ready_condition("Unknown", "MachinePoolStatusUnknown"), False),
        (ready_condition("True"), ready_condition("Unknown", "Maintenance"), True),
        (ready_condition("Unknown", "MachinePoolStatusUnknown"), ready_condition("True"), True),
        (ready_condition("Unknown", "MachinePoolStatusUnknown"), ready_condition("False"), True),
        (ready_condition("Unknown", "MachinePoolStatusUnknown"), None, True),
    ],
)
def test_ready_is_progress_by_presence_status_or_generation_only(
    before: dict[str, object] | None, after: dict[str, object] | None, progress: bool
) -> None:
    start = seen(with_pool=pool("pool-a", *([before] if before else [])))
    view = views.see_pool(start, pool("pool-a", *([after] if after else [])), at=LATER, sight_at=LATER)
    assert silence_after(view) == (0 if progress else LATER - START)


def test_transitions_count_each_change_of_status_by_where_it_went() -> None:
    view = seen()
    for status in ("Unknown", "True", "False"):
        view = views.see_pool(view, pool("pool-a", ready_condition(status)), at=LATER, sight_at=LATER)
    view = views.see_pool(view, pool("pool-a"), at=LATER, sight_at=LATER)
    assert dict(zip(("true", "false", "unknown", "absent"), view.transitions, strict=True)) == dict.fromkeys(
        ("true", "false", "unknown", "absent"), 1
    )
    assert view.ready_changed_at == LATER


def test_a_pool_made_again_under_its_name_starts_anew() -> None:
    old = views.see_pool(seen(), pool("pool-a", ready_condition("False")), at=START, sight_at=START)
    view = views.see_pool(old, pool("pool-a", uid="uid-2"), at=LATER, sight_at=LATER)
    assert silence_after(view) == 0
    assert view.transitions == (0, 0, 0, 0)
    assert view.lease == old.lease


def test_two_holders_that_take_turns_are_a_conflict_and_a_restart_is_none() -> None:
    view = views.see_lease(seen(), lease(holder="pool-a_2", renew_time=renewal(1)), at=LATER, sight_at=LATER)
    assert view.conflict_until is None
    view = views.see_lease(view, lease(holder="pool-a_3", renew_time=renewal(2)), at=LATER + 10, sight_at=LATER)
    assert view.conflict_until is None
    view = views.see_lease(view, lease(holder="pool-a_2", renew_time=renewal(3)), at=LATER + 20, sight_at=LATER)
    assert view.conflict_until == LATER + 10 + 3 * 40


def test_holders_that_change_back_after_three_lease_durations_are_no_conflict() -> None:
    view = views.see_lease(seen(), lease(holder="pool-a_2"), at=LATER, sight_at=LATER)
    view = views.see_lease(view, lease(holder="pool-a_1"), at=LATER + 120, sight_at=LATER)
    assert view.conflict_until is None


@pytest.mark.parametrize(
    ("duration", "silent", "expected"),
    [(40, 45, 10), (40, 5, 5), (80, 49, 0), (None, 45, 10), (0, 45, 10), (10, 45, 40)],
    ids=["keeps its lease duration", "shorter stays", "at most the grace", "none published", "nonsense published", "short lease"],
)
def test_the_first_gap_leaves_a_pool_its_lease_duration(duration: int | None, silent: float, expected: float) -> None:
    view = views.see_lease(seen(), lease(duration=duration), at=START, sight_at=START)
    now = START + silent
    assert now - views.after_gap(view, grace_seconds=50, sight_at=now).silent_since == expected


def test_the_second_gap_of_one_silence_leaves_nothing_and_progress_makes_the_next_one_first_again() -> None:
    view = views.after_gap(seen(), grace_seconds=50, sight_at=START + 45)
    again = views.after_gap(view, grace_seconds=50, sight_at=START + 80)
    assert again.silent_since == view.silent_since
    renewed = views.see_lease(again, lease(renew_time=renewal(1)), at=200, sight_at=200)
    assert views.after_gap(renewed, grace_seconds=50, sight_at=249).silent_since == 249 - 10


statuses = st.sampled_from(["True", "False", "Unknown", "Bogus", ""])
reasons = st.sampled_from(["HeartbeatReceived", "RuntimeUnreachable", "MachinePoolStatusUnknown", ""])
conditions = st.none() | st.builds(ready_condition, statuses, reasons, st.integers(0, 3))


@given(st.lists(st.tuples(conditions, st.none() | st.integers(0, 3)), min_size=1, max_size=12))
def test_silence_never_rises_by_more_than_the_time_that_passed_and_counts_match_the_changes(
    steps: list[tuple[dict[str, object] | None, int | None]],
) -> None:
    view, changes, last = seen(), 0, "true"
    for number, (condition, renewed) in enumerate(steps):
        at = START + number
        before = view
        view = views.see_pool(view, pool("pool-a", *([condition] if condition else [])), at=at, sight_at=at)
        view = views.see_lease(view, None if renewed is None else lease(renew_time=renewal(renewed)), at=at, sight_at=at)
        assert before.silent_since <= view.silent_since <= at
        status = ready_status(view.pool.ready if view.pool else None)
        changes, last = changes + (status != last), status
    assert sum(view.transitions) == changes


def test_views_are_frozen() -> None:
    with pytest.raises(AttributeError):
        seen().marks = 1  # type: ignore[misc]  # that it can't be set is the claim
    assert msgspec.structs.replace(seen(), marks=1).marks == 1
    assert FIRST_RENEWAL.endswith("065888Z")
