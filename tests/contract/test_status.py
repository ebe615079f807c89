"""The status subresource: two doors, each leaving the other's part alone."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_CLASSES, MACHINE_POOLS, ObjectKey
from tests.contract.cluster import Cluster, create, get, new, patch, unique

CONDITION = {"type": "Ready", "status": "True", "reason": "HeartbeatReceived", "message": "m", "observedGeneration": 1}


async def a_pool(cluster: Cluster) -> ObjectKey:
    name = unique("pool")
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, name, spec={"providerID": "x"}))
    return ObjectKey("", name)


async def test_the_status_door_changes_the_status_alone(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    body = {"status": {"state": "Ready"}, "spec": {"providerID": "no"}, "metadata": {"labels": {"no": "no"}}}
    reply = await patch(cluster, MACHINE_POOLS, key, body, subresource="status")
    assert (reply.status, reply.json["status"], reply.json["spec"]) == (200, {"state": "Ready"}, {"providerID": "x"})
    assert "labels" not in reply.json["metadata"]


async def test_the_main_door_leaves_the_status_alone(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    await patch(cluster, MACHINE_POOLS, key, {"status": {"state": "Ready"}}, subresource="status")
    reply = await patch(cluster, MACHINE_POOLS, key, {"spec": {"providerID": "y"}, "status": {"state": "Error"}})
    assert (reply.json["spec"], reply.json["status"]) == ({"providerID": "y"}, {"state": "Ready"})
    body = reply.json
    del body["status"]
    replaced = await cluster.send("PUT", MACHINE_POOLS.object_path(key), body | {"spec": {"providerID": "z"}})
    assert replaced.json["status"] == {"state": "Ready"}


async def test_a_status_is_replaced_through_its_door(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    body = (await get(cluster, MACHINE_POOLS, key)).json
    path = MACHINE_POOLS.object_path(key, "status")
    first = await cluster.send("PUT", path, body | {"status": {"state": "Ready", "conditions": [CONDITION]}})
    assert (first.status, first.json["status"]) == (200, {"state": "Ready", "conditions": [CONDITION]})
    stale = await cluster.send("PUT", path, body | {"status": {"state": "Error"}})
    assert (stale.status, stale.reason) == (409, "Conflict")
    second = await cluster.send("PUT", path, first.json | {"status": {"state": "Error"}})
    assert second.json["status"] == {"state": "Error"}


async def test_a_status_patch_can_name_a_version(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    version = (await get(cluster, MACHINE_POOLS, key)).version
    body: dict[str, Any] = {"metadata": {"resourceVersion": version}, "status": {"state": "Ready"}}
    assert (await patch(cluster, MACHINE_POOLS, key, body, subresource="status")).status == 200
    body["status"]["state"] = "Error"
    assert (await patch(cluster, MACHINE_POOLS, key, body, subresource="status")).status == 409


async def test_conditions_are_one_atomic_list(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    foreign = {"type": "Foreign", "status": "True"}
    await patch(cluster, MACHINE_POOLS, key, {"status": {"conditions": [CONDITION, foreign]}}, subresource="status")
    reply = await patch(cluster, MACHINE_POOLS, key, {"status": {"conditions": [CONDITION]}}, subresource="status")
    assert reply.json["status"]["conditions"] == [CONDITION]


async def test_a_status_can_be_emptied(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    await patch(cluster, MACHINE_POOLS, key, {"status": {"state": "Ready"}}, subresource="status")
    assert "status" not in (await patch(cluster, MACHINE_POOLS, key, {"status": None}, subresource="status")).json


@pytest.mark.parametrize(
    ("status", "field", "said"),
    [
        (
            {"state": "Bad"},
            "status.state",
            'Unsupported value: "Bad": supported values: "Ready", "Pending", "Error", "Offline"',
        ),
        (
            {"conditions": {"a": 1}},
            "status.conditions",
            'Invalid value: "object": conditions in body must be of type array: "object"',
        ),
        (
            {"conditions": [{"observedGeneration": "x"}]},
            "status.conditions[0].observedGeneration",
            'Invalid value: "string": conditions[0].observedGeneration in body must be of type integer: "string"',
        ),
        (
            {"conditions": [{"lastTransitionTime": "yesterday"}]},
            "status.conditions[0].lastTransitionTime",
            'Invalid value: "yesterday": conditions[0].lastTransitionTime in body must be of type date-time: "yesterday"',
        ),
        (
            {"conditions": [{"lastTransitionTime": "2026-05-01"}]},
            "status.conditions[0].lastTransitionTime",
            'Invalid value: "2026-05-01": conditions[0].lastTransitionTime in body must be of type date-time: "2026-05-01"',
        ),
        (
            {"daemonEndpoints": {"machinepoolletEndpoint": {"port": 2**40}}},
            "status",
            'Invalid value: "": Checked value must be of type integer with format int32 in daemonEndpoints.machinepoolletEndpoint.port',
        ),
    ],
)
async def test_a_status_that_breaks_the_schema_is_refused(cluster: Cluster, status: dict[str, Any], field: str, said: str) -> None:
    key = await a_pool(cluster)
    reply = await patch(cluster, MACHINE_POOLS, key, {"status": status}, subresource="status")
    assert (reply.status, reply.reason) == (422, "Invalid")
    assert reply.message == f'MachinePool.compute.ironcore.dev "{key.name}" is invalid: {field}: {said}'
    assert reply.json["details"]["causes"][0]["field"] == field


@pytest.mark.parametrize(
    "time", ["2026-05-01T13:18:48Z", "2026-05-01T13:18:48.123456Z", "2026-05-01T13:18:48+02:00", "2026-05-01t13:18:48z", None]
)
async def test_a_conditions_time_is_kept_as_it_was_written(cluster: Cluster, time: str | None) -> None:
    key = await a_pool(cluster)
    operation = {"op": "add", "path": "/status", "value": {"conditions": [{"type": "Ready", "lastTransitionTime": time}]}}
    reply = await patch(cluster, MACHINE_POOLS, key, [operation], subresource="status", kind="application/json-patch+json")
    assert (reply.status, reply.json["status"]["conditions"][0]["lastTransitionTime"]) == (200, time)


async def test_a_whole_number_in_decimals_is_an_integer(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    body = b'{"status":{"conditions":[{"type":"Ready","observedGeneration":2.0}],"capacity":{"class/machine.a":3,"class/machine.b":"4"}}}'
    reply = await patch(cluster, MACHINE_POOLS, key, body, subresource="status")
    assert b'"observedGeneration":2}' in reply.body or b'"observedGeneration":2,' in reply.body
    assert reply.json["status"]["capacity"] == {"class/machine.a": 3, "class/machine.b": "4"}


async def test_resources_without_the_subresource_answer_404_each_in_its_way(cluster: Cluster) -> None:
    machine_class = unique("class")
    await create(cluster, MACHINE_CLASSES, new(MACHINE_CLASSES, machine_class))
    custom = await cluster.send("GET", MACHINE_CLASSES.object_path(ObjectKey("", machine_class), "status"))
    assert (custom.status, custom.message) == (404, f'machineclasses.compute.ironcore.dev "{machine_class}" not found')
    built_in = await cluster.send("GET", LEASES.object_path(ObjectKey("default", "x"), "status"))
    assert (built_in.status, built_in.message) == (404, "the server could not find the requested resource")


async def test_the_status_door_shows_the_whole_object(cluster: Cluster) -> None:
    key = await a_pool(cluster)
    assert (await cluster.send("GET", MACHINE_POOLS.object_path(key, "status"))).json == (await get(cluster, MACHINE_POOLS, key)).json
