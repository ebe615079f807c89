"""The machinepoollet stand-in does what IronCore's v0.5.0 was seen to do (facts: "What the real stack was seen to do"), on the sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from loopwatch.clock import Clock, SystemClock
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_CLASSES, MACHINE_POOLS, MACHINES, ObjectKey
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Fault, Forbid, Hang, LoseAnswer, Respond
from loopwatch.sandbox.machinepoollet import HeartbeatTimes, Machinepoollet, MachinepoolletExited, MachinepoolletSettings
from loopwatch.sandbox.runtime import MemoryRuntime, behaviours
from loopwatch.sandbox.transport import SandboxTransport
from tests.support.stepped import SteppedClock, stepped

POOL = "pool-a"
LEASE_KEY = ObjectKey(LEASE_NAMESPACE, POOL)
UNKNOWN = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "MachinePoolStatusUnknown",
    "message": "machinepoollet stopped posting machine pool status.",
    "observedGeneration": 1,
    "lastUpdateTime": "2026-05-01T13:00:00Z",
    "lastTransitionTime": "2026-05-01T13:00:00Z",
}
FOREIGN = {"type": "Cooled", "status": "True", "reason": "Fans", "message": "", "lastUpdateTime": None, "lastTransitionTime": None}


class World:
    """A sandbox, a runtime, and a client as by which faults know the machinepoollet."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SteppedClock()
        self.api = ApiServer(self.clock)
        self.api.create_namespace(LEASE_NAMESPACE)
        self.runtime = MemoryRuntime(self.clock, behaviours.Ok({"small": 4, "large": 1}))

    def machinepoollet(self, **settings: Any) -> Machinepoollet:
        """A machinepoollet that does not run yet."""
        chosen = MachinepoolletSettings(POOL, provider_id="test://pool-a", **settings)
        return Machinepoollet(chosen, self.runtime, SandboxTransport(self.api, client="machinepoollet"), self.clock)

    @contextlib.asynccontextmanager
    async def running(
        self, machinepoollet: Machinepoollet | None = None, seconds: float = 0.1, **settings: Any
    ) -> AsyncIterator[Machinepoollet]:
        """It runs, for `seconds` before the context is entered; at the end it is killed."""
        machinepoollet = machinepoollet or self.machinepoollet(**settings)
        task = asyncio.create_task(machinepoollet.run())
        try:
            await self.clock.sleep(seconds)
            if task.done():
                task.result()
            yield machinepoollet
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    @property
    def pool(self) -> dict[str, Any]:
        """The pool as it stands."""
        pool = self.api.object(MACHINE_POOLS, POOL)
        assert pool is not None
        return pool

    @property
    def ready(self) -> dict[str, Any] | None:
        """Its Ready condition."""
        conditions: list[dict[str, Any]] = self.pool.get("status", {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == "Ready"), None)

    @property
    def ready_status(self) -> str | None:
        """The status of that."""
        return self.ready["status"] if self.ready else None

    @property
    def lease(self) -> dict[str, Any] | None:
        """The spec of the pool's lease."""
        lease = self.api.object(LEASES, LEASE_KEY)
        return None if lease is None else lease["spec"]

    def write_conditions(self, *conditions: dict[str, Any]) -> None:
        """Another hand writes the list."""
        pool = self.pool
        pool["status"] = pool.get("status", {}) | {"conditions": list(conditions)}
        self.api.put_object(MACHINE_POOLS, pool)

    def writes(self, resource: str, since: float = 0.0, subresource: str = "") -> list[float]:
        """When the machinepoollet wrote, in seconds since it may have begun."""
        records = self.api.requests.matching(client="machinepoollet", resource=resource, subresource=subresource, since=since)
        return [round(record.at - 1000.0, 3) for record in records if record.verb in {"create", "update", "patch"}]


async def exited(machinepoollet: Machinepoollet) -> str:
    with pytest.raises(MachinepoolletExited) as end:
        await machinepoollet.run()
    return str(end.value)


