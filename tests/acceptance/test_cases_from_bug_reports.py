"""Cases 11, 13, 15, 17, 19, 21 and 45 from public bug reports of comparable tools: the whole kind of each, not one input.

Plays on the world's scale: upstream's 10 s heartbeat is half a second here (sandbox), the grace of 50 s half a second times the scale.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS
from loopwatch.sandbox.faults import Fault, Unauthorized
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import Hang, Ok
from loopwatch.settings.model import Mode
from tests.acceptance.world import KUBECONFIG, World, acceptance, running
from tests.support.pools import ready_condition

POOL = "pool-a"
SANDBOX_ONLY = pytest.mark.skipif(bool(KUBECONFIG), reason="the fault needs the sandbox; tests/e2e has the real server's share of it")
HOUR = dt.timedelta(hours=1)


def stamp(moment: dt.datetime) -> str:
    """A renewTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@acceptance
async def test_case_11_clocks_that_jump_never_make_a_renewed_pool_unknown_and_silence_does_once(world: World) -> None:
    """A heartbeat whose renewTime runs backwards is a heartbeat; the controller's own wall clock does not matter at all."""
    beat = world.grace_seconds / 5
    began = world.clock.utcnow()
    async with world.controller():
        await world.kubectl.create_lease(POOL, stamp(began))
        await world.kubectl.create_pool(POOL, ready_condition("True"))

        async def renew(number: int) -> None:
            await world.kubectl.renew(POOL, stamp(began - (number + 1) * HOUR + dt.timedelta(seconds=10 * number)))
            if world.api is not None and number == 5:
                world.clock.jump_wall(86_400)  # type: ignore[attr-defined]  # the sandbox's world has a SteppedClock

        async with running(world.every(beat, renew)):
            await world.passes(world.grace_seconds * (6 if world.api else 3))
        last = world.clock.monotonic()
        assert world.kubectl.transitions(POOL) == ["", "True"]
        seen_at = await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2)
        assert world.grace_seconds * 0.75 <= seen_at - last <= world.grace_seconds * 1.2 + (0.5 if world.api is None else 0)


@acceptance
async def test_case_13_a_deleted_pool_ends_its_leases_and_a_new_one_begins_anew(world: World) -> None:
    """No renewal and no lease without the pool; Ready within a beat once it is back; a lease deleted alone is back without a flip."""
    interval = world.seconds(0.5)
    await world.kubectl.create_pool(POOL)
    async with world.controller(machine_pool_lifecycle_grace_period_seconds=interval * 8), world.sidecar(POOL, MemoryRuntime(world.clock)):
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True", interval * 2)
        await world.passes(interval * 3)
        await world.kubectl.delete(MACHINE_POOLS, POOL)
        await world.passes(interval)
        left = world.kubectl.leases[POOL]["metadata"]["resourceVersion"]
        await world.passes(interval * 4)
        assert world.kubectl.leases[POOL]["metadata"]["resourceVersion"] == left
        await world.kubectl.delete(LEASES, POOL)
        await world.passes(interval * 4)
        assert POOL not in world.kubectl.leases
        await world.kubectl.create_pool(POOL)
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True" and POOL in world.kubectl.leases, interval)
        await world.kubectl.delete(LEASES, POOL)
        await world.kubectl.when(lambda: POOL not in world.kubectl.leases, interval)
        await world.kubectl.when(lambda: POOL in world.kubectl.leases, interval * 1.1)
        await world.passes(interval * 10)
        assert "Unknown" not in world.kubectl.transitions(POOL)
        assert world.kubectl.ready(POOL) == "True"


@acceptance
async def test_case_15_two_reporters_show_as_a_conflict_that_ends_with_one_of_them(world: World) -> None:
    """In `report` the holder alternates and the conflict shows, Ready does not flip; it ends within three lease durations."""
    interval, lease = world.seconds(0.5), round(world.seconds(3) / 3) or 1
    again: dict[str, Any] = {"mode": Mode.REPORT, "heartbeat_lease_duration_seconds": max(lease, 1)}
    labels = {"machinepool": POOL}
    await world.kubectl.create_pool(POOL)
    runtime = MemoryRuntime(world.clock)
    async with world.controller(machine_pool_lifecycle_grace_period_seconds=world.seconds(4)) as controller:

        def value(family: str) -> float | None:
            return controller.store.value(f"loopwatch_machinepool_{family}", labels, controller.observer.moment())

        async with world.sidecar(POOL, runtime, **again):
            await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True", interval * 2)
            async with world.sidecar(POOL, runtime, client="sidecar-2", **again):
                await world.passes(interval * 8)
                assert (value("lease_holder_changes_total") or 0) >= 6
                assert value("lease_holder_conflict") == 1
            await world.passes(3 * lease + interval * 2)
            assert value("lease_holder_conflict") == 0
        assert world.kubectl.transitions(POOL) == ["", "True"]


@acceptance
async def test_case_15_in_auto_the_second_sidecar_only_stands_by(world: World) -> None:
    interval = world.seconds(0.5)
    await world.kubectl.create_pool(POOL)
    runtime = MemoryRuntime(world.clock)
    async with world.sidecar(POOL, runtime) as first:
        await world.kubectl.when(lambda: POOL in world.kubectl.leases, interval * 2)
        async with world.sidecar(POOL, runtime, client="sidecar-2") as second:
            await world.passes(interval * 8)
            assert second.standing.duty.state.value == "standby"
            assert first.standing.duty.state.value == "reporting"
            assert world.kubectl.leases[POOL]["spec"]["holderIdentity"] == first.identity


