"""What the other end-to-end tests take for granted about the API server they run on."""

import time

import pytest

from tests.e2e.watching import LEASES, POOLS, Watcher, became, ready
from tests.real_servers.apiserver import ApiServer
from tests.real_servers.client import UnexpectedStatus

POOL = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "metadata": {"name": "a"}, "spec": {"providerID": "x://a"}}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {"holderIdentity": "a_1"}}


def test_it_calls_itself_by_the_version_that_go_mod_names(api_server: ApiServer) -> None:
    assert api_server.client.get("/version").body["gitVersion"] == "v1.36.3"


def test_who_was_given_no_rights_is_refused(api_server: ApiServer) -> None:
    answer = api_server.client_for("somebody").get(POOLS)
    assert answer.status == 403
    assert 'User "somebody" cannot list resource "machinepools"' in answer.body["message"]


def test_a_watcher_sees_ready_change_and_tells_when(api_server: ApiServer) -> None:
    client = api_server.client
    began = time.monotonic()
    with Watcher(client, POOLS) as watcher:
        client.create(POOLS, POOL)
        condition = {"type": "Ready", "status": "Unknown", "reason": "MachinePoolStatusUnknown"}
        client.merge_patch(f"{POOLS}/a/status", {"status": {"conditions": [condition]}})
        seen = watcher.wait_for("marked", became("a", "Unknown", "MachinePoolStatusUnknown"), 5.0)
        assert began < seen.at < time.monotonic()
        assert [ready(event.object)[0] for event in watcher.events] == ["", "Unknown"]
        with pytest.raises(AssertionError, match="not True again within"):
            watcher.wait_for("True again", became("a", "True"), 0.1)


def test_the_audit_log_holds_each_request_once_with_its_code(api_server: ApiServer) -> None:
    client = api_server.client
    start = api_server.audit_log.position()
    client.create(LEASES, LEASE)
    client.merge_patch(f"{LEASES}/a", {"spec": {"holderIdentity": "a_2"}})
    assert client.get(f"{LEASES}/b").status == 404
    with pytest.raises(UnexpectedStatus, match="409"):
        client.merge_patch(f"{LEASES}/a", {"metadata": {"resourceVersion": "1"}})
    requests = api_server.audit_log.requests(since=start, user_agent="loopwatch-tests")
    assert [(request.verb, request.resource, request.name, request.code) for request in requests] == [
        ("create", "leases", "a", 201),
        ("patch", "leases", "a", 200),
        ("get", "leases", "b", 404),
        ("patch", "leases", "a", 409),
    ]
    assert all(request.finished is not None for request in requests)


def test_a_watch_under_way_is_in_the_audit_log_once(api_server: ApiServer) -> None:
    start = api_server.audit_log.position()
    with Watcher(api_server.client, POOLS) as watcher:
        api_server.client.create(POOLS, POOL)
        watcher.wait_for("added", lambda event: event.type == "ADDED", 5.0)
        watches = [request for request in api_server.audit_log.requests(since=start) if request.verb == "watch"]
        assert [(request.resource, request.code, request.finished) for request in watches if request.user_agent == "loopwatch-tests"] == [
            ("machinepools", 200, None)
        ]


def test_a_paused_server_answers_nothing_until_it_is_resumed(api_server: ApiServer) -> None:
    api_server.pause()
    try:
        with pytest.raises(TimeoutError):
            api_server.client.request("GET", "/version", timeout_seconds=0.5)
    finally:
        api_server.resume()
    assert api_server.client.get("/version").status == 200


def test_a_killed_server_comes_back_on_its_port_with_its_data(api_server: ApiServer) -> None:
    api_server.client.create(POOLS, POOL)
    url = api_server.url
    api_server.kill()
    with pytest.raises(ConnectionRefusedError):
        api_server.client.get(POOLS)
    api_server.restart()
    assert api_server.url == url
    assert [pool["metadata"]["name"] for pool in api_server.client.get(POOLS).body["items"]] == ["a"]
