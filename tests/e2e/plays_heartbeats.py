"""Scenarios 1 to 9 of tests/e2e/scenarios.py: pools, Leases, runtimes and machinepoollets that come, stop and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from loopwatch.kube.resources import LEASES, MACHINE_POOLS
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import Error, Hang, Ok
from tests.e2e.stage import BEAT, CAPACITY, GRACE, LEASE, MACHINE_CLASS, OLD_POOL, OVERDUE, POOL, PROBE, SOON, Stage
from tests.e2e.world import longest_gap
from tests.support.pools import ready_condition

SLACK = 0.1
"""Between an answer and the watch event of the same write, on this machine."""
LATE_BEAT = BEAT + 0.6
STOPPED_SECONDS = 9.0
MARK = {"status": "Unknown", "reason": "MachinePoolStatusUnknown", "message": "machinepoollet stopped posting machine pool status."}


def assert_marked_in_time(stage: Stage, pool: str, seen: float) -> None:
    """Unknown came one grace after the last renewal that was before it."""
    last = max(at for at in stage.kubectl.renewals(pool) if at < seen)
    assert GRACE - SLACK <= seen - last <= GRACE + OVERDUE, f"{pool}: {seen - last:.2f} s after the last renewal"


async def by_hand_without_a_lease(stage: Stage) -> None:
    kubectl = stage.by_hand()
    controller = await stage.controller()
    await kubectl.create_pool(POOL)
    made = stage.clock.monotonic()
    await stage.shows(controller, "machinepool_never_reported", 1)
    await stage.shows(controller, "machinepool_ready", 1, machinepool=POOL, status="absent")
    seen = await stage.becomes(POOL, "Unknown", GRACE + OVERDUE)
    assert seen - made >= GRACE - SLACK
    status = kubectl.pools[POOL]["status"]
    assert set(status) == {"conditions"}
    [condition] = status["conditions"]
    assert condition.items() >= {**MARK, "type": "Ready", "observedGeneration": 1}.items()
    await stage.shows(controller, "machinepool_ready_transitions_total", 1, machinepool=POOL, to="unknown")
    await stage.shows(controller, "machinepool_lifecycle_marks_total", 1)
    await stage.passes(GRACE * 1.5)
    assert len(kubectl.history[POOL]) == 2, "made, marked once"


async def a_lease_by_hand_that_stops(stage: Stage) -> None:
    kubectl, renew_time = stage.by_hand(), stage.world.renew_time
    controller = await stage.controller()
    await kubectl.create_lease(POOL, renew_time(), duration=int(LEASE))
    await kubectl.create_pool(POOL, ready_condition("True"))
    for _ in range(int(GRACE) + 1):
        await stage.passes(BEAT)
        await kubectl.renew(POOL, renew_time())
    assert kubectl.ready(POOL) == "True"
    await stage.shows(controller, "machinepool_late_heartbeats_total", 0)
    await stage.shows(controller, "machinepool_late_heartbeats_total", 1, LEASE)
    assert stage.value(controller, "machinepool_ready_without_lease") == 0
    await stage.shows(controller, "machinepool_ready_without_lease", 1, LEASE / 4 + 1)
    assert kubectl.ready(POOL) == "True", "a Lease of 4 s is over before a grace of 5 s"
    assert_marked_in_time(stage, POOL, await stage.becomes(POOL, "Unknown", GRACE + OVERDUE))
    await stage.shows(controller, "machinepool_ready_without_lease", 0)
    for _ in range(3):
        await kubectl.renew(POOL, renew_time())
        await stage.passes(BEAT)
    await stage.shows(controller, "machinepool_unready_but_renewed", 1)
    assert kubectl.ready(POOL) == "Unknown", "renewals alone never restore True"
    assert (stage.value(controller, "machinepool_silence_seconds") or 0) < LEASE
    assert stage.value(controller, "machinepool_lifecycle_marks_total") == 1


async def a_machinepoollet_starts(stage: Stage) -> None:
    kubectl, runtime = stage.kubectl, stage.runtime()
    controller = await stage.controller()
    began = stage.clock.monotonic()
    machinepoollet, _ = await stage.machinepoollet(POOL, runtime)
    assert await stage.becomes(POOL, "True") - began < SOON
    sidecar = await stage.sidecar(POOL, runtime)
    await stage.shows(sidecar, "heartbeat_state", 1, state="observing", machinepool=POOL)
    await stage.shows(controller, "machinepool_ready", 1, machinepool=POOL, status="true")
    await stage.shows(controller, "machinepool_info", 1, machinepool=POOL, provider_id="sandbox://machinepoollet")
    await stage.shows(controller, "machinepool_state", 1, machinepool=POOL, state="Ready")
    await stage.shows(controller, "machinepool_never_reported", 0)
    await stage.shows(controller, "machinepool_lease_duration_seconds", LEASE)
    await stage.shows(controller, "machinepool_capacity", CAPACITY, machinepool=POOL, machine_class=MACHINE_CLASS)
    await stage.shows(sidecar, "heartbeat_probe_success", 1)
    await stage.shows(sidecar, "runtime_machine_class_quantity", CAPACITY, machinepool=POOL, machine_class=MACHINE_CLASS)
    await stage.passes(GRACE)
    assert kubectl.transitions(POOL)[-1:] == ["True"]
    assert kubectl.holders(POOL) == [machinepoollet.holder_identity], "the sidecar took nothing"
    assert stage.value(sidecar, "heartbeat_ready_writes_total", machinepool=POOL, result="ok") == 0
    assert stage.value(sidecar, "heartbeat_lease_writes_total", machinepool=POOL, result="ok") == 0
    pool = await kubectl.get(MACHINE_POOLS, POOL)
    assert {each["manager"] for each in pool["metadata"]["managedFields"]} == {"machinepoollet", "machinepoollet.ironcore.dev/field-owner"}


Act = Callable[[MemoryRuntime], Awaitable[None]]


async def the_runtime_fails(stage: Stage, code: str, fail: Act, mend: Act) -> float:
    """For both kinds of pool; the moment at which it failed."""
    runtime = stage.runtime()
    controller = await stage.controller()
    observing, reporting, *_ = await stage.both_kinds(runtime)
    failed = stage.clock.monotonic()
    await fail(runtime)
    for pool, sidecar in ((POOL, observing), (OLD_POOL, reporting)):
        await stage.becomes(pool, "False", after=failed)
        await stage.shows(controller, "machinepool_ready_reason", 1, machinepool=pool, reason="RuntimeUnreachable")
        await stage.shows(controller, "machinepool_unready_but_renewed", 1, machinepool=pool)
        await stage.shows(sidecar, "heartbeat_probe_success", 0, machinepool=pool)
        assert (stage.value(sidecar, "heartbeat_probes_total", machinepool=pool, code=code) or 0) >= 1
    await stage.passes(3 * BEAT)
    mended = stage.clock.monotonic()
    await mend(runtime)
    for pool in (POOL, OLD_POOL):
        await stage.becomes(pool, "True", after=mended)
        await stage.shows(controller, "machinepool_unready_but_renewed", 0, machinepool=pool)
        assert [status for status in stage.kubectl.transitions(pool) if status] == ["True", "False", "True"]
        assert longest_gap(stage.kubectl.renewals(pool, after=failed)) < LATE_BEAT + PROBE
    return failed


async def status_is_unavailable(stage: Stage) -> None:
    await the_runtime_fails(stage, "Unavailable", lambda it: it.behave(Error("Unavailable", "no hypervisor")), _answer)


async def status_hangs(stage: Stage) -> None:
    failed = await the_runtime_fails(stage, "DeadlineExceeded", lambda it: it.behave(Hang()), _answer)
    theirs, ours = (longest_gap(stage.kubectl.renewals(pool, after=failed - 2 * BEAT)) for pool in (POOL, OLD_POOL))
    assert theirs >= BEAT + PROBE * 0.8, "the machinepoollet renews after its probe, which waits its timeout"
    assert ours < theirs, "the sidecar's renewals wait for no probe"


async def the_runtime_is_killed(stage: Stage) -> None:
    await the_runtime_fails(stage, "Unavailable", lambda it: it.kill(), lambda it: it.start())


async def _answer(runtime: MemoryRuntime) -> None:
    await runtime.behave(Ok({MACHINE_CLASS: CAPACITY}))


async def a_machinepoollet_is_stopped_and_continued(stage: Stage) -> None:
    controller = await stage.controller()
    observing, reporting, new, old, _ = await stage.both_kinds(stage.runtime())
    stopped = stage.clock.monotonic()
    new.pause()
    old.pause()
    for pool in (POOL, OLD_POOL):
        assert_marked_in_time(stage, pool, await stage.becomes(pool, "Unknown", GRACE + OVERDUE + SOON, after=stopped))
        await stage.shows(controller, "machinepool_lifecycle_marks_total", 1, machinepool=pool)
    await stage.shows(observing, "heartbeat_machinepoollet_up", 0)
    await stage.shows(observing, "heartbeat_state", 1, machinepool=POOL, state="observing")
    await stage.shows(reporting, "heartbeat_state", 1, machinepool=OLD_POOL, state="stopped")
    await stage.passes(max(0.0, stopped + STOPPED_SECONDS - stage.clock.monotonic()))
    continued = stage.clock.monotonic()
    new.resume()
    old.resume()
    for pool in (POOL, OLD_POOL):
        await stage.becomes(pool, "True", after=continued)
        assert len(stage.kubectl.holders(pool)) == 1, "nobody took the Lease from a stopped machinepoollet"
        assert stage.value(controller, "machinepool_lifecycle_marks_total", machinepool=pool) == 1
    await stage.shows(reporting, "heartbeat_state", 1, machinepool=OLD_POOL, state="reporting")


async def a_machinepoollet_is_ended_and_started(stage: Stage) -> None:
    kubectl, runtime = stage.kubectl, stage.runtime()
    controller = await stage.controller()
    first, life = await stage.machinepoollet(POOL, runtime)
    await stage.becomes(POOL, "True")
    sidecar = await stage.sidecar(POOL, runtime)
    await stage.shows(sidecar, "heartbeat_state", 1, machinepool=POOL, state="observing")
    await life.kill()
    assert_marked_in_time(stage, POOL, await stage.becomes(POOL, "Unknown", GRACE + OVERDUE))
    assert (await kubectl.get(LEASES, POOL))["spec"]["holderIdentity"] == first.holder_identity, (
        "not released, and not taken by the sidecar"
    )
    await stage.shows(sidecar, "heartbeat_machinepoollet_up", 0)
    started = stage.clock.monotonic()
    second, _ = await stage.machinepoollet(POOL, runtime)
    await stage.becomes(POOL, "True", after=started)
    await stage.until("logged", lambda: any("Taking ownership of stale machine pool lease" in line for line in second.log))
    await stage.shows(controller, "machinepool_lease_holder_changes_total", 1)
    assert kubectl.holders(POOL) == [first.holder_identity, second.holder_identity]
    assert stage.value(controller, "machinepool_lease_holder_conflict") == 0, "a restart is no conflict"
    assert stage.value(controller, "machinepool_lifecycle_marks_total") == 1
    await stage.shows(sidecar, "heartbeat_machinepoollet_up", 1)


async def two_machinepoollets_of_one_pool(stage: Stage) -> None:
    runtime = stage.runtime()
    controller = await stage.controller()
    await stage.machinepoollet(POOL, runtime)
    await stage.becomes(POOL, "True")
    sidecar = await stage.sidecar(POOL, runtime)
    await stage.shows(sidecar, "heartbeat_state", 1, machinepool=POOL, state="observing")
    await stage.machinepoollet(POOL, runtime, healthz=False)
    await stage.shows(controller, "machinepool_lease_holder_conflict", 1, LEASE)
    before = stage.value(controller, "machinepool_lease_holder_changes_total") or 0
    await stage.passes(GRACE * 1.2)
    assert (stage.value(controller, "machinepool_lease_holder_changes_total") or 0) - before >= 2 * GRACE, "twice a beat"
    assert stage.value(controller, "machinepool_lease_holder_conflict") == 1
    assert stage.value(controller, "machinepool_ready_transitions_total", machinepool=POOL, to="unknown") == 0
    assert stage.value(controller, "machinepool_lifecycle_marks_total") == 0
    assert stage.value(sidecar, "heartbeat_lease_writes_total", machinepool=POOL, result="ok") == 0
    assert len(set(stage.kubectl.holders(POOL))) == 2