def test_case_15_identities_differ_where_host_and_pool_are_the_same() -> None:
    @acceptance
    async def play(world: World) -> None:
        async with world.sidecar(POOL, MemoryRuntime(world.clock)) as one, world.sidecar(POOL, MemoryRuntime(world.clock)) as other:
            assert one.identity != other.identity
            assert uuid.UUID(one.identity.removeprefix(f"{POOL}_")).version == 4

    play()


@acceptance
async def test_case_17_a_watch_that_hangs_for_ever_is_opened_anew_and_a_dead_pool_marked_in_time(world: World) -> None:
    """Half-open: the stream says nothing more and never ends. The decision's timer runs by its own clock."""
    async with world.controller() as controller:
        await world.kubectl.create_lease(POOL, world.renew_time())
        await world.kubectl.create_pool(POOL, ready_condition("True"))
        await world.passes(world.grace_seconds / 10)
        world.half_open("controller")
        began, watches = world.clock.monotonic(), controller.leases.stats.watches_total
        seen_at = await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "Unknown", world.grace_seconds * 1.5)
        assert seen_at - began <= world.grace_seconds * 1.2
        await world.passes(world.grace_seconds * 2)
        assert controller.leases.stats.watches_total > watches


@acceptance
async def test_case_17_a_living_pool_is_not_marked_while_the_watch_hangs(world: World) -> None:
    """The heartbeats arrive at the API server and none on the hung watch: a fresh read confirms before anything is written."""
    async with world.controller() as controller:
        await world.kubectl.create_lease(POOL, world.renew_time())
        await world.kubectl.create_pool(POOL, ready_condition("True"))

        async def fail(_: int) -> None:
            world.half_open("controller")

        renewing = world.every(world.grace_seconds / 5, lambda _: world.kubectl.renew(POOL, world.renew_time()))
        async with running(renewing, world.every(world.grace_seconds / 2, fail)):
            await world.passes(world.grace_seconds * 5)
            assert world.kubectl.transitions(POOL) == ["", "True"]
            marks = controller.store.value(
                "loopwatch_machinepool_lifecycle_marks_total", {"machinepool": POOL}, controller.observer.moment()
            )
            assert marks == 0


@SANDBOX_ONLY
@acceptance
async def test_case_19_a_rejected_token_is_said_counted_and_over_as_soon_as_it_is_accepted_again(world: World) -> None:
    """The token's own rotation is tested with the real transport (tests/unit/kube); here: what 401 does to a beat, and what it leaves."""
    assert world.api is not None
    interval = world.seconds(0.5)
    await world.kubectl.create_pool(POOL)
    async with world.sidecar(POOL, MemoryRuntime(world.clock)) as sidecar:
        await world.kubectl.when(lambda: POOL in world.kubectl.leases, interval * 2)
        number = world.api.faults.add(Fault(effect=Unauthorized(), client="sidecar"))
        await world.passes(interval * 3)
        stuck = world.kubectl.leases[POOL]["spec"]["renewTime"]
        world.api.faults.remove(number)
        await world.kubectl.when(lambda: world.kubectl.leases[POOL]["spec"]["renewTime"] != stuck, interval * 1.1)
        errors = {"machinepool": POOL, "result": "error"}
        assert (sidecar.store.value("loopwatch_heartbeat_lease_writes_total", errors, sidecar.observer.moment()) or 0) >= 3
        assert world.kubectl.transitions(POOL) == ["", "True"]


@acceptance
async def test_case_21_renew_time_has_exactly_six_digits_also_on_a_whole_second(world: World) -> None:
    """The sandbox's clock begins at 12:00:00.000000, where a language's default would drop the fraction; the server refuses that."""
    await world.kubectl.create_pool(POOL)
    async with world.sidecar(POOL, MemoryRuntime(world.clock)):
        await world.kubectl.when(lambda: POOL in world.kubectl.leases, world.seconds(1))
        for field in ("renewTime", "acquireTime"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", world.kubectl.leases[POOL]["spec"][field])
        if world.api is not None:
            assert world.kubectl.leases[POOL]["spec"]["acquireTime"].endswith("12:00:00.000000Z")


@acceptance
async def test_case_45_a_runtime_that_is_back_after_a_long_outage_is_true_within_two_intervals(world: World) -> None:
    """The gRPC side of it, on sockets and with outages past the library's back-off, is in tests/unit/iri; here: what Ready does."""
    interval = world.seconds(0.5)
    await world.kubectl.create_pool(POOL)
    runtime = MemoryRuntime(world.clock)
    async with world.sidecar(POOL, runtime):
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True", interval * 2)
        await runtime.stop()
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "False", interval * 2)
        await world.passes(interval * (600 if world.api else 4))
        await runtime.start()
        began = world.clock.monotonic()
        seen_at = await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True", interval * 2.1)
        assert seen_at - began <= interval * 2
        assert world.kubectl.transitions(POOL) == ["", "True", "False", "True"]


@acceptance
async def test_case_45_a_hang_shorter_than_the_probes_timeout_never_flips_ready(world: World) -> None:
    interval = world.seconds(0.5)
    await world.kubectl.create_pool(POOL)
    runtime = MemoryRuntime(world.clock)
    async with world.sidecar(POOL, runtime):
        await world.kubectl.when(lambda: world.kubectl.ready(POOL) == "True", interval * 2)
        await world.passes(interval * 0.5)
        await runtime.behave(Hang())
        await world.passes(interval * 0.3)
        await runtime.behave(Ok())
        await world.passes(interval * 4)
        assert world.kubectl.transitions(POOL) == ["", "True"]
