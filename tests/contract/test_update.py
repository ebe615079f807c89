"""PUT, and what every change has in common: preconditions, generations, no-ops, managers."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, ObjectKey, Resource
from tests.contract import differences
from tests.contract.cluster import Cluster, Reply, create, get, new, patch, unique

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


async def a_pool(cluster: Cluster, **spec: object) -> tuple[ObjectKey, dict[str, Any]]:
    name = unique("pool")
    reply = await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, name, spec={"providerID": "x", **spec}))
    return ObjectKey("", name), reply.json


async def put(cluster: Cluster, resource: Resource, key: ObjectKey, body: object, subresource: str = "") -> Reply:
    return await cluster.send("PUT", resource.object_path(key, subresource), body)


async def test_a_replace_at_the_current_version_is_taken(cluster: Cluster) -> None:
    key, pool = await a_pool(cluster)
    reply = await put(cluster, MACHINE_POOLS, key, pool | {"spec": {"providerID": "y"}})
    assert (reply.status, reply.json["spec"], reply.json["metadata"]["generation"]) == (200, {"providerID": "y"}, 2)
    assert int(reply.version) > int(pool["metadata"]["resourceVersion"])
    assert reply.json["metadata"]["uid"] == pool["metadata"]["uid"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_write_at_an_older_version_is_a_conflict(cluster: Cluster, method: str) -> None:
    key, pool = await a_pool(cluster)
    await patch(cluster, MACHINE_POOLS, key, {"spec": {"providerID": "y"}})
    if method == "PUT":
        reply = await put(cluster, MACHINE_POOLS, key, pool | {"spec": {"providerID": "z"}})
    else:
        version = {"resourceVersion": pool["metadata"]["resourceVersion"]}
        reply = await patch(cluster, MACHINE_POOLS, key, {"metadata": version, "spec": {"providerID": "z"}})
    assert reply.status == 409
    assert reply.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'Operation cannot be fulfilled on machinepools.compute.ironcore.dev "{key.name}": {MODIFIED}',
        "reason": "Conflict",
        "details": {"name": key.name, "group": "compute.ironcore.dev", "kind": "machinepools"},
        "code": 409,
    }


async def test_a_stale_write_that_would_change_nothing_is_a_conflict_too(cluster: Cluster) -> None:
    key, pool = await a_pool(cluster)
    await patch(cluster, MACHINE_POOLS, key, {"spec": {"providerID": "y"}})
    version = {"resourceVersion": pool["metadata"]["resourceVersion"]}
    assert (await patch(cluster, MACHINE_POOLS, key, {"metadata": version})).status == 409


@pytest.mark.parametrize(("resource", "namespace"), [(MACHINE_POOLS, ""), (LEASES, "default")])
async def test_a_replace_names_a_version(cluster: Cluster, resource: Resource, namespace: str) -> None:
    body = new(resource, unique("versionless"))
    await create(cluster, resource, body | {"metadata": body["metadata"] | ({"namespace": namespace} if namespace else {})})
    reply = await put(cluster, resource, ObjectKey(namespace, body["metadata"]["name"]), body)
    assert reply.status == 422
    qualified = f"{resource.plural}.{resource.group}"
    assert reply.message == (
        f'{qualified} "{body["metadata"]["name"]}" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )


async def test_a_version_that_is_no_number_is_a_server_error(cluster: Cluster) -> None:
    key, _ = await a_pool(cluster)
    reply = await patch(cluster, MACHINE_POOLS, key, {"metadata": {"resourceVersion": "abc"}, "spec": {"providerID": "y"}})
    assert (reply.status, reply.message) == (500, 'strconv.ParseUint: parsing "abc": invalid syntax')


async def test_a_replace_of_nothing_makes_a_lease_but_no_pool(cluster: Cluster) -> None:
    name = unique("new")
    assert (await put(cluster, LEASES, ObjectKey("default", name), new(LEASES, name))).status == 201
    assert (await get(cluster, LEASES, ObjectKey("default", name))).status == 200
    reply = await put(cluster, MACHINE_POOLS, ObjectKey("", name), new(MACHINE_POOLS, name))
    assert (reply.status, reply.reason) == (404, "NotFound")


async def test_the_name_of_body_and_path_must_agree(cluster: Cluster) -> None:
    key, pool = await a_pool(cluster)
    renamed = await put(cluster, MACHINE_POOLS, key, pool | {"metadata": pool["metadata"] | {"name": "other"}})
    said = f"the name of the object (other) does not match the name on the URL ({key.name})"
    assert (renamed.status, renamed.message) == (400, said)
    nameless = await put(cluster, MACHINE_POOLS, key, pool | {"metadata": {}})
    said = f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided"
    assert (nameless.status, nameless.message) == (400, said)


async def test_a_collection_can_not_be_replaced(cluster: Cluster) -> None:
    reply = await cluster.send("PUT", MACHINE_POOLS.collection_path(), {})
    assert (reply.status, reply.message) == (400, "name must be provided")


async def test_the_uid_can_not_change(cluster: Cluster) -> None:
    key, _ = await a_pool(cluster)
    reply = await patch(cluster, MACHINE_POOLS, key, {"metadata": {"uid": "1234"}})
    said = 'metadata.uid: Invalid value: "1234": field is immutable'
    assert (reply.status, reply.message) == (422, f'MachinePool.compute.ironcore.dev "{key.name}" is invalid: {said}')
    assert len(reply.json["details"]["causes"]) == differences.expected("immutable-causes", cluster)


async def test_other_times_of_creation_are_ignored(cluster: Cluster) -> None:
    key, pool = await a_pool(cluster)
    reply = await patch(cluster, MACHINE_POOLS, key, {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 77}})
    assert (reply.status, reply.json["metadata"]) == (200, pool["metadata"])


@pytest.mark.parametrize(("resource", "namespace"), [(MACHINE_POOLS, ""), (LEASES, "default")])
@pytest.mark.parametrize("body", [{}, {"metadata": {"labels": {"a": "b"}}}, {"kind": None}])
async def test_a_patch_that_changes_nothing_keeps_the_version(
    cluster: Cluster, resource: Resource, namespace: str, body: dict[str, Any]
) -> None:
    key = ObjectKey(namespace, unique("noop"))
    made = new(resource, key.name, namespace)
    made["metadata"]["labels"] = {"a": "b"}
    before = await create(cluster, resource, made)
    after = await patch(cluster, resource, key, {name: value for name, value in body.items() if value is not None})
    assert (after.status, after.json) == (200, before.json)


async def test_only_a_change_of_the_spec_raises_the_generation(cluster: Cluster) -> None:
    key, _ = await a_pool(cluster)
    steps: list[tuple[dict[str, Any], str, int]] = [
        ({"metadata": {"labels": {"a": "b"}}}, "", 1),
        ({"status": {"state": "Ready"}}, "status", 1),
        ({"spec": {"providerID": "y"}}, "", 2),
        ({"spec": {"providerID": "y"}}, "", 2),
        ({"metadata": {"annotations": {"loopwatch/holder": "h"}}}, "", 2),
        ({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, "", 3),
        ({"spec": None}, "", 4),
    ]
    for body, subresource, generation in steps:
        reply = await patch(cluster, MACHINE_POOLS, key, body, subresource=subresource)
        assert (reply.status, reply.json["metadata"]["generation"]) == (200, generation), body


async def test_every_write_gets_a_version_of_its_own_across_resources(cluster: Cluster) -> None:
    versions = []
    for resource, namespace in ((MACHINE_POOLS, ""), (LEASES, "default"), (MACHINE_POOLS, "")):
        versions.append(int((await create(cluster, resource, new(resource, unique("v"), namespace))).version))
    assert versions == sorted(set(versions))


async def test_managers_own_what_they_wrote(cluster: Cluster) -> None:
    key, _ = await a_pool(cluster)
    path = MACHINE_POOLS.object_path(key, "status")
    status = {"status": {"state": "Ready", "conditions": [{"type": "Ready", "status": "True"}]}}
    headers = {"Content-Type": "application/merge-patch+json"}
    await cluster.send("PATCH", path, status, query={"fieldManager": "first"}, headers=headers)
    other = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    reply = await cluster.send("PATCH", path, other, query={"fieldManager": "second"}, headers=headers)
    entries = {entry["manager"]: entry for entry in reply.json["metadata"]["managedFields"]}
    assert entries["contract"]["fieldsV1"] == {"f:spec": {".": {}, "f:providerID": {}}}
    assert "subresource" not in entries["contract"]
    assert entries["first"]["fieldsV1"] == {"f:status": {".": {}, "f:state": {}}}
    assert entries["second"]["fieldsV1"] == {"f:status": {"f:conditions": {}}}
    assert {entries[name]["subresource"] for name in ("first", "second")} == {"status"}
    assert {(entry["operation"], entry["apiVersion"]) for entry in entries.values()} == {("Update", MACHINE_POOLS.api_version)}


async def test_an_object_made_without_fields_is_never_tracked(cluster: Cluster) -> None:
    key = ObjectKey("", unique("untracked"))
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, key.name))
    reply = await patch(cluster, MACHINE_POOLS, key, {"status": {"state": "Ready"}}, subresource="status")
    assert "managedFields" not in reply.json["metadata"]


async def test_a_finalizer_is_owned(cluster: Cluster) -> None:
    body = new(LEASES, unique("lease"), "default")
    body["metadata"]["finalizers"] = ["example.com/held"]
    made = (await create(cluster, LEASES, body)).json["metadata"]["managedFields"][0]["fieldsV1"]
    assert len(made["f:metadata"]["f:finalizers"]) == differences.expected("finalizer-ownership", cluster)
    key = ObjectKey("default", body["metadata"]["name"])
    assert (await patch(cluster, LEASES, key, {"metadata": {"finalizers": None}})).status == 200
