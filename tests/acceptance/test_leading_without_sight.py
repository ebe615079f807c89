"""A leader that can't see can't mark: it lets another lead, and does not take the lead again before it sees."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.sandbox.faults import Fault, Respond
from tests.acceptance.world import KUBECONFIG, World, acceptance
from tests.support.pools import ready_condition

POOL = "pool-a"
GRACE_SECONDS = 50.0
SANDBOX_ONLY = pytest.mark.skipif(bool(KUBECONFIG), reason="the fault needs the sandbox; tests/e2e/test_two_clusters.py has a real 503")


@SANDBOX_ONLY
@acceptance
async def test_a_blind_leader_gives_the_lead_up_once_and_comes_back_with_sight(world: World) -> None:
    assert world.api is not None
    await world.kubectl.create_pool(POOL, ready_condition("True"))
    async with world.controller(machine_pool_lifecycle_grace_period_seconds=GRACE_SECONDS, leader_elect=True) as controller:

        def value(family: str, **labels: str) -> float | None:
            controller.store.refresh()
            return controller.store.value(f"loopwatch_{family}", labels, controller.observer.moment())

        await world.passes(5)
        assert value("leader_election_leading") == 1
        number = world.api.faults.add(Fault(effect=Respond(503), resource="machinepools", client="controller"))
        await world.passes(GRACE_SECONDS + 20)
        assert value("leader_election_leading") == 0
        await world.passes(600)
        assert value("leader_election_transitions_total") == 2, "it took the lead again without sight"
        world.api.faults.remove(number)
        await world.passes(30)
        assert value("leader_election_leading") == 1
        assert value("machinepool_lifecycle_marks_total", machinepool=POOL) == 0


@SANDBOX_ONLY
@acceptance
async def test_a_replica_that_sees_takes_over_from_a_leader_that_does_not_and_marks(world: World) -> None:
    assert world.api is not None
    settings: dict[str, Any] = {"machine_pool_lifecycle_grace_period_seconds": GRACE_SECONDS, "leader_elect": True}
    await world.kubectl.create_pool(POOL, ready_condition("True"))
    async with world.controller(**settings) as blind:
        await world.passes(5)
        assert blind.leading()
        async with world.controller(client="other", **settings) as seeing:
            world.api.faults.add(Fault(effect=Respond(503), resource="machinepools", client="controller"))
            await world.passes(GRACE_SECONDS * 3)
            assert (blind.leading(), seeing.leading()) == (False, True)
            assert world.kubectl.ready(POOL) == "Unknown"
