"""What a sidecar may do, from what it saw: the rules of the modes, one claim each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loopwatch.pools.derive import duty as duties
from loopwatch.pools.derive.duty import Duty, Presence, State
from loopwatch.pools.model import HOLDER_ANNOTATION, Lease
from loopwatch.settings.model import Mode
from tests.support import pools

US = "pool-a_us"
OTHER_SIDECAR = "pool-a_other"
MACHINEPOOLLET = "pool-a_poollet"
INTERVAL = 10.0


def lease_of(holder: str, beat: int = 0) -> Lease:
    """A lease after `beat` renewals; a sidecar's name is in the annotation."""
    annotations = {} if holder == MACHINEPOOLLET else {HOLDER_ANNOTATION: holder}
    return pools.lease(renew_time=pools.renewal(beat), holder=holder, **annotations)


def begun(mode: Mode = Mode.AUTO, *, ask: bool = True, at: float = 0.0) -> Duty:
    return duties.begin(mode, US, INTERVAL, ask_machinepoollet=ask, at=at)


def vouched(mode: Mode = Mode.AUTO, at: float = 0.0) -> Duty:
    """A sidecar whose machinepoollet has just answered, and whose pool exists."""
    return duties.machinepoollet_answered(duties.pool_seen(begun(mode, at=at), Presence.PRESENT, at), at)


def watch(duty: Duty, lease: Lease | None, *moments: float) -> Duty:
    """The lease is seen as it is at each of these moments."""
    for at in moments:
        duty = duties.lease_seen(duty, lease, at)
    return duty


def missed(duty: Duty, *moments: float) -> Duty:
    for at in moments:
        duty = duties.machinepoollet_missed(duty, at)
    return duty


def reporting(at: float = 0.0) -> Duty:
    """A sidecar in `auto` that holds the lease."""
    return watch(watch(vouched(at=at), None, at), lease_of(US), at)


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.REPORT])
def test_nothing_is_reported_before_the_machinepoollet_answered_once(mode: Mode) -> None:
    duty = duties.pool_seen(begun(mode), Presence.PRESENT, 0)
    duty = watch(duty, None, 0, 10, 20, 30)
    assert duty.state is State.WAITING
    assert duties.machinepoollet_answered(duty, 31).state is State.REPORTING


@pytest.mark.parametrize(("mode", "state"), [(Mode.REPORT, State.REPORTING), (Mode.OBSERVE, State.OBSERVING), (Mode.AUTO, State.WAITING)])
def test_with_healthz_off_the_mode_decides_at_once(mode: Mode, state: State) -> None:
    assert begun(mode, ask=False).state is state


def test_an_unanswered_tick_before_the_first_answer_does_not_count() -> None:
    duty = missed(begun(Mode.REPORT), 0, 10, 20)
    assert duties.machinepoollet_missed(duties.machinepoollet_answered(duty, 30), 40).state is State.REPORTING


def test_one_unanswered_tick_changes_nothing_and_two_running_stop_the_reports() -> None:
    once = missed(reporting(), 10)
    assert once.state is State.REPORTING
    assert missed(once, 20).state is State.STOPPED


def test_unanswered_ticks_count_only_where_they_follow_each_other() -> None:
    duty = missed(reporting(), 10)
    duty = missed(duties.machinepoollet_answered(duty, 20), 30)
    assert duty.state is State.REPORTING


def test_a_machinepoollet_that_answers_again_is_reported_for_at_once_where_the_lease_is_still_ours() -> None:
    duty = missed(reporting(), 10, 20, 30)
    assert duties.machinepoollet_answered(duty, 40).state is State.REPORTING


def test_a_machinepoollet_that_answers_again_beside_another_holder_is_watched_like_a_new_one() -> None:
    duty = missed(watch(vouched(), lease_of(OTHER_SIDECAR), 0, 10, 20), 20.5, 30)
    assert duty.state is State.STOPPED
    back = duties.machinepoollet_answered(duty, 40)
    assert back.state is State.WAITING
    assert watch(back, lease_of(OTHER_SIDECAR), 40, 50, 59.9).state is State.WAITING
    assert watch(back, lease_of(OTHER_SIDECAR), 40, 50, 60).state is State.REPORTING


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.REPORT])
def test_a_pool_known_to_be_absent_stops_the_reports_and_they_go_on_when_it_is_there_again(mode: Mode) -> None:
    duty = watch(watch(vouched(mode), None, 0), lease_of(US), 0)
    gone = duties.pool_seen(duty, Presence.ABSENT, 10)
    assert gone.state is State.STOPPED
    assert duties.pool_seen(gone, Presence.PRESENT, 130).state is State.REPORTING


def test_a_pool_that_does_not_exist_yet_is_waited_for() -> None:
    duty = duties.pool_seen(duties.machinepoollet_answered(begun(Mode.REPORT), 0), Presence.ABSENT, 0)
    assert duty.state is State.WAITING


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.REPORT])
def test_while_nothing_is_known_of_the_pool_a_lease_is_kept_but_none_created(mode: Mode) -> None:
    duty = duties.machinepoollet_answered(begun(mode), 0)
    assert watch(duty, lease_of(US), 1).state is State.REPORTING
    without = watch(duty, None, 1)
    assert without.state is State.WAITING
    assert "whether the MachinePool exists" in duties.why(without)
    assert duties.pool_seen(without, Presence.PRESENT, 2).state is State.REPORTING


