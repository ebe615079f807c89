"""Scenarios 10 to 17 of tests/e2e/scenarios.py: lost rights, deleted pools, broken starts, and others who write."""

from __future__ import annotations

import asyncio
from typing import Any

from loopwatch.kube.resources import MACHINE_POOLS, ObjectKey
from loopwatch.sandbox.runtime.behaviours import Error, Ok
from tests.e2e import machinepoollet_rights as rights
from tests.e2e.plays_heartbeats import MARK, SLACK, assert_marked_in_time
from tests.e2e.stage import BEAT, CAPACITY, GRACE, LEASE, MACHINE_CLASS, OLD_POOL, OVERDUE, POOL, SOON, Stage
from tests.real_servers.client import APPLY_PATCH
from tests.support.pools import ready_condition

BLIP_SECONDS = 0.5
"""Upstream's were 3 to 25 ms; here all share one event loop, and two cores."""
CACHE_SYNC_SECONDS = 8.0
MAPPER_SYNC_SECONDS = 2.0
RELIST_SECONDS = 3.0
RESTART_SECONDS = 4.0
RESTARTS = 3
POOLS = (POOL, OLD_POOL)
ELECTION: dict[str, Any] = {
    "leader_elect": True,
    "leader_elect_lease_duration_seconds": 3,
    "leader_elect_renew_deadline_seconds": 2.0,
    "leader_elect_retry_period_seconds": 0.5,
    "leader_elect_resource_name": "scenario-14",
    "leader_elect_resource_namespace": "default",
}


async def the_right_to_leases_is_lost(stage: Stage) -> None:
    kubectl = stage.kubectl
    onlooker = await stage.controller(act=False)
    lifecycle = await stage.lifecycle()
    kubeconfig = await stage.machinepoollet_kubeconfig(with_leases=True)
    machinepoollet, _ = await stage.machinepoollet(POOL, stage.runtime(), kubeconfig=kubeconfig)
    await stage.becomes(POOL, "True")
    await stage.passes(2 * BEAT)
    await asyncio.to_thread(rights.lose_leases, stage.server)
    await stage.until("refused", lambda: any("Failed to reconcile machine pool lease" in line for line in machinepoollet.log))
    await stage.shows(onlooker, "machinepool_late_heartbeats_total", 1, LEASE)
    await stage.shows(onlooker, "machinepool_ready_without_lease", 1, LEASE)
    await stage.shows(onlooker, "machinepool_ready_transitions_total", 2, 2 * GRACE + OVERDUE, to="unknown")
    await stage.shows(onlooker, "machinepool_ready", 1, status="true")
    await stage.shows(onlooker, "machinepool_lifecycle_elsewhere", 1, machinepool=None)
    await lifecycle.kill()

    acting = await stage.controller()
    await stage.shows(acting, "machinepool_lifecycle_marks_total", 1, GRACE + OVERDUE)
    await stage.shows(acting, "machinepool_ready", 1, status="true")
    await stage.shows(acting, "machinepool_ready_transitions_total", 1, to="unknown")
    assert stage.value(acting, "machinepool_lifecycle_elsewhere", machinepool=None) == 0
    assert stage.value(onlooker, "machinepool_lifecycle_marks_total") == 0
    blips = [
        later.at - earlier.at
        for earlier, later in zip(kubectl.history[POOL], kubectl.history[POOL][1:], strict=False)
        if earlier.ready == "Unknown"
    ]
    assert len(blips) == 3
    assert max(blips) < BLIP_SECONDS, "no scrape sees them"


async def the_right_to_leases_was_never_there(stage: Stage) -> None:
    """OLD_POOL's machinepoollet is as new and as blocked as POOL's, but has a sidecar beside it."""
    kubectl, runtime = stage.kubectl, stage.runtime()
    controller = await stage.controller()
    kubeconfig = await stage.machinepoollet_kubeconfig(with_leases=False)
    begins: dict[str, Any] = {"kubeconfig": kubeconfig, "cache_sync_timeout_seconds": CACHE_SYNC_SECONDS}
    alone, alone_life = await stage.machinepoollet(POOL, runtime, **begins)
    helped, helped_life = await stage.machinepoollet(OLD_POOL, runtime, **begins)
    sidecar = await stage.sidecar(OLD_POOL, runtime)
    await stage.shows(controller, "machinepool_never_reported", 1)
    await stage.becomes(OLD_POOL, "True")
    await stage.shows(sidecar, "heartbeat_state", 1, machinepool=OLD_POOL, state="reporting")
    await stage.becomes(POOL, "Unknown", GRACE + OVERDUE)
    await stage.shows(controller, "machinepool_never_reported", 0)
    assert await alone.healthz() == 200
    assert await helped.healthz() == 200
    for life in (alone_life, helped_life):
        assert await life.exits(CACHE_SYNC_SECONDS) == "timed out waiting for cache to be synced"
    assert POOL not in kubectl.beats
    assert kubectl.holders(OLD_POOL) == [sidecar.identity]
    await stage.shows(sidecar, "heartbeat_state", 1, 2 * SOON, machinepool=OLD_POOL, state="stopped")
    assert_marked_in_time(stage, OLD_POOL, await stage.becomes(OLD_POOL, "Unknown", GRACE + OVERDUE))
    assert kubectl.transitions(POOL) == ["", "Unknown"]
    assert kubectl.transitions(OLD_POOL) == ["", "True", "Unknown"]


