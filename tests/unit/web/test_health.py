"""Alive is: my own loops turn. Ready is: I have seen my world once."""

from __future__ import annotations

import pytest

from loopwatch.web.health import Loops, Readiness
from tests.support.stepped import SteppedClock, stepped


@stepped
async def test_a_loop_is_stuck_once_it_has_not_turned_for_longer_than_it_may() -> None:
    clock = SteppedClock()
    loops = Loops(clock)
    lease = loops.register("lease", 30.0)
    loops.register("probe", 60.0)
    await clock.sleep(30.0)
    assert loops.stuck() == []
    await clock.sleep(0.5)
    assert loops.stuck() == ["lease (no turn for 30 s, at most 30 s are allowed)"]
    lease.turn()
    assert loops.stuck() == []


@stepped
async def test_loops_that_turn_in_time_are_never_stuck_and_a_stuck_one_does_not_hide_behind_them() -> None:
    clock = SteppedClock()
    loops = Loops(clock)
    turning, standing = loops.register("turning", 15.0), loops.register("standing", 100.0)
    standing.turn()
    for _ in range(11):
        await clock.sleep(10.0)
        turning.turn()
    assert loops.stuck() == ["standing (no turn for 110 s, at most 100 s are allowed)"]


@stepped
async def test_the_wall_clock_makes_no_loop_stuck() -> None:
    clock = SteppedClock()
    loops = Loops(clock)
    loops.register("lease", 30.0)
    clock.jump_wall(86_400.0)
    assert loops.stuck() == []


@stepped
async def test_a_loop_that_ended_is_not_waited_for() -> None:
    clock = SteppedClock()
    loops = Loops(clock)
    loops.ended(loops.register("lease", 1.0))
    await clock.sleep(10.0)
    assert loops.stuck() == []


@stepped
async def test_two_loops_of_one_name_are_refused() -> None:
    loops = Loops(SteppedClock())
    loops.register("lease", 1.0)
    with pytest.raises(ValueError, match="two loops are called 'lease'"):
        loops.register("lease", 1.0)


def test_readiness_names_what_is_missing_until_all_was_met_once() -> None:
    readiness = Readiness("machinepools listed", "leases listed")
    assert readiness.missing() == ["machinepools listed", "leases listed"]
    readiness.met("machinepools listed")
    readiness.met("machinepools listed")
    assert readiness.missing() == ["leases listed"]
    readiness.met("leases listed")
    assert readiness.missing() == []


def test_a_condition_that_nobody_announced_is_a_fault() -> None:
    with pytest.raises(KeyError):
        Readiness("leases listed").met("lease listed")
