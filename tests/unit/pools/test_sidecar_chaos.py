"""A sidecar through hours of everything at once: it never storms, never stops, and is right again soon after the last trouble."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS
from loopwatch.sandbox.faults import Cut, Effect, Forbid, Hang, Latency, LoseAnswer, NotServed, Respond, Silence, Stale, Unauthorized
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour, Error, Ok, Slow, Undecodable
from loopwatch.sandbox.runtime.behaviours import Hang as RuntimeHangs
from loopwatch.settings.model import Mode
from tests.support.sidecars import INTERVAL, LEASE_KEY, POOL, UNKNOWN, Beside, World, ready_of, world
from tests.support.stepped import stepped

EFFECTS: tuple[Effect, ...] = (
    Cut(),
    Forbid(),
    Hang(),
    Latency(3.0),
    Latency(8.0),
    LoseAnswer(),
    LoseAnswer(applied=False),
    NotServed(),
    Respond(409),
    Respond(429, retry_after_seconds=7),
    Respond(500),
    Respond(502, html=True),
    Silence(),
    Stale(),
    Unauthorized(),
)
BEHAVIOURS: tuple[AnyBehaviour, ...] = (Ok({"small": 1}), Error("Internal", "broken"), RuntimeHangs(), Slow(2.0), Undecodable())
MOST_REQUESTS_AN_INTERVAL = 60
"""Two watches, a lease and a condition that all fail at once, each with its back-off, and writers that provoke an answer."""


async def trouble(here: World, sidecar: Beside, chance: random.Random) -> None:
    """One thing goes wrong, or right."""
    match chance.randrange(9):
        case 0 | 1 | 2:
            verb = chance.choice(["*", "get", "list", "watch", "patch", "create"])
            resource = chance.choice(["*", "leases", "machinepools"])
            here.fault(chance.choice(EFFECTS), verb=verb, resource=resource, count=chance.choice([1, 3, None]))
        case 3 | 4:
            here.api.faults.clear()
        case 5:
            await sidecar.runtime.behave(chance.choice(BEHAVIOURS))
        case 6:
            sidecar.machinepoollet.up, sidecar.machinepoollet.hangs = chance.random() < 0.7, chance.random() < 0.2
        case 7:
            if here.api.object(MACHINE_POOLS, POOL) is None:
                here.create_pool()
            elif chance.random() < 0.3:
                here.delete_pool()
            else:
                here.set_conditions(chance.choice([UNKNOWN, ready_of("False", "RuntimeUnreachable")]))
        case _:
            if here.lease() is not None and chance.random() < 0.5:
                here.api.delete_object(LEASES, LEASE_KEY)
            else:
                here.put_lease("pool-a_other", annotation="pool-a_other")


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.REPORT])
@pytest.mark.parametrize("seed", range(3))
@stepped
async def test_a_sidecar_outlives_an_hour_of_troubles_without_a_storm(mode: Mode, seed: int) -> None:
    chance = random.Random(seed)
    async with world() as here:
        sidecar = here.started(mode)
        while here.now < 3600:
            await trouble(here, sidecar, chance)
            await here.passes(chance.uniform(0.1, 25))
            assert sidecar.sidecar.health.loops.stuck() == []
        per_interval = Counter(int((record.at - here.began) / INTERVAL) for record in here.api.requests.matching(client=sidecar.client))
        assert max(per_interval.values()) <= MOST_REQUESTS_AN_INTERVAL
        here.api.faults.clear()
        await sidecar.runtime.behave(Ok({"small": 1}))
        sidecar.machinepoollet.up, sidecar.machinepoollet.hangs = True, False
        if here.api.object(MACHINE_POOLS, POOL) is None:
            here.create_pool()
        # Longest: a watch that went silent ends by its read timeout, and a standby waits three intervals.
        await here.passes(180)
        assert sidecar.state == "reporting"
        assert here.holder() == sidecar.identity
        assert here.renewed_seconds_ago() <= INTERVAL
        assert here.ready()["status"] == "True"
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 0
