"""`loopwatch check` on a small cluster: one claim a finding, and none where all is well."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopwatch.check import table
from loopwatch.check.command import findings_of
from loopwatch.check.probes import MANAGER_LEASE, Clusters
from loopwatch.check.show import as_json, fails
from loopwatch.check.table import Finding, Severity
from loopwatch.iri.probe import ProbeResult, RuntimeProbe, failed
from loopwatch.kube.resources import EVENTS, LEASE_NAMESPACE, LEASES, MACHINE_POOLS, NAMESPACES
from loopwatch.rbac.names import NamesError
from loopwatch.sandbox.faults import Fault, Forbid, Hang, NotServed, Respond
from loopwatch.settings.model import CheckSettings, Mode, Subject
from tests.acceptance.world import KUBECONFIG, World, acceptance, running
from tests.support.stepped import SteppedClock

pytestmark = pytest.mark.skipif(bool(KUBECONFIG), reason="faults that only the sandbox has; on a real server: tests/e2e/test_check.py")

TRUE = {"type": "Ready", "status": "True", "reason": "HeartbeatReceived", "message": "ok", "observedGeneration": 1}
UNKNOWN = {"type": "Ready", "status": "Unknown", "reason": "MachinePoolStatusUnknown", "message": "", "observedGeneration": 1}
WRONG_TYPE = {"metadata": {"name": "bad"}, "spec": {"taints": "none"}}


class Runtime:
    """A runtime that answers this."""

    def __init__(self, result: ProbeResult) -> None:
        self._result = result

    async def status(self, timeout_seconds: float) -> ProbeResult:
        """The answer."""
        assert timeout_seconds > 0
        return self._result

    async def close(self) -> None:
        """Nothing is open."""


class WrongClock(SteppedClock):
    """A host whose wall clock is off by so much."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.jump_wall(seconds)


async def check(
    world: World, *, runtime: RuntimeProbe | None = None, clock: SteppedClock | None = None, **settings: Any
) -> dict[str, Finding]:
    """The findings by key, without those that say that all is well."""
    transport = world.transport("check")
    chosen = replace(CheckSettings(), **settings)
    findings = await findings_of(chosen, Clusters(transport, transport, transport), clock or world.clock, runtime)
    found = {finding.key: finding for finding in findings if finding.severity is not Severity.OK}
    for finding in found.values():
        assert finding.what
        assert finding.why
        assert finding.fix
        assert "{" not in finding.fix
    return found


@asynccontextmanager
async def beating(world: World, name: str, **spec: Any) -> AsyncIterator[None]:
    """A machinepoollet that renews the pool's Lease each ten seconds."""

    async def beat(_number: int) -> None:
        await world.kubectl.renew(name, world.renew_time(), **spec)

    await world.kubectl.create_lease(name, world.renew_time(), holder=f"{name}_1")
    async with running(world.every(10.0, beat)):
        yield


@acceptance
async def test_a_cluster_where_all_is_well_passes_with_nothing_but_good_news(world: World) -> None:
    await world.kubectl.create_pool("a", TRUE)
    async with beating(world, "a"):
        for subject in (Subject.CONTROLLER, Subject.READER):
            found = await check(world, subject=subject)
            assert {finding.severity for finding in found.values()} <= {Severity.INFO}
            assert set(found) == {"machinepoollet-reports"}
            assert found["machinepoollet-reports"].objects == ("a",)


@acceptance
async def test_it_writes_nothing(world: World) -> None:
    assert world.api is not None
    await world.kubectl.create_pool("a", TRUE)
    before = world.api.revision
    await check(world)
    assert world.api.revision == before


@pytest.mark.parametrize("effect", [Hang(), Respond(503), Respond(401)], ids=str)
@acceptance
async def test_an_api_server_that_does_not_answer_is_the_one_finding(world: World, effect: Any) -> None:
    assert world.api is not None
    world.api.faults.add(Fault(effect=effect, client="check"))
    assert set(await check(world)) == {"api-unreachable"}


@acceptance
async def test_a_cluster_without_ironcore_is_told_so(world: World) -> None:
    assert world.api is not None
    for resource in ("machinepools", "machines", "machineclasses"):
        world.api.faults.add(Fault(effect=NotServed(), resource=resource))
    found = await check(world)
    assert found["pools-not-served"].severity is Severity.ERROR


@acceptance
async def test_an_aggregated_api_that_fails_is_not_an_empty_cluster(world: World) -> None:
    assert world.api is not None
    world.api.faults.add(Fault(effect=Respond(503), resource="machinepools"))
    found = await check(world)
    assert "503" in found["pools-unavailable"].what
    assert "never-reported" not in found


@acceptance
async def test_leases_that_can_not_be_read_are_told_and_nothing_is_made_of_their_absence(world: World) -> None:
    assert world.api is not None
    await world.kubectl.create_pool("a", TRUE)
    world.api.faults.add(Fault(effect=Forbid(), resource="leases", verb="list", client="check"))
    found = await check(world)
    assert set(found) == {"leases-unavailable", "right-missing"}