# -- what it writes ---------------------------------------------------------------------------------------------------


@stepped
async def test_it_makes_its_pool_lease_and_ready_condition_at_once() -> None:
    world = World()
    async with world.running() as machinepoollet:
        assert world.pool["spec"] == {"providerID": "test://pool-a"}
        assert world.lease == {
            "holderIdentity": machinepoollet.holder_identity,
            "leaseDurationSeconds": 40,
            "acquireTime": "2026-05-01T12:00:00.000000Z",
            "renewTime": "2026-05-01T12:00:00.000000Z",
        }
        assert world.ready == {
            "type": "Ready",
            "status": "True",
            "reason": "HeartbeatReceived",
            "message": "machine runtime status probe succeeded",
            "observedGeneration": 1,
            "lastUpdateTime": "2026-05-01T12:00:00Z",
            "lastTransitionTime": "2026-05-01T12:00:00Z",
        }
        assert world.pool["status"]["state"] == "Ready"
        assert world.pool["status"]["daemonEndpoints"] == {"machinepoolletEndpoint": {"port": 20250}}


def test_its_holder_identity_is_the_pool_and_a_uuid4_of_its_own() -> None:
    identities = {World(SystemClock()).machinepoollet().holder_identity for _ in range(3)}
    assert len(identities) == 3
    assert all(re.fullmatch(r"pool-a_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", each) for each in identities)


