"""A sidecar without one of its rights: which claim breaks, which hold, and how the product says it. One process a row, all at once.

Times are scaled: a heartbeat each second, a lease of 4 s.
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
    create_pool,
    create_still_lease,
    end,
    rights_of,
    start,
    write_ready,
)
from tests.e2e.identities import create, issue
from tests.e2e.programs import Machinepoollet, MachineRuntime
from tests.e2e.watching import LEASES, POOLS
from tests.real_servers.apiserver import ApiServer

pytestmark = pytest.mark.timeout(START_SECONDS + 2 * CLAIM_SECONDS)

ROWS = rights_of(Subject.SIDECAR)
TIMES = ("--heartbeat-interval=1s", "--heartbeat-lease-duration=4s", "--heartbeat-status-timeout=500ms")
LEASE_WRITES = "loopwatch_heartbeat_lease_writes_total"
LIST_POOL, WATCH_LEASES, GET_LEASES = "sidecar: list machinepools", "sidecar: watch leases", "sidecar: get leases"
SETTLED_PROBES = 4
Claim = Callable[[Bereft], None]


@pytest.fixture(scope="module")
def empty_cluster(api_server: ApiServer) -> Iterator[None]:
    """The sidecars of all rows live as long as this module's tests."""
    yield
    for collection in (POOLS, LEASES):
        api_server.client.delete(collection)


@pytest.fixture(scope="module")
def sidecars(api_server: ApiServer, empty_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Bereft]]:
    """For each row a pool, an identity without that right, and a sidecar."""
    del empty_cluster
    folder, client = tmp_path_factory.mktemp("rights"), api_server.client
    found: dict[str, Bereft] = {}
    with contextlib.ExitStack() as stack:
        runtime, machinepoollet = MachineRuntime(folder), stack.enter_context(Machinepoollet())
        stack.callback(end, runtime.process)
        for number, row in enumerate(ROWS):
            pool = f"pool-{number}"
            create_pool(client, pool)
            if row.key in {WATCH_LEASES, GET_LEASES}:
                create_still_lease(client, pool)
            identity = create(api_server, folder, Subject.SIDECAR, machine_pool_name=pool, metrics_auth="kubernetes")
            identity.lose(row)
            process = start(
                "sidecar",
                identity,
                folder,
                *TIMES,
                f"--machine-pool-name={pool}",
                f"--mode={'auto' if row.key == GET_LEASES else 'report'}",
                f"--metrics-auth={'kubernetes' if row.room is Room.LISTEN else 'none'}",
                f"--machine-runtime-endpoint=unix:{runtime.socket}",
                f"--machinepoollet-healthz={machinepoollet.healthz}",
            )
            stack.callback(end, process)
            found[row.key] = Bereft(row, process, identity, client, pool)
        yield found


def is_settled(sidecar: Bereft) -> None:
    """Wait until it has had every occasion to write: some beats have gone by."""
    probes = "loopwatch_heartbeat_probes_total"
    sidecar.waits_until("several beats have gone by", lambda: sum(sidecar.shows(probes, code="OK")) >= SETTLED_PROBES, START_SECONDS)


def becomes_true(sidecar: Bereft) -> None:
    sidecar.waits_until("Ready is True", lambda: sidecar.ready() == "True", START_SECONDS)


def counts_forbidden(sidecar: Bereft, family: str) -> None:
    sidecar.waits_until(f"{family} counts forbidden", lambda: sum(sidecar.shows(family, result="forbidden")) > 0)


def cannot_follow(sidecar: Bereft, resource: str) -> None:
    """Its reflector counts what it was refused."""
    assert sum(sidecar.shows("loopwatch_reflector_errors_total", resource=resource, kind="forbidden")) > 0


def without_list_pools(sidecar: Bereft) -> None:
    is_settled(sidecar)
    assert (sidecar.renew_time(), sidecar.ready()) == ("", "")
    assert sidecar.shows("loopwatch_heartbeat_state", state="waiting") == [1.0]
    assert sidecar.answers("/readyz") == 503
    cannot_follow(sidecar, "machinepools")