@acceptance
async def test_a_missing_lease_namespace_is_an_error_with_the_command_that_makes_it(world: World) -> None:
    await world.kubectl.delete(NAMESPACES, LEASE_NAMESPACE)
    assert (await check(world))["lease-namespace-missing"].fix == "kubectl create namespace ironcore-machinepool-lease"


@acceptance
async def test_a_namespace_that_may_not_be_asked_about_is_not_called_missing(world: World) -> None:
    assert world.api is not None
    world.api.faults.add(Fault(effect=Forbid(), resource="namespaces", client="check"))
    assert set(await check(world)) == {"namespace-unknown"}


@acceptance
async def test_each_missing_right_is_named_with_the_command_that_grants_it(world: World) -> None:
    assert world.api is not None
    world.api.faults.add(Fault(effect=Forbid(), resource="machinepools", subresource="status", verb="patch", client="check"))
    found = await check(world, namespace="monitoring", machines=False)
    assert found["right-missing"].objects == ("controller: patch machinepools/status",)
    assert found["right-missing"].fix == "loopwatch rbac controller --machines=false --namespace=monitoring | kubectl apply -f -"
    assert set(await check(world, act=False)) == set(), "who does not act needs no such right"


@acceptance
async def test_the_right_to_events_is_no_condition(world: World) -> None:
    assert world.api is not None
    world.api.faults.add(Fault(effect=Forbid(), resource=EVENTS.plural, client="check"))
    found = await check(world)
    assert set(found) == {"events-right-missing"}
    assert not fails(list(found.values()))
    assert set(await check(world, events=False)) == set()


@acceptance
async def test_rights_that_can_not_be_asked_about_are_not_called_missing(world: World) -> None:
    assert world.api is not None
    world.api.faults.add(Fault(effect=Respond(500), resource="/apis/authorization*", client="check"))
    assert set(await check(world)) == {"rights-unknown"}


@acceptance
async def test_a_sidecar_is_asked_about_its_own_pool_alone(world: World) -> None:
    await world.kubectl.create_pool("a", TRUE)
    await world.kubectl.create_pool("b")
    found = await check(world, subject=Subject.SIDECAR, machine_pool_name="a", runtime=Runtime(ProbeResult("OK")))
    assert found == {}
    with pytest.raises(NamesError, match="--machine-pool-name is required"):
        await check(world, subject=Subject.SIDECAR)


@acceptance
async def test_a_sidecar_without_its_pool_or_its_runtime_is_told_so(world: World) -> None:
    found = await check(world, subject=Subject.SIDECAR, machine_pool_name="a")
    assert set(found) == {"pool-missing", "runtime-not-found"}
    silent = Runtime(failed("Unavailable", "connection refused"))
    found = await check(world, subject=Subject.SIDECAR, machine_pool_name="a", runtime=silent)
    assert "code = Unavailable desc = connection refused" in found["runtime-silent"].what


@acceptance
async def test_mode_report_beside_a_machinepoollet_that_reports_is_two_reporters(world: World) -> None:
    await world.kubectl.create_pool("a", TRUE)
    about: dict[str, Any] = {"subject": Subject.SIDECAR, "machine_pool_name": "a", "runtime": Runtime(ProbeResult("OK"))}
    async with beating(world, "a"):
        assert set(await check(world, mode=Mode.REPORT, **about)) == {"two-reporters"}
        assert set(await check(world, mode=Mode.AUTO, **about)) == {"machinepoollet-reports"}


@acceptance
async def test_a_lease_that_a_sidecar_renews_is_no_machinepoollets(world: World) -> None:
    await world.kubectl.create_pool("a", TRUE)
    async with beating(world, "a"):
        path = f"{LEASES.collection_path(LEASE_NAMESPACE)}/a"
        await world.kubectl.send("PATCH", path, {"metadata": {"annotations": {"loopwatch/holder": "a_1"}}})
        assert set(await check(world)) == set()


@acceptance
async def test_pools_that_would_be_marked_are_listed_by_why(world: World) -> None:
    await world.kubectl.create_pool("new")
    await world.kubectl.create_pool("old", UNKNOWN)
    for number in range(7):
        await world.kubectl.create_pool(f"silent-{number}", TRUE)
        await world.kubectl.create_lease(f"silent-{number}", world.renew_time())
    found = await check(world)
    assert set(found) == {"pool-silent", "never-reported", "poollets-without-heartbeat", "lifecycle-elsewhere"}
    assert found["pool-silent"].objects == tuple(f"silent-{number}" for number in range(7))
    assert found["pool-silent"].what == (
        "7 pools silent for the 15s of this check: silent-0, silent-1, silent-2, silent-3, silent-4 and 2 more."
    )
    assert found["never-reported"].objects == ("new",)
    assert found["poollets-without-heartbeat"].objects == ("old",)
    found = await check(world, mark_never_reported=False)
    assert found["never-reported-left"].severity is Severity.INFO
    assert "never-reported" not in found