def test_mode_report_takes_any_lease_at_the_first_tick_and_goes_on_beside_a_living_machinepoollet() -> None:
    duty = watch(vouched(Mode.REPORT), lease_of(MACHINEPOOLLET), 0)
    assert duty.state is State.REPORTING
    for beat in range(1, 5):
        duty = watch(duty, lease_of(MACHINEPOOLLET, beat), 10.0 * beat)
        assert duty.state is State.REPORTING


def test_mode_observe_never_reports() -> None:
    duty = watch(vouched(Mode.OBSERVE), None, 0, 10, 20, 100)
    assert duty.state is State.OBSERVING
    assert missed(duty, 110, 120).state is State.OBSERVING


def test_auto_reports_at_once_where_there_is_no_lease() -> None:
    assert watch(vouched(), None, 0).state is State.REPORTING


def test_auto_waits_while_no_answer_about_the_lease_has_come() -> None:
    assert duties.settle(vouched(), 1000).state is State.WAITING


@pytest.mark.parametrize("holder", [MACHINEPOOLLET, OTHER_SIDECAR])
def test_auto_takes_a_lease_that_stood_still_in_sight_for_two_intervals(holder: str) -> None:
    assert watch(vouched(), lease_of(holder), 0, 10, 19.9).state is State.WAITING
    assert watch(vouched(), lease_of(holder), 0, 10, 20).state is State.REPORTING


def test_stillness_before_the_machinepoollet_answered_does_not_count() -> None:
    duty = watch(begun(), lease_of(MACHINEPOOLLET), 0, 10, 20, 30)
    duty = duties.machinepoollet_answered(duty, 30)
    assert watch(duty, lease_of(MACHINEPOOLLET), 40, 49).state is State.WAITING
    assert watch(duty, lease_of(MACHINEPOOLLET), 40, 50).state is State.REPORTING


def test_another_holder_ends_the_stillness_though_the_renew_time_stays() -> None:
    duty = watch(vouched(), lease_of(OTHER_SIDECAR), 0, 10)
    taken = pools.lease(renew_time=pools.renewal(0), holder="pool-a_third", **{HOLDER_ANNOTATION: "pool-a_third"})
    duty = watch(duty, taken, 15, 25, 35)
    assert duty.state is State.STANDBY
    assert watch(duty, taken, 45).state is State.REPORTING


def test_time_out_of_sight_is_no_stillness() -> None:
    duty = watch(vouched(), lease_of(MACHINEPOOLLET), 0, 100)
    assert duty.state is State.WAITING, "of the 100 s only the first 10 were in sight"
    assert watch(duty, lease_of(MACHINEPOOLLET), 110).state is State.REPORTING


def test_time_alone_makes_a_lease_still_enough_while_it_is_in_sight() -> None:
    duty = watch(vouched(), lease_of(MACHINEPOOLLET), 0, 9, 18)
    assert duties.still_at(duty, 18) == pytest.approx(20)
    assert duties.settle(duty, 20).state is State.REPORTING


def test_a_machinepoollet_seen_to_renew_is_observed_until_the_process_ends() -> None:
    duty = watch(watch(vouched(), lease_of(MACHINEPOOLLET), 0), lease_of(MACHINEPOOLLET, 1), 10)
    assert duty.state is State.OBSERVING
    assert watch(duty, lease_of(MACHINEPOOLLET, 1), *range(11, 200, 5)).state is State.OBSERVING
    assert watch(duty, None, 300).state is State.OBSERVING
    assert watch(duty, lease_of(US), 310).state is State.OBSERVING


def test_a_machinepoollet_that_takes_the_lease_from_us_ends_our_reports_for_good() -> None:
    duty = watch(reporting(), lease_of(MACHINEPOOLLET, 1), 15)
    assert duty.state is State.OBSERVING


def test_a_machinepoollet_that_takes_the_lease_is_known_though_the_annotation_still_names_a_sidecar() -> None:
    taken = pools.lease(renew_time=pools.renewal(1), holder=MACHINEPOOLLET, **{HOLDER_ANNOTATION: US})
    assert watch(reporting(), taken, 15).state is State.OBSERVING


def test_a_machinepoollet_that_creates_the_lease_before_us_is_seen_to_renew() -> None:
    assert watch(watch(vouched(), None, 0), lease_of(MACHINEPOOLLET), 1).state is State.OBSERVING


def test_the_first_sight_of_a_lease_is_no_renewal() -> None:
    assert watch(vouched(), lease_of(MACHINEPOOLLET), 5).state is State.WAITING


def test_another_spelling_of_the_same_renew_time_is_no_renewal() -> None:
    short = pools.lease(renew_time="2026-05-01T12:00:00Z", holder=MACHINEPOOLLET)
    long = pools.lease(renew_time="2026-05-01T12:00:00.000000Z", holder=MACHINEPOOLLET)
    assert watch(watch(vouched(), short, 0), long, 5).state is State.WAITING


