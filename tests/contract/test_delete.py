"""DELETE: at once, by precondition, and held by finalizers."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, NAMESPACES, ObjectKey, Resource
from tests.contract import differences
from tests.contract.cluster import Cluster, Reply, create, get, new, patch, unique


async def delete(cluster: Cluster, resource: Resource, key: ObjectKey, body: object = None) -> Reply:
    return await cluster.send("DELETE", resource.object_path(key), body)


@pytest.mark.parametrize(("resource", "namespace"), [(MACHINE_POOLS, ""), (LEASES, "default")])
async def test_a_delete_answers_with_a_success_and_the_object_is_gone(cluster: Cluster, resource: Resource, namespace: str) -> None:
    key = ObjectKey(namespace, unique("deleted"))
    made = await create(cluster, resource, new(resource, key.name, namespace))
    reply = await delete(cluster, resource, key)
    assert reply.status == 200
    assert reply.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": key.name, "group": resource.group, "kind": resource.plural, "uid": made.json["metadata"]["uid"]},
    }
    assert (await get(cluster, resource, key)).status == 404
    again = await delete(cluster, resource, key)
    assert (again.status, again.message) == (404, f'{resource.plural}.{resource.group} "{key.name}" not found')


async def test_a_name_can_be_used_again_by_another_object(cluster: Cluster) -> None:
    key = ObjectKey("", unique("again"))
    first = await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, key.name))
    await delete(cluster, MACHINE_POOLS, key)
    second = await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, key.name))
    assert first.json["metadata"]["uid"] != second.json["metadata"]["uid"]


async def test_preconditions_guard_a_delete(cluster: Cluster) -> None:
    key = ObjectKey("", unique("guarded"))
    meta = (await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, key.name))).json["metadata"]
    prefix = f'Operation cannot be fulfilled on MachinePool.compute.ironcore.dev "{key.name}": '
    by_uid = await delete(cluster, MACHINE_POOLS, key, {"preconditions": {"uid": "other"}})
    assert (by_uid.status, by_uid.reason) == (409, "Conflict")
    assert by_uid.message == (
        f"{prefix}the UID in the precondition (other) does not match the UID in record ({meta['uid']}). "
        "The object might have been deleted and then recreated"
    )
    by_version = await delete(cluster, MACHINE_POOLS, key, {"preconditions": {"resourceVersion": "1"}})
    assert by_version.status == 409
    assert by_version.message == (
        f"{prefix}the ResourceVersion in the precondition (1) does not match the ResourceVersion in record "
        f"({meta['resourceVersion']}). The object might have been modified"
    )
    right = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": right}
    assert (await delete(cluster, MACHINE_POOLS, key, options)).status == 200


async def test_options_that_can_not_be_read_delete_nothing(cluster: Cluster) -> None:
    key = ObjectKey("", unique("kept"))
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, key.name))
    assert (await delete(cluster, MACHINE_POOLS, key, b"{bad")).status == 400
    assert (await delete(cluster, MACHINE_POOLS, key, {"kind": "Foo"})).status == 400
    plain = await cluster.send("DELETE", MACHINE_POOLS.object_path(key), b"{}", headers={"Content-Type": "text/plain"})
    assert plain.status == 415
    assert (await get(cluster, MACHINE_POOLS, key)).status == 200


async def test_a_finalizer_holds_an_object_until_it_is_taken_off(cluster: Cluster) -> None:
    key = ObjectKey("", unique("held"))
    body = new(MACHINE_POOLS, key.name, spec={"providerID": "x"})
    body["metadata"]["finalizers"] = ["example.com/held"]
    await create(cluster, MACHINE_POOLS, body)
    marked = await delete(cluster, MACHINE_POOLS, key)
    meta = marked.json["metadata"]
    assert (marked.status, meta["deletionGracePeriodSeconds"], meta["generation"]) == (200, 0, 2)
    assert meta["deletionTimestamp"].endswith("Z")
    assert (await delete(cluster, MACHINE_POOLS, key)).json == marked.json
    added = await patch(cluster, MACHINE_POOLS, key, {"metadata": {"finalizers": ["example.com/held", "example.com/more"]}})
    assert (added.status, "no new finalizers can be added if the object is being deleted" in added.message) == (422, True)
    last = await patch(cluster, MACHINE_POOLS, key, {"metadata": {"finalizers": None}})
    assert (last.status, last.version) == (200, marked.version)
    assert (await get(cluster, MACHINE_POOLS, key)).status == 404


async def test_a_deletion_time_can_not_be_written(cluster: Cluster) -> None:
    key = ObjectKey("", unique("alive"))
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, key.name))
    reply = await patch(cluster, MACHINE_POOLS, key, {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})
    assert (reply.status, "field is immutable" in reply.message) == (422, True)


async def test_a_namespace_ends_and_takes_no_more(cluster: Cluster) -> None:
    name = unique("namespace")
    made: dict[str, Any] = (await create(cluster, NAMESPACES, new(NAMESPACES, name))).json
    assert (made["status"], made["metadata"]["labels"]) == ({"phase": "Active"}, {"kubernetes.io/metadata.name": name})
    ended = await delete(cluster, NAMESPACES, ObjectKey("", name))
    assert (ended.status, ended.json["status"]["phase"]) == (200, "Terminating")
    after = await get(cluster, NAMESPACES, ObjectKey("", name))
    assert after.status == differences.expected("namespace-after-delete", cluster)
    refused = await cluster.send("POST", LEASES.collection_path(name), new(LEASES, "late"))
    assert refused.status == (404 if after.status == 404 else 403)


async def test_the_default_namespace_stays(cluster: Cluster) -> None:
    reply = await delete(cluster, NAMESPACES, ObjectKey("", "default"))
    assert (reply.status, reply.message) == (403, 'namespaces "default" is forbidden: this namespace may not be deleted')


async def test_a_collection_is_deleted_by_the_real_server_alone(cluster: Cluster) -> None:
    reply = await cluster.send("DELETE", MACHINE_POOLS.collection_path(), query={"labelSelector": f"nobody={unique('x')}"})
    assert reply.status == differences.expected("delete-collection", cluster)