@stepped
async def test_a_pool_that_is_there_keeps_what_others_wrote() -> None:
    world = World()
    world.api.put_object(
        MACHINE_POOLS, {"metadata": {"name": POOL, "labels": {"zone": "a"}}, "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
    )
    async with world.running():
        assert world.pool["metadata"]["labels"] == {"zone": "a"}
        assert world.pool["spec"] == {"providerID": "test://pool-a", "taints": [{"key": "x", "effect": "NoSchedule"}]}


@stepped
async def test_a_steady_heartbeat_is_one_lease_patch_an_interval_and_the_pool_does_not_change() -> None:
    world = World()
    async with world.running(seconds=5.0):
        version = world.pool["metadata"]["resourceVersion"]
        began = world.clock.monotonic()
        await world.clock.sleep(60.0)
        assert world.writes("leases", since=began) == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
        assert world.writes("machinepools", since=began) == world.writes("machinepools", since=began, subresource="status") == []
        assert world.pool["metadata"]["resourceVersion"] == version
        assert world.lease is not None
        assert world.lease["renewTime"] == "2026-05-01T12:01:00.000000Z"
        assert world.lease["acquireTime"] == "2026-05-01T12:00:00.000000Z"


@stepped
async def test_a_renewal_says_the_renew_time_alone_and_the_duration_only_where_it_differs() -> None:
    world = World()
    async with world.running(seconds=15.0):
        lease = world.api.object(LEASES, LEASE_KEY)
        assert lease is not None
        managers = {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in lease["metadata"]["managedFields"]}
        assert set(managers["machinepoollet"]) == {"f:acquireTime", "f:holderIdentity", "f:leaseDurationSeconds", "f:renewTime"}
        lease["spec"] |= {"leaseDurationSeconds": 7, "leaseTransitions": 3}
        world.api.put_object(LEASES, lease)
        await world.clock.sleep(10.0)
        assert world.lease is not None
        assert world.lease["leaseDurationSeconds"] == 40
        assert world.lease["leaseTransitions"] == 3


@stepped
async def test_times_keep_six_digits_when_the_microseconds_are_zero() -> None:
    world = World()
    async with world.running(seconds=10.1):
        assert world.lease is not None
        assert re.fullmatch(r"2026-05-01T12:00:10\.0{6}Z", world.lease["renewTime"])


@stepped
async def test_capacity_is_what_the_runtime_said_at_the_start_for_the_classes_that_the_api_knows() -> None:
    world = World()
    for name in ("small", "unknown-to-the-runtime"):
        world.api.put_object(MACHINE_CLASSES, {"metadata": {"name": name}, "capabilities": {"cpu": "1", "memory": "1Gi"}})
    async with world.running():
        await world.runtime.behave(behaviours.Ok({"small": 99}))
        await world.clock.sleep(60.0)
        assert world.pool["status"]["availableMachineClasses"] == [{"name": "small"}]
        assert world.pool["status"]["capacity"] == {"class/machine.small": "4"}
        assert world.pool["status"]["allocatable"] == {"class/machine.small": "4"}


@stepped
async def test_any_number_of_machines_of_a_class_takes_one_away_as_v0_5_0_counts() -> None:
    world = World()
    world.api.create_namespace("default")
    world.api.put_object(MACHINE_CLASSES, {"metadata": {"name": "small"}, "capabilities": {"cpu": "1", "memory": "1Gi"}})
    async with world.running():
        for name, pool in (("m1", POOL), ("m2", POOL), ("m3", "pool-b")):
            spec = {"machineClassRef": {"name": "small"}, "machinePoolRef": {"name": pool}}
            world.api.put_object(MACHINES, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        await world.clock.sleep(0.1)
        assert world.pool["status"]["allocatable"] == {"class/machine.small": "3"}


# -- the heartbeat's rhythm -------------------------------------------------------------------------------------------


@stepped
async def test_the_probe_comes_before_the_lease_and_a_hanging_one_delays_the_renewal() -> None:
    world = World()
    async with world.running(seconds=5.0):
        began = world.clock.monotonic()
        await world.runtime.behave(behaviours.Hang())
        await world.clock.sleep(31.0)
        assert world.writes("leases", since=began) == [15.0, 25.0, 35.0]


@stepped
async def test_slow_ticks_are_dropped_but_one_and_the_grid_stays() -> None:
    world = World()
    async with world.running(seconds=5.0, heartbeat=HeartbeatTimes(10.0, 40.0, 25.0)):
        await world.runtime.behave(behaviours.Slow(22.0))
        await world.clock.sleep(25.0)  # the tick of 10 s ends at 32 s; that of 20 s is kept, that of 30 s dropped
        await world.runtime.behave(behaviours.Slow(1.0))
        began = world.clock.monotonic()
        await world.clock.sleep(25.0)
        assert world.writes("leases", since=began) == [32.0, 33.0, 41.0, 51.0]


@stepped
async def test_the_lease_is_renewed_while_the_runtime_fails_and_ready_follows_the_runtime() -> None:
    world = World()
    async with world.running(seconds=5.0):
        await world.runtime.behave(behaviours.Error("Unavailable", "libvirt is gone"))
        await world.clock.sleep(10.0)
        ready = world.ready
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("False", "RuntimeUnreachable")
        assert ready["message"] == "rpc error: code = Unavailable desc = libvirt is gone"
        assert ready["lastTransitionTime"] == ready["lastUpdateTime"] == "2026-05-01T12:00:10Z"
        assert world.lease is not None
        assert world.lease["renewTime"] == "2026-05-01T12:00:10.000000Z"
        await world.runtime.behave(behaviours.Ok())
        await world.clock.sleep(10.0)
        assert world.ready_status == "True"


@stepped
async def test_a_hung_runtime_is_false_at_tick_plus_timeout_in_gos_words() -> None:
    world = World()
    async with world.running(seconds=5.0):
        await world.runtime.behave(behaviours.Hang())
        await world.clock.sleep(9.9)
        assert world.ready_status == "True"
        await world.clock.sleep(0.2)
        assert world.ready is not None
        assert world.ready["message"] == "rpc error: code = DeadlineExceeded desc = context deadline exceeded"


@stepped
async def test_another_message_alone_is_written_too_but_moves_no_transition() -> None:
    world = World()
    async with world.running(seconds=5.0):
        await world.runtime.behave(behaviours.Error("Unavailable", "first"))
        await world.clock.sleep(10.0)
        await world.runtime.behave(behaviours.Error("Unavailable", "second"))
        await world.clock.sleep(10.0)
        assert world.ready is not None
        assert world.ready["message"].endswith("second")
        assert (world.ready["lastTransitionTime"], world.ready["lastUpdateTime"]) == ("2026-05-01T12:00:10Z", "2026-05-01T12:00:20Z")


# -- the lease in other hands -----------------------------------------------------------------------------------------


@stepped
async def test_a_lease_is_taken_from_whoever_holds_it_however_fresh() -> None:
    world = World()
    spec = {"holderIdentity": "pool-a_other", "leaseDurationSeconds": 40, "renewTime": "2026-05-01T12:00:00.000000Z", "leaseTransitions": 5}
    world.api.put_object(LEASES, {"metadata": {"name": POOL, "namespace": LEASE_NAMESPACE, "annotations": {"a": "b"}}, "spec": spec})
    async with world.running() as machinepoollet:
        assert world.lease is not None
        assert world.lease["holderIdentity"] == machinepoollet.holder_identity
        assert world.lease["acquireTime"] == world.lease["renewTime"]
        assert world.lease["leaseTransitions"] == 5
        lease = world.api.object(LEASES, LEASE_KEY)
        assert lease is not None
        assert lease["metadata"]["annotations"] == {"a": "b"}
        assert any("Taking ownership of stale machine pool lease previousHolder=pool-a_other" in line for line in machinepoollet.log)


@stepped
async def test_two_of_one_pool_take_the_lease_in_turns_and_ready_stays_true() -> None:
    world = World()
    async with world.running() as first, world.running(seconds=5.0) as second:
        holders = set()
        for _ in range(6):
            await world.clock.sleep(5.0)
            assert world.lease is not None
            holders.add(world.lease["holderIdentity"])
            assert world.ready_status == "True"
        assert holders == {first.holder_identity, second.holder_identity}


@stepped
async def test_a_deleted_lease_is_made_again_at_the_next_tick() -> None:
    world = World()
    async with world.running(seconds=5.0):
        world.api.delete_object(LEASES, LEASE_KEY)
        await world.clock.sleep(4.9)
        assert world.api.object(LEASES, LEASE_KEY) is None
        await world.clock.sleep(0.2)
        assert world.lease is not None
        assert world.ready_status == "True"


@stepped
async def test_a_lease_error_is_logged_and_nothing_else() -> None:
    world = World()
    async with world.running(seconds=5.0) as machinepoollet:
        world.api.faults.add(Fault(effect=Forbid(user="poollet"), verb="patch", resource="leases"))
        await world.clock.sleep(20.0)
        failures = [line for line in machinepoollet.log if line.startswith("Failed to reconcile machine pool lease: ")]
        assert len(failures) == 2
        assert "forbidden" in failures[0]
        assert world.ready_status == "True"
        assert await machinepoollet.healthz() == 200


@stepped
async def test_no_namespace_for_leases_is_a_lease_error_and_no_more() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Respond(404, message="namespaces not found"), verb="create", resource="leases"))
    async with world.running(seconds=15.0) as machinepoollet:
        assert world.lease is None
        assert world.ready_status == "True"
        assert [line for line in machinepoollet.log if "namespaces not found" in line]