async def the_pool_is_deleted(stage: Stage) -> None:
    kubectl = stage.by_hand()
    controller = await stage.controller()
    both = await stage.both_kinds(stage.runtime())
    for pool in POOLS:
        await kubectl.delete(MACHINE_POOLS, pool)
    deleted = stage.clock.monotonic()
    for pool in POOLS:
        await stage.shows(controller, "machinepool_lease_orphaned", 1, machinepool=pool)
        await stage.shows(controller, "machinepool_ready", None, machinepool=pool, status="true")
    await stage.shows(both.reporting, "heartbeat_state", 1, machinepool=OLD_POOL, state="stopped")
    await stage.passes(3 * BEAT)
    assert len(kubectl.renewals(POOL, after=deleted)) >= 2, "upstream renews the Lease of a pool that is gone"
    assert kubectl.renewals(OLD_POOL, after=deleted + BEAT / 2) == [], "a sidecar does not"
    assert not kubectl.pools.keys() & set(POOLS), "nobody makes it again"
    for pool in POOLS:
        await kubectl.create_pool(pool)
    for pool in POOLS:
        await stage.becomes(pool, "True", after=deleted)
        await stage.shows(controller, "machinepool_lease_orphaned", 0, machinepool=pool)
        await stage.shows(controller, "machinepool_ready", 1, machinepool=pool, status="true")
        assert len(kubectl.holders(pool)) == 1
    await stage.until("renewed again", lambda: bool(kubectl.renewals(OLD_POOL, after=deleted + BEAT / 2)))


async def the_runtime_is_down_at_the_start(stage: Stage) -> None:
    """POOL's runtime is gone; OLD_POOL's answers Version, and fails Status. Both machinepoollets are new ones."""
    kubectl, gone, failing = stage.by_hand(), stage.runtime(), stage.runtime()
    await gone.stop()
    await failing.behave(Error("Unavailable", "no hypervisor"))
    controller = await stage.controller()
    await kubectl.create_pool(POOL)
    sidecar, other = await stage.sidecar(POOL, gone), await stage.sidecar(OLD_POOL, failing)
    _, life = await stage.machinepoollet(POOL, gone)
    assert (await life.exits(SOON)).startswith("error getting machine runtime version: ")
    _, life = await stage.machinepoollet(OLD_POOL, failing, mcm_sync_timeout_seconds=MAPPER_SYNC_SECONDS)
    await stage.shows(controller, "machinepool_never_reported", 1)
    last_line = "error waiting for machine class mapper to sync: context deadline exceeded"
    assert await life.exits(MAPPER_SYNC_SECONDS + SOON) == last_line
    await stage.shows(sidecar, "heartbeat_probe_success", 0)
    await stage.shows(sidecar, "heartbeat_machinepoollet_up", 0)
    await stage.shows(sidecar, "heartbeat_state", 1, state="waiting")
    for pool in POOLS:
        await stage.becomes(pool, "Unknown", 2 * GRACE + OVERDUE)
        await stage.shows(controller, "machinepool_lifecycle_marks_total", 1, machinepool=pool)
        assert kubectl.transitions(pool) == ["", "Unknown"], "neither True nor False was ever said of this runtime"
    assert POOL not in kubectl.beats, "nobody vouched for a machinepoollet that never ran"
    await stage.shows(other, "heartbeat_state", 1, machinepool=OLD_POOL, state="stopped")
    assert stage.value(sidecar, "heartbeat_ready_writes_total", result="ok") == 0
    assert stage.value(other, "heartbeat_ready_writes_total", machinepool=OLD_POOL, result="ok") == 0


