"""The heartbeat's acceptance cases of IronCore v0.5.0, (n) to (p): interval 500 ms, lease 3 s on the world's scale."""

from __future__ import annotations

from loopwatch.kube.resources import MACHINE_POOLS
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import Error
from tests.acceptance.world import World, acceptance

POOL = "pool-a"


@acceptance
async def test_n_a_lease_is_created_and_renewed_and_ready_turns_true(world: World) -> None:
    await world.kubectl.create_pool(POOL)
    async with world.sidecar(POOL, MemoryRuntime(world.clock)) as sidecar:
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True" and POOL in world.kubectl.leases, world.seconds(1))
        lease = world.kubectl.leases[POOL]
        assert lease["spec"]["holderIdentity"] == sidecar.identity
        assert sidecar.identity.startswith(f"{POOL}_")
        assert lease["spec"]["leaseDurationSeconds"] == round(world.seconds(3))
        first = lease["spec"]["renewTime"]
        assert first == lease["spec"]["acquireTime"]
        [ready] = world.kubectl.pools[POOL]["status"]["conditions"]
        assert (ready["status"], ready["reason"]) == ("True", "HeartbeatReceived")
        assert ready["message"] == "machine runtime status probe succeeded"
        assert ready["observedGeneration"] == world.kubectl.pools[POOL]["metadata"]["generation"]
        await world.kubectl.when(lambda: world.kubectl.leases[POOL]["spec"]["renewTime"] > first, world.seconds(1))
        assert "leaseTransitions" not in world.kubectl.leases[POOL]["spec"]
        assert "ownerReferences" not in world.kubectl.leases[POOL]["metadata"]


@acceptance
async def test_o_ticks_that_change_nothing_leave_the_pools_resource_version_alone(world: World) -> None:
    await world.kubectl.create_pool(POOL)
    async with world.sidecar(POOL, MemoryRuntime(world.clock)):
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True", world.seconds(1))
        before = (await world.kubectl.get(MACHINE_POOLS, POOL))["metadata"]["resourceVersion"]
        renewed = world.kubectl.leases.get(POOL, {}).get("spec", {}).get("renewTime", "")
        await world.passes(world.seconds(2))
        assert (await world.kubectl.get(MACHINE_POOLS, POOL))["metadata"]["resourceVersion"] == before
        assert world.kubectl.leases[POOL]["spec"]["renewTime"] != renewed


@acceptance
async def test_p_a_probe_error_turns_ready_false_with_the_error_as_its_message(world: World) -> None:
    await world.kubectl.create_pool(POOL)
    runtime = MemoryRuntime(world.clock)
    async with world.sidecar(POOL, runtime):
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True", world.seconds(1))
        await runtime.behave(Error("Unavailable", "the hypervisor is gone"))
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "False", world.seconds(1.5))
        [ready] = world.kubectl.pools[POOL]["status"]["conditions"]
        assert (ready["status"], ready["reason"]) == ("False", "RuntimeUnreachable")
        assert ready["message"] == "rpc error: code = Unavailable desc = the hypervisor is gone"
