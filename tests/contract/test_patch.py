"""Merge patches and JSON patches: what they do to an object, and how they fail."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, MACHINES, ObjectKey
from tests.contract import differences
from tests.contract.cluster import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Cluster, Reply, create, get, new, patch, unique

TAINTS = [{"key": key, "effect": "NoSchedule"} for key in ("a", "b", "c")]
REJECTED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "the server rejected our request due to an error in our request",
    "reason": "Invalid",
    "details": {},
    "code": 422,
}


async def a_pool(cluster: Cluster) -> ObjectKey:
    body = new(MACHINE_POOLS, unique("pool"), spec={"providerID": "x", "taints": TAINTS})
    body["metadata"]["labels"] = {"a": "1", "b": "2"}
    await create(cluster, MACHINE_POOLS, body)
    return ObjectKey("", body["metadata"]["name"])


async def json_patch(cluster: Cluster, key: ObjectKey, *operations: dict[str, Any]) -> Reply:
    return await patch(cluster, MACHINE_POOLS, key, list(operations), kind=JSON_PATCH)


async def test_a_merge_patch_sets_replaces_and_removes(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    body = {"metadata": {"labels": {"a": "9", "b": None, "c": "3"}}, "spec": {"taints": TAINTS[:1]}}
    reply = await patch(cluster, MACHINE_POOLS, key, body)
    assert (reply.status, reply.json["metadata"]["labels"]) == (200, {"a": "9", "c": "3"})
    assert reply.json["spec"] == {"providerID": "x", "taints": TAINTS[:1]}
    assert (await get(cluster, MACHINE_POOLS, key)).json == reply.json


async def test_a_merge_patch_drops_nulls_inside_lists_of_objects(cluster: Cluster) -> None:
    key = ObjectKey("default", unique("machine"))
    await create(cluster, MACHINES, new(MACHINES, key.name, "default"))
    reply = await patch(cluster, MACHINES, key, {"spec": {"list": [{"a": None, "b": 1}, None], "gone": None}})
    assert reply.json["spec"] == {"list": [{"b": 1}, None]}


async def test_a_json_patch_keeps_a_null_that_the_schema_allows(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    conditions = [{"type": "Ready", "status": "True", "lastUpdateTime": None, "reason": None}]
    operation = {"op": "add", "path": "/status", "value": {"conditions": conditions}}
    reply = await patch(cluster, MACHINE_POOLS, key, [operation], subresource="status", kind=JSON_PATCH)
    assert reply.json["status"]["conditions"] == [{"type": "Ready", "status": "True", "lastUpdateTime": None}]


@pytest.mark.parametrize(
    ("operations", "labels"),
    [
        ([{"op": "add", "path": "/metadata/labels/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}),
        ([{"op": "replace", "path": "/metadata/labels/a", "value": "9"}], {"a": "9", "b": "2"}),
        ([{"op": "replace", "path": "/metadata/labels/new", "value": "9"}], {"a": "1", "b": "2", "new": "9"}),
        ([{"op": "remove", "path": "/metadata/labels/a"}], {"b": "2"}),
        ([{"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/z"}], {"z": "1", "b": "2"}),
        ([{"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/z"}], {"a": "1", "b": "2", "z": "1"}),
        ([{"op": "copy", "from": "/metadata/labels/none", "path": "/metadata/labels/z"}], {"a": "1", "b": "2", "z": ""}),
        ([{"op": "test", "path": "/metadata/labels/a", "value": "1"}], {"a": "1", "b": "2"}),
        ([{"op": "test", "path": "/spec/none", "value": None}], {"a": "1", "b": "2"}),
        ([{"op": "add", "path": "/metadata/labels/x.io~1y", "value": "3"}], {"a": "1", "b": "2", "x.io/y": "3"}),
        ([], {"a": "1", "b": "2"}),
    ],
    ids=lambda value: str(value[0]["op"]) if isinstance(value, list) and value else None,
)
async def test_a_json_patch_changes_labels(cluster: Cluster, operations: list[dict[str, Any]], labels: dict[str, str]) -> None:
    reply = await json_patch(cluster, await a_pool(cluster), *operations)
    assert (reply.status, reply.json["metadata"]["labels"]) == (200, labels)


@pytest.mark.parametrize(
    ("operation", "keys"),
    [
        ({"op": "add", "path": "/spec/taints/0", "value": {"key": "n", "effect": "NoExecute"}}, "nabc"),
        ({"op": "add", "path": "/spec/taints/3", "value": {"key": "n", "effect": "NoExecute"}}, "abcn"),
        ({"op": "add", "path": "/spec/taints/-", "value": {"key": "n", "effect": "NoExecute"}}, "abcn"),
        ({"op": "replace", "path": "/spec/taints/1/key", "value": "n"}, "anc"),
        ({"op": "remove", "path": "/spec/taints/-1"}, "ab"),
        ({"op": "move", "from": "/spec/taints/0", "path": "/spec/taints/-"}, "bca"),
    ],
)
async def test_a_json_patch_changes_lists_by_index(cluster: Cluster, operation: dict[str, Any], keys: str) -> None:
    reply = await json_patch(cluster, await a_pool(cluster), operation)
    assert (reply.status, "".join(taint["key"] for taint in reply.json["spec"]["taints"])) == (200, keys)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/labels/a", "value": "other"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "remove", "path": "/metadata/labels/none"},
        {"op": "move", "from": "/metadata/labels/none", "path": "/metadata/labels/z"},
        {"op": "add", "path": "/metadata/annotations/a", "value": "no parent"},
        {"op": "add", "path": "/spec/taints/9", "value": {"key": "n", "effect": "NoExecute"}},
        {"op": "replace", "path": "/spec/taints/3", "value": {"key": "n", "effect": "NoExecute"}},
        {"op": "remove", "path": "/spec/taints/-4"},
        {"op": "remove", "path": "/spec/taints/x"},
        {"op": "unknown", "path": "/metadata/labels/a", "value": "x"},
        {"op": "add", "path": "metadata", "value": "x"},
        {"op": "add", "value": "x"},
    ],
    ids=lambda operation: f"{operation.get('op')} {operation.get('path')}",
)
async def test_a_json_patch_that_does_not_apply_says_no_more_than_that(cluster: Cluster, operation: dict[str, Any]) -> None:
    key = await a_pool(cluster)
    before = (await get(cluster, MACHINE_POOLS, key)).json
    reply = await json_patch(cluster, key, {"op": "replace", "path": "/metadata/labels/a", "value": "changed"}, operation)
    assert (reply.status, reply.json) == (422, REJECTED)
    assert (await get(cluster, MACHINE_POOLS, key)).json == before


async def test_a_patch_that_can_not_be_read_is_a_bad_request(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    cases = [
        (MERGE_PATCH, b'{"a":', "error decoding patch: unexpected end of JSON input"),
        (MERGE_PATCH, b"[]", "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (MERGE_PATCH, b'"x"', "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (JSON_PATCH, b"{}", "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (JSON_PATCH, b"[{", "error decoding patch: unexpected end of JSON input"),
    ]
    for kind, body, said in cases:
        reply = await patch(cluster, MACHINE_POOLS, key, body, kind=kind)
        assert (reply.status, reply.reason, reply.message) == (400, "BadRequest", said)


async def test_a_patch_of_nothing_is_not_found(cluster: Cluster) -> None:
    for resource, key in ((MACHINE_POOLS, ObjectKey("", unique("none"))), (LEASES, ObjectKey("default", unique("none")))):
        reply = await patch(cluster, resource, key, {})
        assert (reply.status, reply.message) == (404, f'{resource.plural}.{resource.group} "{key.name}" not found')


async def test_a_patch_can_not_rename(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    reply = await patch(cluster, MACHINE_POOLS, key, {"metadata": {"name": "other"}})
    assert (reply.status, reply.reason) == (400, "BadRequest")


async def test_a_patched_object_that_can_not_be_decoded_is_quoted(cluster: Cluster) -> None:
    reply = await patch(cluster, MACHINE_POOLS, await a_pool(cluster), {"metadata": {"labels": {"a": 5}}})
    assert (reply.status, reply.reason) == (422, "Invalid")
    assert reply.message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert reply.message.endswith("json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string")


async def test_a_custom_resource_refuses_a_strategic_merge_patch(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    for kind in (STRATEGIC_MERGE_PATCH, JSON, "text/plain"):
        reply = await patch(cluster, MACHINE_POOLS, key, {}, kind=kind)
        assert (reply.status, reply.reason) == (415, "UnsupportedMediaType")
        assert reply.message == (
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
            "application/merge-patch+json, application/apply-patch+yaml"
        )


async def test_a_lease_takes_a_strategic_merge_patch_but_no_plain_json(cluster: Cluster) -> None:
    key = ObjectKey("default", unique("lease"))
    await create(cluster, LEASES, new(LEASES, key.name, "default", spec={"holderIdentity": "a"}))
    taken = await patch(cluster, LEASES, key, {"spec": {"leaseDurationSeconds": 6}}, kind=STRATEGIC_MERGE_PATCH)
    assert (taken.status, taken.json["spec"]) == (200, {"holderIdentity": "a", "leaseDurationSeconds": 6})
    refused = await patch(cluster, LEASES, key, {}, kind=JSON)
    assert (refused.status, refused.message) == (415, "415: Unsupported Media Type")


async def test_a_media_type_may_have_parameters(cluster: Cluster) -> None:
    reply = await patch(cluster, MACHINE_POOLS, await a_pool(cluster), {}, kind=f"{MERGE_PATCH}; charset=utf-8")
    assert reply.status == 200


async def test_server_side_apply_is_the_real_servers_alone(cluster: Cluster) -> None:
    name = unique("applied")
    headers = {"Content-Type": "application/apply-patch+yaml"}
    path = MACHINE_POOLS.object_path(ObjectKey("", name))
    reply = await cluster.send("PATCH", path, new(MACHINE_POOLS, name), query={"fieldManager": "me"}, headers=headers)
    assert reply.status == differences.expected("server-side-apply", cluster)