@stepped
async def test_leases_that_may_not_be_listed_at_the_start_block_the_first_tick_for_ever_while_healthz_says_200() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Forbid(user="poollet"), verb="list", resource="leases"))
    async with world.running(seconds=119.0) as machinepoollet:
        assert world.lease is None
        assert world.ready is None
        assert world.pool["status"]["state"] == "Ready"
        assert world.runtime.status_calls == 2  # the start's and the first tick's
        assert await machinepoollet.healthz() == 200


@stepped
async def test_after_two_minutes_of_that_the_process_exits() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Forbid(user="poollet"), verb="list", resource="leases"))
    began = world.clock.monotonic()
    assert await exited(world.machinepoollet()) == "timed out waiting for cache to be synced"
    assert world.clock.monotonic() - began == pytest.approx(120.0)


@stepped
async def test_a_right_to_list_leases_that_comes_late_ends_the_trap() -> None:
    world = World()
    fault = world.api.faults.add(Fault(effect=Forbid(user="poollet"), verb="list", resource="leases"))
    async with world.running(seconds=50.0):
        world.api.faults.remove(fault)
        await world.clock.sleep(31.0)
        assert world.lease is not None
        assert world.ready_status == "True"


# -- the condition in other hands -------------------------------------------------------------------------------------


@stepped
async def test_unknown_is_overwritten_within_milliseconds_while_it_lives() -> None:
    world = World()
    async with world.running(seconds=5.0):
        for status, behaviour in (("True", behaviours.Ok()), ("False", behaviours.Error())):
            await world.runtime.behave(behaviour)
            await world.clock.sleep(10.0)
            world.write_conditions(UNKNOWN)
            assert world.ready_status == "Unknown"
            await world.clock.sleep(0.025)
            assert world.ready_status == status


