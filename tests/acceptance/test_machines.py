"""Machines beside pools, and a machinepoollet without a heartbeat: what only a third watch, or a sidecar, can tell."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from loopwatch.controller import Controller
from loopwatch.kube.resources import MACHINE_POOLS, MACHINES
from loopwatch.sandbox.faults import Effect, Fault, Forbid, NotServed
from loopwatch.sandbox.machinepoollet import Machinepoollet, MachinepoolletSettings
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import Ok
from tests.acceptance.world import KUBECONFIG, World, acceptance
from tests.support.pools import ready_condition

POOL = "pool-a"
OURS = {"machinepool": POOL}
SMALL = {"machinepool": POOL, "machine_class": "small"}
SANDBOX_ONLY = pytest.mark.skipif(bool(KUBECONFIG), reason="the fault needs the sandbox")


def value(controller: Controller, family: str, **labels: str) -> float | None:
    """One number, as a scrape of the controller shows it now."""
    return controller.store.value(f"loopwatch_{family}", labels, controller.observer.moment())


def stranded(controller: Controller) -> float | None:
    return value(controller, "machinepool_stranded_machines", **OURS)


@acceptance
async def test_machines_on_a_dead_pool_are_stranded_those_placed_there_later_too_and_free_again_when_it_returns(world: World) -> None:
    """IronCore v0.5.0's scheduler goes on placing Machines on a pool that is Unknown: this is what shows it."""
    kubectl = world.kubectl
    await kubectl.create_pool(POOL, ready_condition("True"))
    for name in ("one", "two"):
        await kubectl.create_machine(name, POOL)
        await kubectl.set_machine_state(name, "Running")
    async with world.controller() as controller:
        await world.until(lambda: stranded(controller) == 0, world.grace_seconds)
        await kubectl.when(lambda: kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2 + 1)
        await world.until(lambda: stranded(controller) == 2, world.grace_seconds)
        assert value(controller, "machinepool_machines", state="Running", **OURS) == 2, "as the dead poollet wrote it last"

        await kubectl.create_machine("three", None)
        await world.until(lambda: value(controller, "machines_unbound_pending", machine_class="small") == 1, world.grace_seconds)
        await kubectl.bind_machine("three", POOL)
        await world.until(lambda: stranded(controller) == 3, world.grace_seconds)
        assert value(controller, "machines_unbound_pending", machine_class="small") is None
        age = value(controller, "machinepool_oldest_pending_machine_age_seconds", **OURS)
        assert age is not None
        await world.passes(world.grace_seconds / 2)
        assert (value(controller, "machinepool_oldest_pending_machine_age_seconds", **OURS) or 0) >= age + world.grace_seconds * 0.49

        await kubectl.delete(MACHINES, "two")
        await world.until(lambda: stranded(controller) == 2, world.grace_seconds)
        await kubectl.set_conditions(POOL, ready_condition("True"))
        await world.until(lambda: stranded(controller) == 0, world.grace_seconds)
        assert value(controller, "machinepool_machines", state="Pending", **OURS) == 1


@acceptance
async def test_machines_of_a_deleted_pool_are_missing_it_until_it_is_made_again(world: World) -> None:
    kubectl = world.kubectl
    await kubectl.create_pool(POOL, ready_condition("True"))
    await kubectl.create_machine("one", POOL)
    await kubectl.create_machine("two", "never-made")
    async with world.controller() as controller:
        await world.until(lambda: value(controller, "machines_on_missing_pool") == 1, world.grace_seconds)
        await kubectl.delete(MACHINE_POOLS, POOL)
        await world.until(lambda: value(controller, "machines_on_missing_pool") == 2, world.grace_seconds)
        assert f'machinepool="{POOL}"' not in controller.store.render(controller.observer.moment()).decode()
        await kubectl.create_pool(POOL)
        await world.until(lambda: value(controller, "machines_on_missing_pool") == 1, world.grace_seconds)
        assert value(controller, "machinepool_machines", state="Pending", **OURS) == 1


@contextlib.asynccontextmanager
async def without_heartbeat(world: World, runtime: MemoryRuntime) -> AsyncIterator[Machinepoollet]:
    """A machinepoollet from before v0.5.0, until it is killed or the context ends."""
    settings = MachinepoolletSettings(POOL, before_v0_5_0=True)
    machinepoollet = Machinepoollet(settings, runtime, world.transport("machinepoollet"), world.clock)
    process = asyncio.create_task(machinepoollet.run())
    try:
        yield machinepoollet
    finally:
        process.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await process