async def the_controller_is_restarted(stage: Stage) -> None:
    onlooker = await stage.controller(act=False)
    lifecycle = await stage.lifecycle()
    died = await _die(stage, POOL)
    for restart in range(1, RESTARTS + 1):
        await stage.passes(died + restart * RESTART_SECONDS - stage.clock.monotonic())
        await lifecycle.kill()
        lifecycle = await stage.lifecycle()
        if restart == RESTARTS:
            assert (stage.value(onlooker, "machinepool_silence_seconds") or 0) > 2 * GRACE
            assert stage.value(onlooker, "machinepool_ready", status="true") == 1
            assert stage.value(onlooker, "machinepool_ready_without_lease") == 1
    assert await stage.becomes(POOL, "Unknown", GRACE + OVERDUE) - died >= RESTARTS * RESTART_SECONDS + GRACE - SLACK
    await lifecycle.kill()

    leader, life = await stage.mortal_controller(**ELECTION)
    await stage.shows(leader, "leader_election_leading", 1, machinepool=None)
    follower = await stage.controller(**ELECTION)
    died = await _die(stage, OLD_POOL)
    await stage.shows(follower, "machinepool_ready", 1, machinepool=OLD_POOL, status="true")
    await stage.passes(died + RESTART_SECONDS - stage.clock.monotonic())
    await life.kill()
    marked = await stage.becomes(OLD_POOL, "Unknown", GRACE)
    assert GRACE - SLACK <= marked - died < RESTART_SECONDS + GRACE, "the new leader keeps what it saw as a follower"
    await stage.shows(follower, "leader_election_leading", 1, machinepool=None)
    await stage.shows(follower, "machinepool_lifecycle_marks_total", 1, machinepool=OLD_POOL)


async def _die(stage: Stage, pool: str) -> float:
    """A pool that is True with a fresh Lease, of which nothing more is heard; the moment."""
    kubectl = stage.by_hand()
    await kubectl.create_lease(pool, stage.world.renew_time(), duration=int(LEASE))
    await kubectl.create_pool(pool, ready_condition("True"))
    return stage.clock.monotonic()


async def healthz_fails_while_the_runtime_is_down(stage: Stage) -> None:
    kubectl, runtime = stage.kubectl, stage.runtime()
    controller = await stage.controller()
    both = await stage.both_kinds(runtime, relist_threshold_seconds=RELIST_SECONDS)
    await runtime.stop()
    for pool in POOLS:
        await stage.becomes(pool, "False")
    await stage.passes(RELIST_SECONDS + 2 * BEAT)
    assert (await both.new.healthz(), await both.old.healthz()) == (500, 500)
    looked = stage.clock.monotonic()
    await stage.passes(3 * BEAT)
    for pool, sidecar, state in ((POOL, both.observing, "observing"), (OLD_POOL, both.reporting, "reporting")):
        assert stage.value(sidecar, "heartbeat_machinepoollet_up", machinepool=pool) == 1, "any HTTP status is an answer"
        assert stage.value(sidecar, "heartbeat_state", machinepool=pool, state=state) == 1
        assert stage.value(controller, "machinepool_unready_but_renewed", machinepool=pool) == 1
        assert len(kubectl.renewals(pool, after=looked)) >= 2
    restarted = stage.clock.monotonic()
    for pool, life in zip(POOLS, both.lives, strict=True):  # the kubelet, whose liveness probe has failed
        await life.kill()
        _, again = await stage.machinepoollet(pool, runtime, before_v0_5_0=pool == OLD_POOL)
        assert (await again.exits(SOON)).startswith("error getting machine runtime version: ")
    for pool in POOLS:
        assert_marked_in_time(stage, pool, await stage.becomes(pool, "Unknown", GRACE + OVERDUE + SOON, after=restarted))
        for status in ("false", "unknown"):
            await stage.shows(controller, "machinepool_ready_transitions_total", 1, machinepool=pool, to=status)
    await stage.shows(both.reporting, "heartbeat_state", 1, machinepool=OLD_POOL, state="stopped")