def without_watch_pools(sidecar: Bereft) -> None:
    becomes_true(sidecar)
    write_ready(sidecar.client, sidecar.pool, "Unknown", "MachinePoolStatusUnknown")
    for _ in range(3):
        sidecar.is_renewed()
    assert sidecar.ready() == "Unknown", "with the watch it is True again at once"
    assert sidecar.shows("loopwatch_machinepool_ready", status="absent") == [1.0], "as the list showed it"
    cannot_follow(sidecar, "machinepools")


def without_get_pools(sidecar: Bereft) -> None:
    sidecar.is_renewed()
    sidecar.waits_until("it shows so", lambda: sidecar.shows("loopwatch_heartbeat_ready_unpublished") == [1.0])
    assert sidecar.ready() == ""


def without_patch_status(sidecar: Bereft) -> None:
    without_get_pools(sidecar)
    counts_forbidden(sidecar, "loopwatch_heartbeat_ready_writes_total")


def without_list_leases(sidecar: Bereft) -> None:
    becomes_true(sidecar)
    sidecar.is_renewed()
    assert sidecar.shows("loopwatch_machinepool_lease_age_seconds") == []
    assert sidecar.shows("loopwatch_reflector_synced", resource="leases") == [0.0]
    assert sidecar.answers("/readyz") == 200
    cannot_follow(sidecar, "leases")


def without_watch_leases(sidecar: Bereft) -> None:
    becomes_true(sidecar)
    sidecar.waits_until("the series stand still", lambda: sum(sidecar.shows("loopwatch_machinepool_lease_age_seconds")) > STALE_SECONDS)
    sidecar.is_renewed()
    assert sidecar.holder().startswith(f"{sidecar.pool}_")
    cannot_follow(sidecar, "leases")


def without_get_leases(sidecar: Bereft) -> None:
    is_settled(sidecar)
    sidecar.waits_until("it stood still", lambda: sum(sidecar.shows("loopwatch_machinepool_lease_age_seconds")) > 2 * STALE_SECONDS)
    assert sidecar.shows("loopwatch_heartbeat_state", state="waiting") == [1.0]
    assert (sidecar.holder(), sidecar.ready()) == (f"{sidecar.pool}_gone", "")


def without_create_leases(sidecar: Bereft) -> None:
    becomes_true(sidecar)
    counts_forbidden(sidecar, LEASE_WRITES)
    assert sidecar.renew_time() == ""


def without_patch_leases(sidecar: Bereft) -> None:
    becomes_true(sidecar)
    counts_forbidden(sidecar, LEASE_WRITES)
    made = sidecar.renew_time()
    assert made
    sidecar.waits_until("it falls silent", lambda: sum(sidecar.shows("loopwatch_machinepool_lease_age_seconds")) > STALE_SECONDS)
    assert sidecar.renew_time() == made


def without_a_review(sidecar: Bereft) -> None:
    """Nobody gets the page, which costs no heartbeat; healthz and readyz stay open."""
    token = issue(sidecar.client, sidecar.identity.account)
    sidecar.waits_until("a scrape is answered 503", lambda: sidecar.answers("/metrics", token) == 503, START_SECONDS)
    assert (sidecar.answers("/metrics"), sidecar.answers("/healthz"), sidecar.answers("/readyz")) == (401, 200, 200)
    becomes_true(sidecar)
    sidecar.is_renewed()


CLAIMS: dict[str, Claim] = {
    LIST_POOL: without_list_pools,
    "sidecar: watch machinepools": without_watch_pools,
    "sidecar: get machinepools": without_get_pools,
    "sidecar: patch machinepools/status": without_patch_status,
    "sidecar: list leases": without_list_leases,
    WATCH_LEASES: without_watch_leases,
    GET_LEASES: without_get_leases,
    "sidecar: create leases": without_create_leases,
    "sidecar: patch leases": without_patch_leases,
    "sidecar: listen address: create tokenreviews": without_a_review,
    "sidecar: listen address: create subjectaccessreviews": without_a_review,
}


@pytest.mark.parametrize("right", ROWS, ids=lambda right: right.key)
def test_a_sidecar_without_this_right(right: Right, sidecars: Mapping[str, Bereft]) -> None:
    sidecar = sidecars[right.key]
    CLAIMS[right.key](sidecar)
    sidecar.says_what_it_lacks()
    assert sidecar.answers("/healthz") == 200, "a right that is missing makes no process unhealthy"