@stepped
async def test_before_its_first_probe_it_has_no_opinion_and_leaves_unknown_alone() -> None:
    world = World()
    world.api.put_object(MACHINE_POOLS, {"metadata": {"name": POOL}, "spec": {}})
    world.write_conditions(UNKNOWN)
    world.api.faults.add(Fault(effect=Forbid(user="poollet"), verb="list", resource="leases"))
    async with world.running(seconds=60.0):
        assert world.ready == UNKNOWN


@stepped
async def test_foreign_conditions_are_kept_and_a_new_generation_is_observed() -> None:
    world = World()
    async with world.running(seconds=5.0):
        assert world.ready is not None
        world.write_conditions(FOREIGN, world.ready)
        pool = world.pool
        pool["spec"]["taints"] = [{"key": "maintenance", "effect": "NoExecute"}]
        world.api.put_object(MACHINE_POOLS, pool)
        await world.clock.sleep(0.1)
        conditions = world.pool["status"]["conditions"]
        assert [condition["type"] for condition in conditions] == ["Cooled", "Ready"]
        assert conditions[0] == {"type": "Cooled", "status": "True", "reason": "Fans", "message": ""}  # nulls are not kept
        assert conditions[1]["observedGeneration"] == 2
        assert conditions[1]["lastTransitionTime"] == "2026-05-01T12:00:00Z"


@stepped
async def test_it_writes_from_its_cache_so_that_what_it_has_not_seen_is_lost() -> None:
    world = World()
    async with world.running(seconds=5.0) as machinepoollet:
        assert world.ready is not None
        machinepoollet.pause()
        world.write_conditions(world.ready, FOREIGN)
        await world.clock.sleep(0.1)
        world.api.faults.add(Fault(effect=Hang(), verb="watch", resource="machinepools", client="machinepoollet"))
        world.write_conditions(world.ready, FOREIGN, FOREIGN | {"type": "Late"})
        await world.runtime.behave(behaviours.Error())
        machinepoollet.resume()
        await world.clock.sleep(10.0)
        assert [condition["type"] for condition in world.pool["status"]["conditions"]] == ["Ready", "Cooled"]
        assert world.ready_status == "False"


@stepped
async def test_a_status_that_cannot_be_written_is_tried_again_within_milliseconds_and_then_ever_less() -> None:
    world = World()
    async with world.running(seconds=5.0) as machinepoollet:
        fault = world.api.faults.add(Fault(effect=Respond(500), verb="patch", resource="machinepools", subresource="status"))
        await world.runtime.behave(behaviours.Error())
        await world.clock.sleep(10.0)
        tries = world.writes("machinepools", since=1006.0, subresource="status")
        assert tries[:4] == [10.0, 10.005, 10.015, 10.035]
        assert [line for line in machinepoollet.log if line.startswith("Reconciler error: ")]
        assert world.ready_status == "True"  # stale: the lease is renewed, the condition is not
        world.api.faults.remove(fault)
        await world.clock.sleep(20.0)
        assert world.ready_status == "False"