async def machines_are_placed_on_an_unknown_pool(stage: Stage) -> None:
    kubectl = stage.by_hand()
    controller = await stage.controller()
    _, life = await stage.machinepoollet(POOL, stage.runtime())
    await stage.becomes(POOL, "True")
    await kubectl.create_machine("one", POOL)
    await kubectl.set_machine_state("one", "Running")
    await stage.shows(controller, "machinepool_machines", 1, state="Running")
    await stage.shows(controller, "machinepool_stranded_machines", 0)
    await life.kill()
    await stage.becomes(POOL, "Unknown", GRACE + OVERDUE)
    await stage.shows(controller, "machinepool_stranded_machines", 1)
    await kubectl.create_machine("two", None)
    await stage.shows(controller, "machines_unbound_pending", 1, machinepool=None, machine_class=MACHINE_CLASS)
    await stage.scheduler()
    await stage.shows(controller, "machinepool_stranded_machines", 2)
    await stage.shows(controller, "machines_unbound_pending", None, machinepool=None, machine_class=MACHINE_CLASS)
    await stage.shows(controller, "machinepool_machines", 1, state="Pending")
    await stage.passes(BEAT)
    assert (stage.value(controller, "machinepool_oldest_pending_machine_age_seconds") or 0) >= BEAT
    taint = {"key": "maintenance.ironcore.dev", "effect": "NoExecute"}
    await kubectl.send("PATCH", MACHINE_POOLS.object_path(ObjectKey("", POOL)), {"spec": {"taints": [taint]}})
    await stage.shows(controller, "machinepool_taints", 1, effect="NoExecute")
    await stage.shows(controller, "machinepool_maintenance", 1)
    await stage.shows(controller, "machinepool_stranded_machines", 0)
    await stage.shows(controller, "machinepool_machines", 0, state="Running")
    assert kubectl.ready(POOL) == "Unknown"


FOREIGN = {"type": "example.com/RackCooled", "status": "True", "reason": "Measured", "message": "18 degrees"}


async def a_foreign_condition_is_in_the_list(stage: Stage) -> None:
    kubectl, runtime = stage.by_hand(), stage.runtime()
    controller = await stage.controller()
    both = await stage.both_kinds(runtime)
    for pool in POOLS:
        await kubectl.set_conditions(pool, *kubectl.pools[pool]["status"]["conditions"], FOREIGN)
    for behaviour, status in ((Error("Unavailable", "no hypervisor"), "False"), (Ok({MACHINE_CLASS: CAPACITY}), "True")):
        await stage.passes(BEAT)
        changed = stage.clock.monotonic()
        await runtime.behave(behaviour)
        for pool in POOLS:
            await stage.becomes(pool, status, after=changed)
            _assert_foreign_is_kept(stage, pool)
    for pool in POOLS:
        await _apply_only_the_foreign_one(stage, pool)
        await stage.shows(controller, "machinepool_ready_transitions_total", 1, machinepool=pool, to="absent")
        await stage.shows(controller, "machinepool_ready", 1, machinepool=pool, status="true")
        _assert_foreign_is_kept(stage, pool)
    for life in both.lives:
        await life.kill()
    for pool in POOLS:
        await stage.becomes(pool, "Unknown", GRACE + OVERDUE + SOON)
        await stage.shows(controller, "machinepool_lifecycle_marks_total", 1, machinepool=pool)
        _assert_foreign_is_kept(stage, pool)
        [mark] = [each for each in kubectl.pools[pool]["status"]["conditions"] if each["type"] == "Ready"]
        assert mark.items() >= MARK.items()


async def _apply_only_the_foreign_one(stage: Stage, pool: str) -> None:
    """Server-side apply refuses it, and by force takes Ready away, since the list is atomic; whoever reports puts it back at once."""
    path = f"{MACHINE_POOLS.object_path(ObjectKey('', pool), 'status')}?fieldManager=rack"
    body = {"apiVersion": MACHINE_POOLS.api_version, "kind": "MachinePool", "status": {"conditions": [FOREIGN]}}
    client = stage.server.client
    (await asyncio.to_thread(client.request, "PATCH", path, body, APPLY_PATCH)).expect(409)
    forced = stage.clock.monotonic()
    written = (await asyncio.to_thread(client.request, "PATCH", f"{path}&force=true", body, APPLY_PATCH)).expect(200)
    assert [each["type"] for each in written["status"]["conditions"]] == [FOREIGN["type"]]
    back = await stage.becomes(pool, "True", after=forced)
    assert back - forced < BEAT / 2, f"Ready was away for {back - forced:.2f} s"


def _assert_foreign_is_kept(stage: Stage, pool: str) -> None:
    conditions = stage.kubectl.pools[pool]["status"]["conditions"]
    assert sorted(each["type"] for each in conditions) == sorted(["Ready", FOREIGN["type"]])
    [kept] = [each for each in conditions if each["type"] == FOREIGN["type"]]
    assert kept.items() >= FOREIGN.items()
