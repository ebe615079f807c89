"""The lifecycle's acceptance cases of IronCore v0.5.0, (a) to (m), each under its letter, with upstream's times on the world's scale."""

from __future__ import annotations

import itertools

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS
from tests.acceptance.world import World, acceptance, running
from tests.support.pools import ready_condition

POOL = "pool-a"
LONG_AGO = "2020-01-01T00:00:00.000000Z"
STALE_SECONDS = 3600


async def becomes_unknown_once(world: World) -> None:
    """Unknown between one and one and a half graces from now (plus a second of a real machine's), and written once."""
    began = world.clock.monotonic()
    seen_at = await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2 + 1)
    assert world.grace_seconds * 0.9 <= seen_at - began
    pool = await world.kubectl.get(MACHINE_POOLS, POOL)
    [ready] = pool["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "MachinePoolStatusUnknown")
    assert ready["message"] == "machinepoollet stopped posting machine pool status."
    assert ready["observedGeneration"] == pool["metadata"]["generation"]
    assert ready["lastTransitionTime"] == ready["lastUpdateTime"]
    await world.passes(world.grace_seconds * 3)
    assert (await world.kubectl.get(MACHINE_POOLS, POOL))["metadata"]["resourceVersion"] == pool["metadata"]["resourceVersion"]


async def stays(world: World, *statuses: str) -> None:
    """Through three graces Ready shows none but these, and is never Unknown."""
    await world.passes(world.grace_seconds * 3)
    assert set(world.kubectl.transitions(POOL)) <= {"", *statuses}
    assert "Unknown" not in world.kubectl.transitions(POOL)


@acceptance
async def test_a_a_lease_without_renew_time_becomes_unknown_and_is_written_once(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_lease(POOL, None)
        await world.kubectl.create_pool(POOL)
        await becomes_unknown_once(world)


@acceptance
async def test_b_a_lease_that_is_never_renewed_becomes_unknown(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_lease(POOL, world.renew_time())
        await world.kubectl.create_pool(POOL)
        await becomes_unknown_once(world)


@acceptance
async def test_c_a_pool_without_a_lease_becomes_unknown(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_pool(POOL)
        await becomes_unknown_once(world)


@acceptance
async def test_d_a_lease_renewed_every_50_ms_never_becomes_unknown(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_lease(POOL, world.renew_time())
        await world.kubectl.create_pool(POOL)
        async with running(world.every(world.seconds(0.05), lambda _: world.kubectl.renew(POOL, world.renew_time()))):
            await stays(world)


@pytest.mark.parametrize(
    ("first", "then"),
    [("True", "True"), ("False", "False"), ("False", "True"), ("True", "False")],
    ids=["e: True to True", "f: False to False", "g: False to True", "h: True to False"],
)
def test_efgh_ready_refreshed_every_50_ms_never_becomes_unknown(first: str, then: str) -> None:
    @acceptance
    async def play(world: World) -> None:
        async with world.controller():
            await world.kubectl.create_pool(POOL, ready_condition(first))

            async def refresh(number: int) -> None:
                await world.kubectl.set_conditions(POOL, ready_condition(then, observed_generation=number + 2))

            async with running(world.every(world.seconds(0.05), refresh)):
                await stays(world, first, then)

    play()


@acceptance
async def test_i_a_stale_lease_with_a_refreshed_ready_is_not_unknown(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_lease(POOL, LONG_AGO)
        await world.kubectl.create_pool(POOL, ready_condition("True"))

        async def refresh(number: int) -> None:
            await world.kubectl.set_conditions(POOL, ready_condition("True", observed_generation=number + 2))

        async with running(world.every(world.seconds(0.05), refresh)):
            await stays(world, "True")


@acceptance
async def test_j_a_stale_ready_with_a_renewed_lease_is_not_unknown(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_lease(POOL, world.renew_time())
        await world.kubectl.create_pool(POOL, ready_condition("True", lastTransitionTime="2020-01-01T00:00:00Z"))
        async with running(world.every(world.seconds(0.05), lambda _: world.kubectl.renew(POOL, world.renew_time()))):
            await stays(world, "True")


@acceptance
async def test_k_after_unknown_a_fresh_true_is_not_flipped_back_within_half_a_grace(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_pool(POOL)
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2 + 1)
        await world.kubectl.set_conditions(POOL, ready_condition("True"))
        await world.passes(world.grace_seconds / 2)
        assert world.kubectl.transitions(POOL) == ["", "Unknown", "True"]


@acceptance
async def test_l_a_deleted_pool_leaves_no_state_and_begins_anew_when_it_is_made_again(world: World) -> None:
    async with world.controller() as controller:
        await world.kubectl.create_lease(POOL, world.renew_time())
        await world.kubectl.create_pool(POOL)
        await world.passes(world.grace_seconds * 0.8)
        await world.kubectl.delete(MACHINE_POOLS, POOL)
        await world.kubectl.delete(LEASES, POOL)
        await world.passes(world.grace_seconds * 0.1)
        assert POOL not in controller.observer.views
        assert f'machinepool="{POOL}"' not in controller.store.render(controller.observer.moment()).decode()
        await world.kubectl.create_pool(POOL)
        began = world.clock.monotonic()
        seen_at = await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2 + 1)
        assert seen_at - began >= world.grace_seconds * 0.9


@acceptance
async def test_m_the_end_of_one_pool_leaves_the_state_of_others_alone(world: World) -> None:
    async with world.controller():
        await world.kubectl.create_pool("pool-b")
        began = world.clock.monotonic()
        await world.kubectl.create_pool(POOL)
        await world.passes(world.grace_seconds * 0.6)
        await world.kubectl.delete(MACHINE_POOLS, POOL)
        seen_at = await world.kubectl.when(lambda: world.kubectl.ready("pool-b") == "Unknown", world.grace_seconds * 2 + 1)
        assert seen_at - began < world.grace_seconds * 1.4 + (1 if world.api is None else 0)


@acceptance
async def test_every_step_of_a_pools_life_shows_in_the_metrics_that_the_decision_reads(world: World) -> None:
    """What /metrics shows while a pool falls silent: silence rises to the grace, then the state set turns, once, and is counted."""
    async with world.controller() as controller:
        await world.kubectl.create_pool(POOL, ready_condition("True"))
        shown = []
        for step in itertools.count():
            now = controller.observer.moment()
            silence = controller.store.value("loopwatch_machinepool_silence_seconds", {"machinepool": POOL}, now)
            unknown = controller.store.value("loopwatch_machinepool_ready", {"machinepool": POOL, "status": "unknown"}, now)
            if silence is not None:
                shown.append((silence, unknown))
            if unknown == 1 or step > 100:
                break
            await world.passes(world.grace_seconds / 20)
        assert [unknown for _, unknown in shown] == [0.0] * (len(shown) - 1) + [1.0]
        assert shown[-1][0] > world.grace_seconds > shown[0][0]
        now = controller.observer.moment()
        assert controller.store.value("loopwatch_machinepool_lifecycle_marks_total", {"machinepool": POOL}, now) == 1
        to_unknown = {"machinepool": POOL, "to": "unknown"}
        assert controller.store.value("loopwatch_machinepool_ready_transitions_total", to_unknown, now) == 1
