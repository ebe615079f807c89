"""A sidecar on the sandbox: what its page, its health and its readiness say."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from loopwatch.iri.probe import CODES
from loopwatch.metrics.family import Component
from loopwatch.pools.families.heartbeat import HEARTBEAT, MOST_CLASSES, RESULTS
from loopwatch.sandbox.faults import Forbid, Hang
from loopwatch.sandbox.runtime.behaviours import Error, Ok, Slow
from loopwatch.sandbox.runtime.behaviours import Hang as RuntimeHangs
from loopwatch.settings.model import Mode
from tests.support.sidecars import POOL, Beside, world
from tests.support.stepped import stepped

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(sidecar: Beside) -> Series:
    """Every sample of the page, by name and labels; a double fails."""
    found: Series = {}
    for family in text_string_to_metric_families(sidecar.page()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"twice on the page: {sample}"
            found[key] = sample.value
    return found


def labelled(found: Series, name: str) -> dict[str, float]:
    """A family's samples by the value of its own label."""
    return {own(labels): number for (each, labels), number in found.items() if each == name}


def own(labels: frozenset[tuple[str, str]]) -> str:
    """The value of the one label that does not name the pool."""
    return next(value for label, value in labels if label != "machinepool")


@stepped
async def test_every_result_code_and_state_is_there_before_anything_happened() -> None:
    async with world() as here:
        found = series(here.sidecar())
        assert labelled(found, "loopwatch_heartbeat_lease_writes_total") == dict.fromkeys(RESULTS, 0)
        assert labelled(found, "loopwatch_heartbeat_ready_writes_total") == dict.fromkeys(RESULTS, 0)
        assert labelled(found, "loopwatch_heartbeat_probes_total") == dict.fromkeys(CODES, 0)
        states = labelled(found, "loopwatch_heartbeat_state")
        assert states == {"waiting": 1, "reporting": 0, "standby": 0, "observing": 0, "stopped": 0}
        names = {name for name, _ in found}
        assert "loopwatch_heartbeat_probe_success" not in names
        assert "loopwatch_heartbeat_machinepoollet_up" not in names
        assert "loopwatch_runtime_machine_class_quantity" not in names


@stepped
async def test_a_runtime_that_lists_absurdly_many_classes_fills_no_page() -> None:
    """Labels are bounded: an answer of 4 MiB holds a hundred thousand names."""
    async with world() as here:
        sidecar = here.sidecar()
        await sidecar.runtime.behave(Ok({f"class-{number:05}": number for number in range(3 * MOST_CLASSES)}))
        sidecar.start()
        await here.until(5)
        shown = labelled(series(sidecar), "loopwatch_runtime_machine_class_quantity")
        assert sorted(shown) == [f"class-{number:05}" for number in range(MOST_CLASSES)]


@stepped
async def test_the_page_of_a_working_sidecar_tells_the_whole_story() -> None:
    async with world() as here:
        sidecar = here.sidecar()
        await sidecar.runtime.behave(Ok({"small": 4, "large": 1}))
        sidecar.start()
        await here.until(35)
        await sidecar.runtime.behave(Error("Internal", "broken"))
        await here.until(45)
        found = series(sidecar)
        assert labelled(found, "loopwatch_heartbeat_lease_writes_total")["ok"] == 5
        assert labelled(found, "loopwatch_heartbeat_ready_writes_total")["ok"] == 2
        assert labelled(found, "loopwatch_heartbeat_probes_total")["OK"] == 4
        assert labelled(found, "loopwatch_heartbeat_probes_total")["Internal"] == 1
        assert labelled(found, "loopwatch_runtime_machine_class_quantity") == {"small": 4, "large": 1}
        pool = frozenset({("machinepool", POOL)})
        assert found["loopwatch_heartbeat_probe_success", pool] == 0
        assert found["loopwatch_heartbeat_machinepoollet_up", pool] == 1
        assert found["loopwatch_heartbeat_ready_unpublished", pool] == 0
        assert found["loopwatch_heartbeat_lease_write_duration_seconds_count", pool] == 5
        assert found["loopwatch_heartbeat_probe_duration_seconds_count", pool] == 5
        assert found["loopwatch_machinepool_lease_age_seconds", pool] == 5
        assert labelled(found, "loopwatch_machinepool_ready") == {"true": 0, "false": 1, "unknown": 0, "absent": 0}
        assert found["loopwatch_reflector_synced", frozenset({("resource", "leases")})] == 1
        assert not any("lifecycle" in name or "silence" in name or "leading" in name for name, _ in found)


@stepped
async def test_durations_fall_into_the_buckets_that_hold_them() -> None:
    async with world() as here:
        sidecar = here.sidecar()
        await sidecar.runtime.behave(Slow(0.8))
        sidecar.start()
        await here.until(25)
        found = series(sidecar)
        name = "loopwatch_heartbeat_probe_duration_seconds_bucket"
        assert found[name, frozenset({("machinepool", POOL), ("le", "0.5")})] == 0
        assert found[name, frozenset({("machinepool", POOL), ("le", "1")})] == 3


@stepped
async def test_with_nothing_known_of_the_pool_ready_unpublished_claims_nothing() -> None:
    async with world() as here:
        here.put_lease("pool-a_before")
        here.fault(Hang(), resource="machinepools")
        sidecar = here.started(Mode.REPORT)
        await here.until(60)
        assert sidecar.state == "reporting"
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") is None


@stepped
async def test_an_observer_s_ready_is_never_unpublished() -> None:
    async with world() as here:
        sidecar = here.started(Mode.OBSERVE)
        await here.until(60)
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 0


@stepped
async def test_no_fault_outside_makes_the_process_unhealthy() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(5)
        here.fault(Hang())
        await sidecar.runtime.behave(RuntimeHangs())
        sidecar.machinepoollet.hangs = True
        for _ in range(60):
            await here.passes(5)
            assert sidecar.sidecar.health.loops.stuck() == []


@stepped
async def test_a_loop_that_stands_still_makes_the_process_unhealthy() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(5)
        await sidecar.die()
        await here.passes(61)
        stuck = " ".join(sidecar.sidecar.health.loops.stuck())
        assert all(name in stuck for name in ("lease", "probe", "ready", "machinepoollet"))


@stepped
async def test_it_is_ready_once_both_lists_are_in() -> None:
    async with world() as here:
        sidecar = here.sidecar()
        assert sidecar.sidecar.health.readiness.missing() == ["machinepools listed", "leases listed, or said why they can't be"]
        sidecar.start()
        await here.passes(0.5)
        assert sidecar.sidecar.health.readiness.missing() == []


@stepped
async def test_leases_that_may_not_be_listed_are_said_and_do_not_keep_it_from_being_ready() -> None:
    async with world() as here:
        here.fault(Forbid(), verb="list", resource="leases")
        sidecar = here.started()
        await here.until(11)
        assert sidecar.sidecar.health.readiness.missing() == []


@stepped
async def test_it_is_not_ready_before_the_pools_are_listed() -> None:
    async with world() as here:
        here.fault(Forbid(), verb="list", resource="machinepools")
        sidecar = here.started()
        await here.until(60)
        assert sidecar.sidecar.health.readiness.missing() == ["machinepools listed"]


def test_the_controller_exposes_nothing_of_a_heartbeat() -> None:
    assert HEARTBEAT.exposed_by(Component.CONTROLLER).families == ()
    assert HEARTBEAT.exposed_by(Component.SIDECAR).families == HEARTBEAT.families