@acceptance
async def test_a_machinepoollet_without_a_heartbeat_has_a_sidecar_report_for_it_and_is_marked_when_it_dies(world: World) -> None:
    """From `never reported` to Ready by a sidecar in mode auto, beside the poollet's own writes, to Unknown once the poollet is gone."""
    kubectl, grace, beat = world.kubectl, world.seconds(1), world.seconds(0.1)
    runtime = MemoryRuntime(world.clock)
    await runtime.behave(Ok({"small": 4}))
    await kubectl.create_machine_class("small")
    beats: dict[str, Any] = {
        "heartbeat_interval_seconds": beat,
        "heartbeat_lease_duration_seconds": max(round(beat * 4), 1),
        "heartbeat_status_timeout_seconds": beat / 2,
    }

    async with world.controller(machine_pool_lifecycle_grace_period_seconds=grace, mark_never_reported=False) as controller:
        async with without_heartbeat(world, runtime) as machinepoollet:

            async def answers() -> bool:
                try:
                    return bool(await machinepoollet.healthz())
                except ConnectionRefusedError:
                    return False

            await world.until(lambda: value(controller, "machinepool_capacity", **SMALL) == 4, grace)
            await world.until(lambda: value(controller, "machinepool_never_reported", **OURS) == 1, grace)
            await world.passes(grace * 1.5)
            assert kubectl.ready(POOL) == "", "nothing marks it: --mark-never-reported=false"

            async with world.sidecar(POOL, runtime, machinepoollet=answers, **beats) as sidecar:
                await kubectl.when(lambda: kubectl.ready(POOL) == "True" and POOL in kubectl.leases, grace)
                assert kubectl.leases[POOL]["spec"]["holderIdentity"] == sidecar.identity
                assert sidecar.store.value("loopwatch_machinepool_capacity", SMALL, sidecar.observer.moment()) == 4
                assert sidecar.store.value("loopwatch_machinepool_never_reported", OURS, sidecar.observer.moment()) == 0
                await world.until(lambda: value(controller, "machinepool_never_reported", **OURS) == 0, grace)

                for name in ("one", "two"):
                    await kubectl.create_machine(name, POOL)
                await world.until(lambda: value(controller, "machinepool_allocatable", **SMALL) == 3, grace)
                assert value(controller, "machinepool_allocatable_computed", **SMALL) == 2, (
                    "v0.5.0 and before take one off for two Machines"
                )
                await world.passes(grace * 3)
                assert kubectl.transitions(POOL) == ["", "True"], "the poollet's own writes to the status leave Ready alone"
                assert value(controller, "machinepool_late_heartbeats_total", **OURS) == 0
                assert value(controller, "machinepool_ready_without_lease", **OURS) == 0

        # The machinepoollet is gone with its context; its sidecar, which would vouch for it no longer, too.
        died = world.clock.monotonic()
        seen_at = await kubectl.when(lambda: kubectl.ready(POOL) == "Unknown", grace * 2 + 1)
        assert grace * 0.8 <= seen_at - died
        await world.until(lambda: stranded(controller) == 2, grace)


@acceptance
async def test_a_sidecar_stops_to_vouch_for_a_machinepoollet_without_a_heartbeat_that_died(world: World) -> None:
    kubectl, grace, beat = world.kubectl, world.seconds(1), world.seconds(0.1)
    runtime = MemoryRuntime(world.clock)
    async with world.controller(machine_pool_lifecycle_grace_period_seconds=grace), contextlib.AsyncExitStack() as life:
        machinepoollet = await life.enter_async_context(without_heartbeat(world, runtime))

        async def answers() -> bool:
            try:
                return bool(await machinepoollet.healthz())
            except ConnectionRefusedError:
                return False

        beats: dict[str, Any] = {"heartbeat_interval_seconds": beat, "heartbeat_status_timeout_seconds": beat / 2}
        async with world.sidecar(POOL, runtime, machinepoollet=answers, **beats) as sidecar:
            await kubectl.when(lambda: kubectl.ready(POOL) == "True" and POOL in kubectl.leases, grace)
            await life.aclose()
            died = world.clock.monotonic()
            seen_at = await kubectl.when(lambda: kubectl.ready(POOL) == "Unknown", grace * 2 + 1)
            assert seen_at - died >= grace * 0.8
            assert sidecar.standing.duty.state.value == "stopped"
            await world.passes(grace)
            assert kubectl.ready(POOL) == "Unknown", "the sidecar does not say otherwise"


@SANDBOX_ONLY
@pytest.mark.parametrize("effect", [Forbid(), NotServed()], ids=["forbidden", "not served"])
def test_machines_that_cannot_be_watched_are_absent_and_nothing_else_suffers(effect: Effect) -> None:
    @acceptance
    async def play(world: World) -> None:
        assert world.api is not None
        kubectl, faults = world.kubectl, world.api.faults
        number = faults.add(Fault(effect=effect, resource="machines", client="controller"))
        await kubectl.create_pool(POOL, ready_condition("True"))
        await kubectl.create_machine("one", POOL)
        async with world.controller() as controller:
            await kubectl.when(lambda: kubectl.ready(POOL) == "Unknown", world.grace_seconds * 1.2)
            assert stranded(controller) is None
            assert value(controller, "machines_on_missing_pool") is None
            assert value(controller, "machinepool_maintenance", **OURS) == 0
            assert value(controller, "reflector_synced", resource="machines") in {None, 0}
            assert value(controller, "machinepool_lifecycle_blind_seconds", resource="machinepools") == 0
            assert controller.health.readiness.missing() == []

            faults.remove(number)
            await world.until(lambda: stranded(controller) == 1, world.grace_seconds * 2)

            # Lost again, with a watch that is open: the copy is shown until it is stale.
            faults.add(Fault(effect=effect, resource="machines", client="controller"))
            times = world.reflector_times()
            await world.until(lambda: stranded(controller) is None, times.watch_seconds * 1.25 + times.read_seconds * 3)

    play()


@SANDBOX_ONLY
@acceptance
async def test_without_the_setting_nobody_asks_for_machines(world: World) -> None:
    assert world.api is not None
    await world.kubectl.create_pool(POOL, ready_condition("True"))
    await world.kubectl.create_machine("one", POOL)
    async with world.controller(machines=False) as controller:
        await world.passes(world.grace_seconds)
        assert world.api.requests.matching(client="controller", resource="machines") == []
        assert stranded(controller) is None
        assert value(controller, "machinepool_maintenance", **OURS) == 0
