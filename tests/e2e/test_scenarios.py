"""The 17 scenarios of tests/e2e/scenarios.py, each played on a real kube-apiserver: what loopwatch shows and does.

loopwatch's controller and sidecar run in this process, on connections of their own; IronCore's programs are stand-ins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from tests.e2e import plays_heartbeats as heartbeats
from tests.e2e import plays_trouble as trouble
from tests.e2e.scenarios import SCENARIOS, Scenario
from tests.e2e.stage import Stage, staged
from tests.real_servers.apiserver import ApiServer

Play = Callable[[Stage], Awaitable[None]]

PLAYS: Final[dict[int, Play]] = {
    1: heartbeats.by_hand_without_a_lease,
    2: heartbeats.a_lease_by_hand_that_stops,
    3: heartbeats.a_machinepoollet_starts,
    4: heartbeats.status_is_unavailable,
    5: heartbeats.status_hangs,
    6: heartbeats.the_runtime_is_killed,
    7: heartbeats.a_machinepoollet_is_stopped_and_continued,
    8: heartbeats.a_machinepoollet_is_ended_and_started,
    9: heartbeats.two_machinepoollets_of_one_pool,
    10: trouble.the_right_to_leases_is_lost,
    11: trouble.the_right_to_leases_was_never_there,
    12: trouble.the_pool_is_deleted,
    13: trouble.the_runtime_is_down_at_the_start,
    14: trouble.the_controller_is_restarted,
    15: trouble.healthz_fails_while_the_runtime_is_down,
    16: trouble.machines_are_placed_on_an_unknown_pool,
    17: trouble.a_foreign_condition_is_in_the_list,
}


def test_every_scenario_has_a_play() -> None:
    assert list(PLAYS) == [scenario.number for scenario in SCENARIOS] == list(range(1, 18))


@pytest.mark.timeout(90)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[f"{each.number}: {each.name}" for each in SCENARIOS])
def test_scenario(scenario: Scenario, api_server: ApiServer) -> None:
    stand_ins, families = asyncio.run(_played(PLAYS[scenario.number], api_server))
    assert stand_ins == scenario.stand_ins, "the table names other stand-ins than were played with"
    assert sorted(families) == sorted(scenario.families), f"read were {' '.join(sorted(families))}"


async def _played(play: Play, server: ApiServer) -> tuple[set[object], set[str]]:
    async with staged(server) as stage:
        await play(stage)
        return set(stage.stand_ins), stage.families
