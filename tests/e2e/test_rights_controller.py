"""A controller without one of its rights: which claim breaks, which hold, and how the product says it. One process a row, all at once.

Each has an election Lease of its own. Those that could mark the silent pool all the same run with --no-act, so that nobody does; what
the whole set of rights does is told in test_rights.py. Times are scaled: grace 5 s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

import pytest

from loopwatch.rbac.model import Right, Room
from loopwatch.settings.model import Subject
from tests.e2e.bereft import (
    CLAIM_SECONDS,
    STALE_SECONDS,
    START_SECONDS,
    Bereft,
    create_machine,
    create_pool,
    create_still_lease,
    end,
    rights_of,
    start,
    write_ready,
)
from tests.e2e.identities import NAMESPACE, create, issue
from tests.e2e.programs import Machinepoollet, MachineRuntime
from tests.e2e.watching import LEASES, MACHINES, POOLS
from tests.real_servers.apiserver import ApiServer

pytestmark = pytest.mark.timeout(START_SECONDS + 3 * CLAIM_SECONDS)

GRACE_SECONDS = 5.0
TIMES = (
    f"--machine-pool-lifecycle-grace-period={GRACE_SECONDS:g}s",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
    f"--leader-elect-resource-namespace={NAMESPACE}",
)
SILENT, ALIVE, MOVED, TOLD = "silent", "alive", "moved", "told"
LEADING = "loopwatch_leader_election_leading"
WATCH_POOLS, WATCH_LEASES, WATCH_MACHINES = ("controller: watch machinepools", "controller: watch leases", "controller: watch machines")
Controllers = Mapping[str, Bereft]
Claim = Callable[[Bereft, Controllers], None]
"""What holds of the first, and what of the others shows that it is its right that it lacks."""
ROWS = rights_of(Subject.CONTROLLER)
CREATE_EVENTS, PATCH_EVENTS = "controller: create events", "controller: patch events"
NEVER = "--machine-pool-lifecycle-grace-period=1h"
"""For those that lead, tell of others' writes, and must not mark the silent pool themselves."""
ONLOOKERS = {WATCH_POOLS, WATCH_LEASES, "controller: list machines", WATCH_MACHINES}


@pytest.fixture(scope="module")
def empty_cluster(api_server: ApiServer) -> Iterator[None]:
    """The controllers of all rows live as long as this module's tests."""
    yield
    for collection in (POOLS, LEASES, MACHINES):
        api_server.client.delete(collection)