@stepped
async def test_a_pool_deleted_by_hand_is_not_made_again_but_its_lease_lives_on() -> None:
    world = World()
    async with world.running(seconds=5.0):
        world.api.delete_object(MACHINE_POOLS, POOL)
        await world.clock.sleep(60.0)
        assert world.api.object(MACHINE_POOLS, POOL) is None
        assert world.lease is not None
        assert world.lease["renewTime"] == "2026-05-01T12:01:00.000000Z"
        world.api.put_object(MACHINE_POOLS, {"metadata": {"name": POOL}, "spec": {}})
        await world.clock.sleep(0.015)
        assert world.ready_status == "True"


@stepped
async def test_a_pool_that_is_being_deleted_is_left_alone() -> None:
    world = World()
    async with world.running(seconds=5.0):
        pool = world.pool
        pool["metadata"]["finalizers"] = ["test/hold"]
        world.api.put_object(MACHINE_POOLS, pool)
        world.api.delete_object(MACHINE_POOLS, POOL)
        assert world.pool["metadata"]["deletionTimestamp"]
        await world.runtime.behave(behaviours.Error())
        await world.clock.sleep(20.0)
        assert world.ready_status == "True"


# -- start, stop, continue, end ---------------------------------------------------------------------------------------


@stepped
async def test_a_runtime_that_is_down_at_the_start_ends_it_at_once() -> None:
    world = World()
    await world.runtime.kill()
    assert (await exited(world.machinepoollet())).startswith("error getting machine runtime version: rpc error: code = Unavailable desc = ")
    assert world.api.object(MACHINE_POOLS, POOL) is None


@pytest.mark.parametrize("behaviour", [behaviours.Error(), behaviours.Hang()])
@stepped
async def test_a_runtime_whose_status_fails_at_the_start_ends_it_after_ten_seconds(behaviour: behaviours.AnyBehaviour) -> None:
    world = World()
    await world.runtime.behave(behaviour)
    began = world.clock.monotonic()
    assert await exited(world.machinepoollet()) == "error waiting for machine class mapper to sync: context deadline exceeded"
    assert world.clock.monotonic() - began == pytest.approx(10.0)
    assert world.pool["spec"] == {"providerID": "test://pool-a"}
    assert world.ready is None


@pytest.mark.parametrize("effect", [Respond(500, message="etcd is slow"), Forbid(user="poollet"), LoseAnswer(applied=False)])
@stepped
async def test_a_pool_that_cannot_be_applied_ends_it(effect: Respond | Forbid | LoseAnswer) -> None:
    world = World()
    world.api.faults.add(Fault(effect=effect, resource="machinepools"))
    assert (await exited(world.machinepoollet())).startswith("error applying machine pool: ")


@stepped
async def test_ended_it_leaves_lease_and_condition_and_a_successor_takes_over() -> None:
    world = World()
    async with world.running(seconds=15.0) as first:
        pass
    lease, pool = world.lease, world.pool
    await world.clock.sleep(60.0)
    assert (world.lease, world.pool) == (lease, pool)
    with pytest.raises(ConnectionRefusedError):
        await first.healthz()
    async with world.running() as second:
        assert world.lease is not None
        assert world.lease["holderIdentity"] == second.holder_identity != first.holder_identity


@stepped
async def test_stopped_it_does_nothing_and_does_not_answer_and_continued_it_is_true_within_milliseconds() -> None:
    world = World()
    async with world.running(seconds=5.0) as machinepoollet:
        machinepoollet.pause()
        began = world.clock.monotonic()
        await world.clock.sleep(52.0)
        assert world.writes("leases", since=began) == []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5.0):
                await machinepoollet.healthz()
        world.write_conditions(UNKNOWN)
        await world.clock.sleep(1.0)
        assert world.ready_status == "Unknown"
        machinepoollet.resume()
        await world.clock.sleep(0.025)
        assert world.ready_status == "True"
        assert await machinepoollet.healthz() == 200
        assert len(world.writes("leases", since=began)) == 1


