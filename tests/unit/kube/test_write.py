from __future__ import annotations

import json

import pytest

from loopwatch.kube.errors import ApiError
from loopwatch.kube.resources import LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import TransportError, TransportTimeout
from loopwatch.kube.write import Writer
from tests.support.stepped import SteppedClock, stepped
from tests.unit.kube.fake_api import FakeApi, Fault, status_body

LEASE = ObjectKey("ironcore-machinepool-lease", "pool-a")


def _writer(api: FakeApi) -> Writer:
    return Writer(api, SteppedClock(), field_manager="loopwatch-sidecar")


@stepped
async def test_a_merge_patch_carries_the_version_it_was_decided_on_and_our_name() -> None:
    api = FakeApi()
    body = {"metadata": {"resourceVersion": "7"}, "status": {"conditions": None}}
    answer = await _writer(api).merge_patch(MACHINE_POOLS, ObjectKey("", "pool-a"), body, subresource="status", timeout_seconds=5)
    assert json.loads(answer) == body
    (request,) = api.requests
    assert (request.method, request.path) == ("PATCH", "/apis/compute.ironcore.dev/v1alpha1/machinepools/pool-a/status")
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert request.query == (("fieldManager", "loopwatch-sidecar"),)


@stepped
async def test_create_posts_to_the_collection() -> None:
    api = FakeApi()
    await _writer(api).create(LEASES, {"metadata": {"name": "pool-a"}}, namespace=LEASE.namespace, timeout_seconds=5)
    (request,) = api.requests
    assert (request.method, request.path) == ("POST", "/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases")
    assert request.headers["Content-Type"] == "application/json"
    assert request.query == (("fieldManager", "loopwatch-sidecar"),)


@stepped
async def test_an_empty_patch_is_sent_as_an_object() -> None:
    api = FakeApi()
    await _writer(api).merge_patch(LEASES, LEASE, {}, timeout_seconds=5)
    assert api.requests[0].body == b"{}"


@stepped
async def test_a_refused_write_names_what_was_refused() -> None:
    api = FakeApi()
    api.faults.extend([Fault(status=409, body=status_body(409, "Conflict")), Fault(status=404), Fault(status=403)])
    with pytest.raises(ApiError, match=r"^patch leases.coordination.k8s.io ironcore-machinepool-lease/pool-a: 409 Conflict$"):
        await _writer(api).merge_patch(LEASES, LEASE, {}, timeout_seconds=5)
    with pytest.raises(ApiError, match=r"^create leases.coordination.k8s.io ironcore-machinepool-lease/pool-a: 404$"):
        await _writer(api).create(LEASES, {"metadata": {"name": "pool-a"}}, namespace=LEASE.namespace, timeout_seconds=5)
    with pytest.raises(ApiError, match=r"no right to create leases.coordination.k8s.io in namespace ironcore-machinepool-lease"):
        await _writer(api).create(LEASES, {}, namespace=LEASE.namespace, timeout_seconds=5)


@stepped
async def test_a_401_renews_the_credentials_once_and_sends_the_same_body_once_more() -> None:
    api = FakeApi()
    api.faults.append(Fault(status=401))
    await _writer(api).merge_patch(LEASES, LEASE, {"spec": {"renewTime": "x"}}, timeout_seconds=5)
    assert api.renewals == 1
    assert api.requests[0] == api.requests[1]
    api.faults.extend([Fault(status=401), Fault(status=401)])
    with pytest.raises(ApiError):
        await _writer(api).create(LEASES, {}, timeout_seconds=5)
    assert (api.renewals, len(api.requests)) == (2, 4)


@stepped
async def test_a_write_whose_answer_is_lost_is_not_sent_again() -> None:
    api = FakeApi()
    api.faults.append(Fault(error=TransportError("reset")))
    with pytest.raises(TransportError):
        await _writer(api).merge_patch(LEASES, LEASE, {}, timeout_seconds=5)
    api.faults.append(Fault(hang=True))
    with pytest.raises(TransportTimeout):
        await _writer(api).merge_patch(LEASES, LEASE, {}, timeout_seconds=5)
    assert len(api.requests) == 2


def test_there_is_no_way_to_put() -> None:
    assert sorted(name for name in vars(Writer) if not name.startswith("_")) == ["create", "merge_patch"]