@pytest.fixture(scope="module")
def controllers(api_server: ApiServer, empty_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    """A silent pool with a Machine, one that lives, two that the test moves; and for each row a controller without that right."""
    del empty_cluster
    folder, client = tmp_path_factory.mktemp("rights"), api_server.client
    found: dict[str, Bereft] = {}
    with contextlib.ExitStack() as stack:
        for pool in (SILENT, ALIVE, MOVED, TOLD):
            create_pool(client, pool)
        create_still_lease(client, SILENT)
        create_machine(client, "first", SILENT)
        runtime, machinepoollet = MachineRuntime(folder), stack.enter_context(Machinepoollet())
        stack.callback(end, runtime.process)
        sidecar = start(
            "sidecar",
            create(api_server, folder, Subject.SIDECAR, machine_pool_name=ALIVE),
            folder,
            f"--machine-pool-name={ALIVE}",
            "--mode=report",
            "--heartbeat-interval=1s",
            "--heartbeat-lease-duration=4s",
            "--heartbeat-status-timeout=500ms",
            f"--machine-runtime-endpoint=unix:{runtime.socket}",
            f"--machinepoollet-healthz={machinepoollet.healthz}",
        )
        stack.callback(end, sidecar)
        for number, row in enumerate(ROWS):
            lease = f"election-{number}"
            identity = create(
                api_server,
                folder,
                Subject.CONTROLLER,
                name_prefix=f"row-{number}",
                metrics_auth="kubernetes",
                leader_elect_resource_name=lease,
            )
            identity.lose(row)
            watches_only = row.key in ONLOOKERS or row.room is Room.LISTEN
            process = start(
                "controller",
                identity,
                folder,
                *TIMES,
                *([NEVER] if row.key in {CREATE_EVENTS, PATCH_EVENTS} else []),
                f"--leader-elect-resource-name={lease}",
                f"--no-act={'true' if watches_only else 'false'}",
                f"--metrics-auth={'kubernetes' if row.room is Room.LISTEN else 'none'}",
            )
            stack.callback(end, process)
            found[row.key] = Bereft(row, process, identity, client, SILENT)
        yield found


def marks_nothing(controller: Bereft) -> None:
    """Long after the grace nobody has marked the silent pool."""
    controller.waits_until(
        "the pool is silent for two graces",
        lambda: (
            max(
                [
                    *controller.shows("loopwatch_machinepool_silence_seconds", machinepool=SILENT),
                    *controller.shows("loopwatch_machinepool_lifecycle_blind_seconds"),
                ],
                default=0.0,
            )
            > 2 * GRACE_SECONDS
        ),
        START_SECONDS,
    )
    assert controller.ready(SILENT) == ""


def leads_and_marks_nothing(controller: Bereft, _: Controllers) -> None:
    controller.waits_until("it leads", lambda: controller.shows(LEADING) == [1.0], START_SECONDS)
    controller.waits_until("it could not mark", lambda: "could not mark the pool Unknown" in controller.process.text())
    marks_nothing(controller)
    assert controller.answers("/readyz") == 200


def is_blind(controller: Bereft, resource: str) -> None:
    marks_nothing(controller)
    assert controller.shows("loopwatch_machinepool_lifecycle_blind_seconds", resource=resource)[0] > GRACE_SECONDS
    assert controller.answers("/readyz") == 503
    assert f"not yet: {resource} listed" in controller.process.get("/readyz")[1]
    assert controller.shows("loopwatch_reflector_errors_total", resource=resource, kind="forbidden")[0] > 0


def without_list_pools(controller: Bereft, _: Controllers) -> None:
    is_blind(controller, "machinepools")


def without_list_leases(controller: Bereft, _: Controllers) -> None:
    is_blind(controller, "leases")


def without_watch_pools(controller: Bereft, others: Controllers) -> None:
    def shown_by(whom: Bereft) -> list[float]:
        return whom.shows("loopwatch_machinepool_ready", machinepool=MOVED, status="false")

    control = others[WATCH_LEASES]
    controller.waits_until("it has listed the pool", lambda: shown_by(controller) == [0.0], START_SECONDS)
    control.waits_until("it has listed the pool", lambda: shown_by(control) == [0.0], START_SECONDS)
    write_ready(controller.client, MOVED, "False", "RuntimeUnreachable")
    control.waits_until("who may watch sees it", lambda: shown_by(control) == [1.0])
    assert shown_by(controller) == [0.0]


def without_watch_leases(controller: Bereft, others: Controllers) -> None:
    def age_by(whom: Bereft) -> float:
        return sum(whom.shows("loopwatch_machinepool_lease_age_seconds", machinepool=ALIVE))

    controller.waits_until("a heartbeat of each second looks old", lambda: age_by(controller) > STALE_SECONDS, START_SECONDS)
    control = others[WATCH_POOLS]
    control.waits_until("who may watch sees each", lambda: 0.0 < age_by(control) < STALE_SECONDS / 2)
    assert controller.ready(ALIVE) == "True"


def machines(whom: Bereft) -> list[float]:
    return whom.shows("loopwatch_machinepool_machines", machinepool=SILENT)


def without_list_machines(controller: Bereft, others: Controllers) -> None:
    others[WATCH_POOLS].waits_until("who may list shows them", lambda: sum(machines(others[WATCH_POOLS])) >= 1, START_SECONDS)
    controller.waits_until("pools are shown", lambda: bool(controller.shows("loopwatch_machinepool_info")), START_SECONDS)
    assert machines(controller) == []
    assert controller.answers("/readyz") == 200, "Machines are no condition of readiness"


def without_watch_machines(controller: Bereft, others: Controllers) -> None:
    control = others[WATCH_POOLS]
    controller.waits_until("it has listed the Machine", lambda: sum(machines(controller)) == 1, START_SECONDS)
    control.waits_until("it has listed the Machine", lambda: sum(machines(control)) == 1, START_SECONDS)
    create_machine(controller.client, "second", SILENT)
    control.waits_until("who may watch sees it", lambda: sum(machines(control)) == 2)
    assert sum(machines(controller)) == 1


def never_leads(controller: Bereft, _: Controllers) -> None:
    marks_nothing(controller)
    assert controller.shows(LEADING) == [0.0]
    assert controller.shows("loopwatch_leader_election_transitions_total") == [0.0]


def leads_until_its_first_renewal_is_due(controller: Bereft, _: Controllers) -> None:
    marks_nothing(controller)
    assert controller.shows(LEADING) == [0.0]
    assert controller.shows("loopwatch_leader_election_transitions_total") == [2.0]


def recovers(controller: Bereft, times: int) -> None:
    """A pool goes Unknown and comes back before the eyes of a leader, which tells of it by an Event."""
    controller.waits_until("it leads", lambda: controller.shows(LEADING) == [1.0], START_SECONDS)
    transitions = "loopwatch_machinepool_ready_transitions_total"
    for status in ["Unknown", "True"] * times:
        seen = sum(controller.shows(transitions, machinepool=TOLD))
        write_ready(controller.client, TOLD, status, "MachinePoolStatusUnknown" if status == "Unknown" else "HeartbeatReceived")
        controller.waits_until(f"it saw {status}", lambda seen=seen: sum(controller.shows(transitions, machinepool=TOLD)) > seen)  # type: ignore[misc] # each its own


def events_written(controller: Bereft) -> list[tuple[str, int]]:
    """Its requests about Events, and how they were answered."""
    audited = controller.identity.server.audit_log.requests(user_agent="(controller)")
    return [
        (request.verb, request.code) for request in audited if request.resource == "events" and request.user == controller.identity.user
    ]


def without_create_events(controller: Bereft, _: Controllers) -> None:
    recovers(controller, times=1)
    controller.waits_until("it was refused", lambda: bool(events_written(controller)))
    assert {*events_written(controller)} == {("create", 403)}
    assert controller.shows(LEADING) == [1.0], "an Event never matters to the loops"


def without_patch_events(controller: Bereft, _: Controllers) -> None:
    recovers(controller, times=2)
    controller.waits_until("it was refused", lambda: ("patch", 403) in events_written(controller))
    assert {*events_written(controller)} == {("create", 201), ("patch", 403)}
    assert controller.shows(LEADING) == [1.0]


def without_a_review(controller: Bereft, _: Controllers) -> None:
    token = issue(controller.client, controller.identity.account)
    controller.waits_until("a scrape is answered 503", lambda: controller.answers("/metrics", token) == 503, START_SECONDS)
    controller.waits_until("it is ready", lambda: controller.answers("/readyz") == 200)
    assert controller.answers("/metrics") == 401


CLAIMS: dict[str, Claim] = {
    "controller: list machinepools": without_list_pools,
    WATCH_POOLS: without_watch_pools,
    "controller: get machinepools": leads_and_marks_nothing,
    "controller: patch machinepools/status": leads_and_marks_nothing,
    "controller: list leases": without_list_leases,
    WATCH_LEASES: without_watch_leases,
    "controller: get leases": leads_and_marks_nothing,
    "controller: list machines": without_list_machines,
    WATCH_MACHINES: without_watch_machines,
    CREATE_EVENTS: without_create_events,
    PATCH_EVENTS: without_patch_events,
    "controller: election: get leases": never_leads,
    "controller: election: create leases": never_leads,
    "controller: election: patch leases": leads_until_its_first_renewal_is_due,
    "controller: listen address: create tokenreviews": without_a_review,
    "controller: listen address: create subjectaccessreviews": without_a_review,
}


@pytest.mark.parametrize("right", ROWS, ids=lambda right: right.key)
def test_a_controller_without_this_right(right: Right, controllers: Controllers) -> None:
    controller = controllers[right.key]
    CLAIMS[right.key](controller, controllers)
    controller.says_what_it_lacks()
    assert controller.answers("/healthz") == 200, "a right that is missing makes no process unhealthy"