@stepped
async def test_before_v0_5_0_there_is_no_heartbeat_at_all() -> None:
    world = World()
    async with world.running(seconds=60.0, before_v0_5_0=True) as machinepoollet:
        assert world.pool["status"]["state"] == "Ready"
        assert "conditions" not in world.pool["status"]
        assert world.lease is None
        assert await machinepoollet.healthz() == 200
        assert world.api.requests.matching(client="machinepoollet", resource="leases") == []
        assert world.runtime.status_calls == 1


# -- healthz ----------------------------------------------------------------------------------------------------------


@stepped
async def test_healthz_is_500_for_a_moment_after_the_start_and_again_once_the_runtime_was_gone_for_the_threshold() -> None:
    world = World()
    async with world.running(seconds=0.5) as machinepoollet:
        assert await machinepoollet.healthz() == 500
        await world.clock.sleep(1.0)
        assert await machinepoollet.healthz() == 200
        await world.runtime.kill()
        await world.clock.sleep(179.0)
        assert await machinepoollet.healthz() == 200
        assert world.ready_status == "False"
        await world.clock.sleep(2.0)
        assert await machinepoollet.healthz() == 500
        await world.runtime.start()
        await world.clock.sleep(1.0)
        assert await machinepoollet.healthz() == 200


@stepped
async def test_an_api_server_that_hangs_stops_the_lease_and_nothing_tells_in_healthz() -> None:
    world = World()
    async with world.running(seconds=5.0) as machinepoollet:
        fault = world.api.faults.add(Fault(effect=Hang()))
        await world.clock.sleep(60.0)
        assert await machinepoollet.healthz() == 200
        world.api.faults.remove(fault)
        await world.clock.sleep(60.0)
        assert world.lease is not None
        assert world.lease["renewTime"] >= "2026-05-01T12:01:50"
        assert world.ready_status == "True"


async def test_over_http_healthz_answers_on_loopback_and_is_refused_once_the_process_has_ended() -> None:
    world = World(SystemClock())
    async with world.running(seconds=0.0, healthz_port=0) as machinepoollet:
        for _ in range(10_000):
            if machinepoollet.healthz_url:
                break
            await asyncio.sleep(0)
        url = machinepoollet.healthz_url or ""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as session:
            assert url.startswith("http://127.0.0.1:")
            async with session.get(url) as answer:
                assert answer.status == 500
                assert "[-]machine-events failed" in await answer.text()
            async with session.get(url.replace("healthz", "readyz")) as answer:
                assert answer.status == 200
            machinepoollet.pause()
            with pytest.raises(TimeoutError):
                await session.get(url, timeout=aiohttp.ClientTimeout(total=0.1))
            machinepoollet.resume()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)


# -- what it looks like on the wire -----------------------------------------------------------------------------------


@stepped
async def test_its_requests_carry_upstreams_user_agent_and_its_reads_are_four_lists_and_four_watches() -> None:
    world = World()
    async with world.running(seconds=60.0):
        records = world.api.requests.matching(since=1000.0)
        assert {record.client for record in records} == {"machinepoollet"}
        reads = [(record.verb, record.resource) for record in records if record.verb in {"get", "list", "watch"}]
        resources = ("machinepools", "machineclasses", "machines", "leases")
        assert sorted(reads) == sorted((verb, resource) for verb in ("list", "watch") for resource in resources)
        assert {record.query.split("&")[0] for record in records if record.resource == "machinepools" and record.verb == "list"} == {
            "fieldSelector=metadata.name=pool-a"
        }


@stepped
async def test_watches_that_end_break_or_are_told_410_go_on() -> None:
    world = World()
    async with world.running(seconds=5.0):
        for round_number in range(3):
            world.api.compact()
            fault = world.api.faults.add(Fault(effect=Respond(410, reason="Expired"), verb="watch", count=4))
            await world.clock.sleep(301.0)
            world.api.faults.remove(fault)
            world.write_conditions(UNKNOWN)
            await world.clock.sleep(31.0)
            assert world.ready_status == "True", round_number