@acceptance
async def test_a_lease_that_stood_still_for_longer_than_its_duration_under_ready_true_is_seen_by_nobody(world: World) -> None:
    await world.kubectl.create_pool("a", TRUE)
    await world.kubectl.create_lease("a", world.renew_time(), duration=40)
    assert "silent-but-ready" not in await check(world, watch_seconds=39.0)
    assert (await check(world, watch_seconds=41.0))["silent-but-ready"].objects == ("a",)


@pytest.mark.parametrize(("grace", "short"), [(40.0, True), (41.0, False)])
@acceptance
async def test_the_grace_is_held_against_the_largest_lease_duration(world: World, grace: float, short: bool) -> None:
    await world.kubectl.create_pool("a", TRUE)
    async with beating(world, "a"):
        found = await check(world, machine_pool_lifecycle_grace_period_seconds=grace)
    assert ("grace-too-short" in found) == short
    if short:
        assert found["grace-too-short"].fix == "loopwatch controller --machine-pool-lifecycle-grace-period 50s"


@pytest.mark.parametrize(("seconds", "told"), [(-90.0, "90 s ahead of"), (90.0, "90 s behind"), (5.0, "")])
@acceptance
async def test_the_skew_of_clocks_is_told_and_changes_no_other_finding(world: World, seconds: float, told: str) -> None:
    await world.kubectl.create_pool("a", TRUE)
    async with beating(world, "a"):
        found = await check(world, clock=WrongClock(seconds))
    assert set(found) - {"clock-skew"} == {"machinepoollet-reports"}
    assert told in found["clock-skew"].what if told else "clock-skew" not in found


@acceptance
async def test_another_lifecycle_is_seen_by_the_name_on_its_unknown(world: World) -> None:
    await world.kubectl.create_pool("a", TRUE)
    await world.kubectl.create_lease("a", world.renew_time())
    await world.kubectl.set_conditions("a", UNKNOWN)
    found = await check(world)
    assert "marked Unknown by kubectl: a" in found["lifecycle-elsewhere"].what


@acceptance
async def test_our_own_marks_are_no_other_lifecycles(world: World) -> None:
    await world.kubectl.create_pool("a")
    await world.kubectl.create_lease("a", world.renew_time())
    async with world.controller():
        await world.kubectl.when(lambda: world.kubectl.ready("a") == "Unknown", 5.0)
    assert "lifecycle-elsewhere" not in await check(world)


@acceptance
async def test_ironcores_controller_manager_is_seen_by_its_election(world: World) -> None:
    assert world.api is not None
    api = world.api
    api.create_namespace(MANAGER_LEASE.namespace)
    metadata = {"name": MANAGER_LEASE.name, "namespace": MANAGER_LEASE.namespace}

    def renew() -> None:
        api.put_object(LEASES, {"metadata": metadata, "spec": {"holderIdentity": "cm_1", "renewTime": world.renew_time()}})

    renew()
    assert "lifecycle-elsewhere" not in await check(world), "it does not run: its Lease is left over"

    async def go_on(_number: int) -> None:
        renew()

    async with running(world.every(2.0, go_on)):
        assert "cm_1" in (await check(world))["lifecycle-elsewhere"].what


@acceptance
async def test_broken_objects_and_leftover_leases_are_named(world: World) -> None:
    assert world.api is not None
    world.api.inject_object(MACHINE_POOLS, WRONG_TYPE)
    await world.kubectl.create_lease("gone", world.renew_time())
    found = await check(world)
    assert found["undecodable"].objects == ("bad",)
    assert found["orphaned-lease"].objects == ("gone",)


@acceptance
async def test_more_pools_than_a_page_are_all_looked_at(world: World) -> None:
    assert world.api is not None
    for number in range(1201):
        world.api.put_object(MACHINE_POOLS, {"metadata": {"name": f"pool-{number}"}, "spec": {"providerID": "x"}})
    found = await check(world, watch_seconds=0.0)
    assert len(found["never-reported"].objects) == 1201


def test_the_json_is_one_document_whose_keys_stay() -> None:
    findings = [table.fine("api-unreachable", "all is well"), table.found("pool-missing", "no pool \u202e\n", ("a",))]
    document = json.loads(as_json("sidecar", findings))
    assert list(document) == ["schema", "as", "passed", "counts", "findings"]
    assert (document["schema"], document["as"], document["passed"]) == ("loopwatch.check/v1", "sidecar", False)
    assert document["counts"] == {"ok": 1, "info": 0, "warning": 0, "error": 1}
    assert list(document["findings"][1]) == ["check", "severity", "what", "why", "fix", "objects"]
    assert document["findings"][1]["objects"] == ["a"]


def test_keys_of_findings_are_unique_and_each_is_claimed_here() -> None:
    assert len({row.key for row in table.ROWS}) == len(table.ROWS)
    claims = Path(__file__).read_text(encoding="utf-8")
    assert [row.key for row in table.ROWS if f'"{row.key}"' not in claims] == []
