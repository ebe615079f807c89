"""The parts of the fault suite that judge: plans, cutting down, sight, progress, counters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.invariants import Failure
from tests.faults.journal import Journal
from tests.faults.pages import counters
from tests.faults.plan import Plan, make
from tests.faults.scenario import Outcome
from tests.faults.shrinking import shrunk
from tests.faults.stories import story
from tests.faults.troubles import BrokenObject, Compaction, Misfortune, Stall, touched
from tests.faults.truth import PoolTruth, Ready, Write, instant, ready_moved
from tests.faults.witness import Sight


def test_a_seed_makes_one_plan_and_another_seed_another() -> None:
    assert make("42") == make("42")
    assert make("42").misfortunes != make("43").misfortunes


@pytest.mark.parametrize("seed", range(100))
def test_every_misfortune_is_over_when_the_storm_is(seed: int) -> None:
    plan = make(str(seed))
    assert all(each.at >= 0 and each.at + each.seconds <= plan.storm + 0.002 for each in plan.misfortunes)


def test_plans_for_a_real_server_break_no_object_and_have_the_short_times() -> None:
    plans = [make(str(seed), real=True) for seed in range(200)]
    assert {plan.times.grace for plan in plans} == {5.0}
    assert not any(isinstance(each.trouble, BrokenObject) for plan in plans for each in plan.misfortunes)


def test_a_failing_plan_is_cut_down_to_what_it_takes() -> None:
    misfortunes = [Misfortune(float(number), 1.0, Compaction()) for number in range(20)]
    needed = {misfortunes[3], misfortunes[17]}

    def run(plan: Plan) -> Outcome:
        fails = needed <= set(plan.misfortunes)
        return Outcome(plan, Failure(2, 0.0, "") if fails else None, Journal(lambda: 0.0), 0, 0.0)

    assert set(shrunk(story(*misfortunes), run).plan.misfortunes) == needed


def test_a_plan_that_passes_is_left_as_it_is() -> None:
    whole = story(Misfortune(1.0, 1.0, Compaction()))
    assert shrunk(whole, lambda plan: Outcome(plan, None, Journal(lambda: 0.0), 0, 0.0)).plan == replace(whole)


def test_a_trouble_touches_the_host_it_names_or_everybody() -> None:
    assert touched(Stall("controller-1"), "controller-1")
    assert not touched(Stall("controller-1"), "controller-2")
    assert touched(Compaction(), "controller-2")


def test_sight_is_the_time_in_which_both_had_answered_within_a_fifth_of_the_grace() -> None:
    sight = Sight(50.0)
    sight.answered("leases", 0.0)
    assert not sight.has(1.0)
    sight.answered("machinepools", 4.0)
    assert sight.seconds(0.0, 100.0) == pytest.approx(6.0)
    sight.answered("leases", 9.0)
    assert sight.seconds(0.0, 100.0) == pytest.approx(10.0)
    sight.answered("leases", 30.0)
    sight.answered("machinepools", 31.0)
    assert sight.seconds(0.0, 100.0) == pytest.approx(19.0)
    assert sight.first_gap_ended(5.0) == 31.0
    assert sight.first_gap_ended(32.0) == 32.0


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (None, Ready("True", "HeartbeatReceived", 1), True),
        (Ready("True", "HeartbeatReceived", 1), Ready("True", "Other", 1), False),
        (Ready("True", "HeartbeatReceived", 1), Ready("True", "HeartbeatReceived", 2), True),
        (Ready("True", "HeartbeatReceived", 1), Ready("Unknown", "MachinePoolStatusUnknown", 1), False),
        (Ready("Unknown", "MachinePoolStatusUnknown", 1), Ready("True", "HeartbeatReceived", 1), True),
        (Ready("True", "HeartbeatReceived", 1), Ready("Unknown", "Other", 1), True),
        (Ready("True", "HeartbeatReceived", 1), None, True),
    ],
)
def test_progress_of_ready(before: Ready | None, after: Ready | None, moved: bool) -> None:
    assert ready_moved(before, after) is moved


def test_a_lease_that_could_not_be_read_is_compared_with_the_last_that_could() -> None:
    pool = PoolTruth()
    pool.take(Write(0.0, "", "machinepools", "a", None, {"metadata": {"uid": "1", "generation": 1}}))
    for at, renew_time in ((1.0, "2026-05-01T12:00:00.000000Z"), (2.0, 1), (3.0, "2026-05-01T12:00:00.0Z"), (4.0, "2026-05-01T12:00:09Z")):
        pool.take(Write(at, "a", "leases", "a", None, {"spec": {"renewTime": renew_time}}))
    assert pool.lease_progress == [0.0, 1.0, 4.0]
    assert pool.readable_since == 3.0
    assert pool.renew_time_at(3.5) == instant("2026-05-01T12:00:00Z")


def test_counters_are_what_a_page_says_that_they_are() -> None:
    page = (
        '# HELP a_total x\n# TYPE a_total counter\na_total{of="b c"} 3\n# HELP b x\n# TYPE b gauge\nb 7\n'
        '# TYPE c_seconds histogram\nc_seconds_bucket{le="+Inf"} 2\nc_seconds_sum 0.5\n'
    )
    assert dict(counters(page)) == {'a_total{of="b c"}': 3.0, 'c_seconds_bucket{le="+Inf"}': 2.0, "c_seconds_sum": 0.5}