def test_a_renew_time_that_moves_backwards_is_a_renewal_as_well() -> None:
    duty = watch(watch(vouched(), lease_of(MACHINEPOOLLET, 5), 0), lease_of(MACHINEPOOLLET, 2), 10)
    assert duty.state is State.OBSERVING


def test_a_sidecar_seen_to_renew_is_stood_by_for_and_replaced_after_three_intervals_in_sight() -> None:
    duty = watch(watch(vouched(), lease_of(OTHER_SIDECAR), 0), lease_of(OTHER_SIDECAR, 1), 10)
    assert duty.state is State.STANDBY
    assert watch(duty, lease_of(OTHER_SIDECAR, 1), 20, 30, 39.9).state is State.STANDBY
    assert watch(duty, lease_of(OTHER_SIDECAR, 1), 20, 30, 40).state is State.REPORTING


def test_a_standby_does_not_jump_in_where_the_lease_was_deleted() -> None:
    duty = watch(watch(vouched(), lease_of(OTHER_SIDECAR), 0), lease_of(OTHER_SIDECAR, 1), 10)
    duty = watch(duty, None, 12)
    assert duty.state is State.STANDBY
    assert watch(duty, None, 22, 32, 42).state is State.REPORTING


def test_a_sidecar_that_takes_the_lease_from_us_is_stood_by_for() -> None:
    duty = watch(reporting(), lease_of(OTHER_SIDECAR, 1), 15)
    assert duty.state is State.STANDBY


def test_once_the_lease_is_ours_the_sidecar_before_us_is_forgotten() -> None:
    duty = watch(watch(vouched(), lease_of(OTHER_SIDECAR), 0), lease_of(OTHER_SIDECAR, 1), 10)
    duty = watch(duty, lease_of(OTHER_SIDECAR, 1), 20, 30, 40)
    duty = watch(watch(duty, lease_of(US, 2), 41), None, 50)
    assert duty.state is State.REPORTING


def test_an_emptied_holder_is_nobody_s_renewal() -> None:
    emptied = pools.lease(renew_time=pools.renewal(0), holder=None)
    duty = watch(watch(vouched(), lease_of(MACHINEPOOLLET), 0), emptied, 5)
    assert duty.state is State.WAITING


def test_whoever_renews_a_lease_without_a_holder_is_no_sidecar() -> None:
    duty = watch(vouched(), pools.lease(renew_time=pools.renewal(0), holder=None), 0)
    assert watch(duty, pools.lease(renew_time=pools.renewal(1), holder=None), 5).state is State.OBSERVING


@pytest.mark.parametrize(
    ("duty", "watches"),
    [
        (begun(), False),
        (vouched(), True),
        (reporting(), False),
        (missed(reporting(), 10, 20), False),
        (duties.pool_seen(vouched(), Presence.ABSENT, 0), False),
        (watch(duties.machinepoollet_answered(begun(), 0), None, 0), False),
        (vouched(Mode.REPORT), False),
        (vouched(Mode.OBSERVE), False),
        (watch(watch(vouched(), lease_of(OTHER_SIDECAR), 0), lease_of(OTHER_SIDECAR, 1), 10), True),
    ],
    ids=["not vouched", "auto", "reporting", "stopped", "no pool", "no lease, pool unknown", "report", "observe", "standby"],
)
def test_the_lease_is_kept_in_sight_only_where_it_decides(duty: Duty, watches: bool) -> None:
    assert duty.watching is watches
    assert (duties.look_at(duty) < duties.NOT_AT_ALL) is watches


def test_a_look_is_due_an_interval_after_the_last_sight_and_at_once_where_there_was_none() -> None:
    assert duties.look_at(vouched()) < 0
    assert duties.look_at(watch(vouched(), lease_of(MACHINEPOOLLET), 3)) == pytest.approx(13)


Situation = Callable[[], Duty]


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (begun, "has not answered yet"),
        (lambda: missed(reporting(), 10, 20), "does not answer"),
        (lambda: duties.pool_seen(reporting(), Presence.ABSENT, 1), "MachinePool does not exist"),
        (vouched, "has not been seen yet"),
        (lambda: watch(vouched(), lease_of(MACHINEPOOLLET), 0), "still for 20 s"),
        (lambda: watch(reporting(), lease_of(OTHER_SIDECAR, 1), 5), "another sidecar renews"),
        (lambda: watch(reporting(), lease_of(MACHINEPOOLLET, 1), 5), "machinepoollet renews the lease itself"),
        (lambda: vouched(Mode.OBSERVE), "--mode observe"),
        (lambda: vouched(Mode.REPORT), "--mode report"),
        (reporting, "the lease is ours"),
        (lambda: watch(vouched(), None, 0), "there is no lease"),
        (lambda: watch(vouched(), lease_of(MACHINEPOOLLET), 0, 10, 20), "stood still for 20 s"),
    ],
)
def test_each_state_says_why(situation: Situation, words: str) -> None:
    assert words in duties.why(situation())
