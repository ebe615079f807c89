"""Two controllers with the default times of election, as processes on a real kube-apiserver: one writes, whatever happens to it."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.conftest import StartLoopwatch
from tests.e2e.programs import Loopwatch
from tests.e2e.watching import POOLS, Watcher, became
from tests.e2e.world import until
from tests.real_servers.apiserver import ApiServer

GRACE_SECONDS = 10.0
NAMESPACE = "default"
ELECTION = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/loopwatch-controller"
STALL_SECONDS = 30.0
SILENCE = "loopwatch_machinepool_silence_seconds"

Record = Callable[[str, object], None]


@pytest.fixture
def pools(api_server: ApiServer) -> Iterator[Watcher]:
    """The pools, watched; and no election Lease from another test, which would be waited for."""
    api_server.client.delete(ELECTION)
    with Watcher(api_server.client, POOLS) as watcher:
        yield watcher


def leads(controller: Loopwatch) -> bool:
    """Whether it says so."""
    return controller.counted("loopwatch_leader_election_leading") == 1


def two_controllers(start: StartLoopwatch) -> tuple[Loopwatch, Loopwatch]:
    """The one that leads, and the one that stands by, both with their lists in."""
    flags = (f"--machine-pool-lifecycle-grace-period={GRACE_SECONDS:g}s", f"--leader-elect-resource-namespace={NAMESPACE}")
    leader = start("controller", *flags)
    until("leading", lambda: leads(leader), 10.0)
    standby = start("controller", *flags)
    standby.wait_until_ready()
    return leader, standby


def create_pool(server: ApiServer, name: str) -> None:
    """A pool that nobody reports for."""
    manifest = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "metadata": {"name": name}}
    server.client.create(POOLS, manifest | {"spec": {"providerID": f"test://{name}"}})


def almost_due(controller: Loopwatch, name: str, left_seconds: float) -> None:
    """Wait until the pool's silence lacks that much of the grace."""
    until("silent", lambda: controller.counted(SILENCE, machinepool=name) >= GRACE_SECONDS - left_seconds, GRACE_SECONDS * 2)


def test_a_leader_killed_before_it_writes_is_replaced_and_the_pool_unknown_within_20_s(
    api_server: ApiServer, pools: Watcher, start_loopwatch: StartLoopwatch, record_property: Record
) -> None:
    leader, standby = two_controllers(start_loopwatch)
    create_pool(api_server, "pool-a")
    almost_due(leader, "pool-a", 1.0)
    leader.kill()
    killed = time.monotonic()
    assert not leads(standby)
    unknown = pools.wait_for("Unknown", became("pool-a", "Unknown"), 30.0)
    record_property("SIGKILL of the leader to Unknown, s", round(unknown.at - killed, 1))
    assert unknown.at - killed < 20.0


def test_a_leader_that_is_told_to_stop_lets_go_and_the_pool_is_unknown_within_3_s(
    api_server: ApiServer, pools: Watcher, start_loopwatch: StartLoopwatch, record_property: Record
) -> None:
    leader, _ = two_controllers(start_loopwatch)
    create_pool(api_server, "pool-a")
    almost_due(leader, "pool-a", 0.5)
    stopped = time.monotonic()
    assert leader.stop(within_seconds=5.0) == 0
    unknown = pools.wait_for("Unknown", became("pool-a", "Unknown"), 30.0)
    record_property("SIGTERM of the leader to Unknown, s", round(unknown.at - stopped, 1))
    assert unknown.at - stopped < 3.0


@pytest.mark.timeout(120)
def test_a_leader_that_stands_still_for_30_s_writes_nothing_when_it_goes_on(
    api_server: ApiServer, pools: Watcher, start_loopwatch: StartLoopwatch
) -> None:
    leader, standby = two_controllers(start_loopwatch)
    position = api_server.audit_log.position()
    names = [f"pool-{number}" for number in range(5)]
    for name in names:
        create_pool(api_server, name)
    almost_due(leader, names[-1], 0.2)
    leader.pause()
    stalled = time.monotonic()
    for name in names:
        pools.wait_for("Unknown", became(name, "Unknown"), 25.0)
    until("led by the other", lambda: leads(standby), 25.0)
    time.sleep(max(STALL_SECONDS - (time.monotonic() - stalled), 0.0))
    leader.resume()
    until("answering", lambda: leader.get("/healthz")[0] in (http.client.OK, http.client.SERVICE_UNAVAILABLE), 5.0)
    time.sleep(5.0)  # what it would still write, it writes now
    assert not leads(leader)
    assert leads(standby)
    accepted = [
        request.name
        for request in api_server.audit_log.requests(since=position, user_agent="(controller)")
        if request.resource == "machinepools/status" and request.code == http.client.OK
    ]
    assert sorted(accepted) == names
