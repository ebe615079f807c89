"""POST: what is taken, what is dropped, what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_CLASSES, MACHINE_POOLS, MACHINES, NAMESPACES, ObjectKey
from tests.contract import differences
from tests.contract.cluster import Cluster, create, get, new, unique

POOLS = MACHINE_POOLS.collection_path()


async def test_a_new_pool_gets_its_metadata_from_the_server(cluster: Cluster) -> None:
    name = unique("pool")
    meta = (await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, name, spec={"providerID": "x"}))).json["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert (meta["name"], meta["generation"]) == (name, 1)
    assert int(meta["resourceVersion"]) > 0


async def test_a_lease_has_no_generation(cluster: Cluster) -> None:
    body = (await create(cluster, LEASES, new(LEASES, unique("lease"), "default"))).json
    assert "generation" not in body["metadata"]
    assert body["spec"] == {}


async def test_what_only_the_server_sets_is_dropped(cluster: Cluster) -> None:
    body = new(MACHINE_POOLS, unique("pool"))
    body["metadata"] |= {"uid": "mine", "generation": 9, "creationTimestamp": "2020-01-01T00:00:00Z", "namespace": "default"}
    meta = (await create(cluster, MACHINE_POOLS, body)).json["metadata"]
    assert meta["uid"] != "mine"
    assert meta["generation"] == 1
    assert not meta["creationTimestamp"].startswith("2020")
    assert "namespace" not in meta


async def test_a_status_given_at_create_is_dropped_where_it_has_its_own_door(cluster: Cluster) -> None:
    pool = await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, unique("pool"), status={"state": "Ready"}))
    assert "status" not in pool.json
    machine_class = new(MACHINE_CLASSES, unique("class"), status={"kept": True})
    assert (await create(cluster, MACHINE_CLASSES, machine_class)).json["status"] == {"kept": True}


async def test_fields_that_the_schema_lacks_are_pruned_with_a_warning(cluster: Cluster) -> None:
    spec = {"providerID": "x", "junk": 1, "taints": [{"key": "a", "effect": "NoSchedule", "other": 2}]}
    reply = await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, unique("pool"), spec=spec, extra=True))
    assert reply.json["spec"] == {"providerID": "x", "taints": [{"key": "a", "effect": "NoSchedule"}]}
    assert "extra" not in reply.json
    assert sorted(reply.warnings) == [
        '299 - "unknown field \\"extra\\""',
        '299 - "unknown field \\"spec.junk\\""',
        '299 - "unknown field \\"spec.taints[0].other\\""',
    ]


async def test_unknown_fields_are_kept_where_the_schema_preserves_them(cluster: Cluster) -> None:
    spec = {"power": "On", "machinePoolRef": {"name": "p", "junk": 1}, "nested": {"null": None, "list": [None, {"a": None}]}}
    reply = await create(cluster, MACHINES, new(MACHINES, unique("machine"), "default", spec=spec))
    assert reply.json["spec"] == {
        "power": "On",
        "machinePoolRef": {"name": "p"},
        "nested": {"null": None, "list": [None, {"a": None}]},
    }


async def test_a_null_where_none_is_allowed_is_as_if_absent(cluster: Cluster) -> None:
    body = new(MACHINE_POOLS, unique("pool"), spec={"providerID": None, "taints": None})
    assert (await create(cluster, MACHINE_POOLS, body)).json["spec"] == {}


async def test_strict_validation_refuses_unknown_fields(cluster: Cluster) -> None:
    body = new(MACHINE_POOLS, unique("pool"), spec={"junk": 1})
    reply = await cluster.send("POST", POOLS, body, query={"fieldValidation": "Strict"})
    assert (reply.status, reply.reason) == (400, "BadRequest")
    assert reply.message.endswith('strict decoding error: unknown field "spec.junk"')


async def test_a_dry_run_answers_but_makes_nothing(cluster: Cluster) -> None:
    name = unique("pool")
    assert (await cluster.send("POST", POOLS, new(MACHINE_POOLS, name), query={"dryRun": "All"})).status == 201
    assert (await get(cluster, MACHINE_POOLS, ObjectKey("", name))).status == 404


async def test_a_generated_name_begins_as_asked(cluster: Cluster) -> None:
    body: dict[str, Any] = {**new(MACHINE_POOLS, "x"), "metadata": {"generateName": "generated-"}}
    name = (await create(cluster, MACHINE_POOLS, body)).json["metadata"]["name"]
    assert re.fullmatch(r"generated-[a-z0-9]{5}", name)


async def test_the_same_name_again_is_a_conflict_by_its_own_reason(cluster: Cluster) -> None:
    body = new(MACHINE_POOLS, unique("pool"))
    await create(cluster, MACHINE_POOLS, body)
    reply = await cluster.send("POST", POOLS, body)
    name = body["metadata"]["name"]
    assert reply.status == 409
    assert reply.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'machinepools.compute.ironcore.dev "{name}" already exists',
        "reason": "AlreadyExists",
        "details": {"name": name, "group": "compute.ironcore.dev", "kind": "machinepools"},
        "code": 409,
    }


@pytest.mark.parametrize("name", ["UPPER", "under_score", "-a", "a-", "a..b", "a" * 254])
async def test_a_name_is_a_dns_subdomain(cluster: Cluster, name: str) -> None:
    for resource, namespace in ((MACHINE_POOLS, ""), (LEASES, "default")):
        reply = await cluster.send("POST", resource.collection_path(namespace), new(resource, name))
        assert (reply.status, reply.reason) == (422, "Invalid")
        assert reply.json["details"]["causes"][0]["field"] == "metadata.name"
        assert f'{resource.kind}.{resource.group} "{name}" is invalid: ' in reply.message


async def test_a_namespaces_name_has_no_dots(cluster: Cluster) -> None:
    reply = await cluster.send("POST", NAMESPACES.collection_path(), new(NAMESPACES, "a.b"))
    assert reply.status == 422
    assert reply.message == 'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots'


async def test_a_name_is_required(cluster: Cluster) -> None:
    reply = await cluster.send("POST", POOLS, {**new(MACHINE_POOLS, "x"), "metadata": {}})
    assert reply.status == 422
    assert reply.message == (
        'MachinePool.compute.ironcore.dev "" is invalid: metadata.name: Required value: name or generateName is required'
    )


@pytest.mark.parametrize(
    ("labels", "named"), [({"bad key": "v"}, "bad key"), ({"k": "bad value"}, "bad value"), ({"UPPER.example/x": "v"}, "UPPER.example/x")]
)
async def test_labels_have_rules(cluster: Cluster, labels: dict[str, str], named: str) -> None:
    body = new(MACHINE_POOLS, unique("pool"))
    body["metadata"]["labels"] = labels
    reply = await cluster.send("POST", POOLS, body)
    assert (reply.status, reply.json["details"]["causes"][0]["field"]) == (422, "metadata.labels")
    assert f'Invalid value: "{named}"' in reply.message


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        ({"annotations": []}, "json: cannot unmarshal array into Go struct field ObjectMeta.annotations of type map[string]string"),
        ({"name": 5}, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
    ],
)
async def test_metadata_of_a_wrong_type_is_refused_while_decoding(cluster: Cluster, metadata: dict[str, Any], said: str) -> None:
    body = new(MACHINE_POOLS, unique("pool"))
    body["metadata"] |= metadata
    reply = await cluster.send("POST", POOLS, body)
    assert reply.status == 400
    assert reply.message == f'MachinePool in version "v1alpha1" cannot be handled as a MachinePool: {said}'


@pytest.mark.parametrize(
    ("spec", "field", "said"),
    [
        ({"providerID": 7}, "spec.providerID", 'Invalid value: "integer": spec.providerID in body must be of type string: "integer"'),
        ({"taints": {}}, "spec.taints", 'Invalid value: "object": spec.taints in body must be of type array: "object"'),
        ({"taints": [{"key": "a"}]}, "spec.taints[0].effect", "Required value"),
        ({"taints": [None]}, "spec.taints[0]", 'Invalid value: "null": spec.taints[0] in body must be of type object: "null"'),
        (5, "spec", 'Invalid value: "integer": spec in body must be of type object: "integer"'),
    ],
)
async def test_a_field_of_a_wrong_type_is_named(cluster: Cluster, spec: object, field: str, said: str) -> None:
    name = unique("pool")
    reply = await cluster.send("POST", POOLS, new(MACHINE_POOLS, name, spec=spec))
    assert (reply.status, reply.reason) == (422, "Invalid")
    assert reply.message == f'MachinePool.compute.ironcore.dev "{name}" is invalid: {field}: {said}'
    assert reply.json["details"]["causes"][0]["field"] == field
    assert reply.json["details"]["kind"] == "MachinePool"


async def test_a_namespace_must_exist(cluster: Cluster) -> None:
    missing = unique("missing")
    for resource in (LEASES, MACHINES):
        reply = await cluster.send("POST", resource.collection_path(missing), new(resource, "x"))
        assert (reply.status, reply.reason) == (404, "NotFound")
        assert reply.message == f'namespaces "{missing}" not found'
        assert reply.json["details"] == {"name": missing, "kind": "namespaces"}


async def test_the_namespace_of_body_and_path_must_agree(cluster: Cluster) -> None:
    reply = await cluster.send("POST", LEASES.collection_path("default"), new(LEASES, unique("lease"), "kube-system"))
    assert reply.status == 400
    assert reply.message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_a_resource_version_at_create_is_an_error(cluster: Cluster) -> None:
    body = new(LEASES, unique("lease"))
    body["metadata"]["resourceVersion"] = "7"
    reply = await cluster.send("POST", LEASES.collection_path("default"), body)
    assert (reply.status, reply.message) == (500, "resourceVersion should not be set on objects to be created")


@pytest.mark.parametrize(
    ("body", "said"), [(b"", "unexpected end of JSON input"), (b'{"a":', "unexpected end of JSON"), (b"{bad", "invalid character")]
)
async def test_a_body_that_is_no_json_is_a_bad_request(cluster: Cluster, body: bytes, said: str) -> None:
    for resource, namespace in ((MACHINE_POOLS, ""), (LEASES, "default")):
        reply = await cluster.send("POST", resource.collection_path(namespace), body)
        assert (reply.status, reply.reason) == (400, "BadRequest")
        assert f"the object provided is unrecognized (must be of type {resource.kind})" in reply.message
        assert said in reply.message


async def test_a_custom_resource_names_its_kind_and_version_and_a_lease_need_not(cluster: Cluster) -> None:
    bare = {"metadata": {"name": unique("bare")}}
    assert (await cluster.send("POST", LEASES.collection_path("default"), bare)).status == 201
    kindless = await cluster.send("POST", POOLS, bare | {"apiVersion": MACHINE_POOLS.api_version})
    assert (kindless.status, "Object 'Kind' is missing" in kindless.message) == (400, True)
    versionless = await cluster.send("POST", POOLS, bare | {"kind": "MachinePool"})
    assert versionless.status == 400
    assert versionless.message == ("the API version in the data () does not match the expected API version (compute.ironcore.dev/v1alpha1)")


async def test_another_kind_is_refused_by_schema_or_by_decoder(cluster: Cluster) -> None:
    name = unique("wrong")
    custom = await cluster.send("POST", POOLS, new(MACHINE_POOLS, name) | {"kind": "Wrong"})
    assert custom.status == 422
    assert custom.message == f'Wrong.compute.ironcore.dev "{name}" is invalid: kind: Invalid value: "Wrong": must be MachinePool'
    built_in = await cluster.send("POST", LEASES.collection_path("default"), new(LEASES, name) | {"kind": "Wrong"})
    assert built_in.status == 400
    assert built_in.message.startswith('Wrong in version "v1" cannot be handled as a Lease: no kind "Wrong" is registered for version')


async def test_a_lease_is_posted_to_a_namespace(cluster: Cluster) -> None:
    reply = await cluster.send("POST", LEASES.collection_path(), new(LEASES, unique("lease"), "default"))
    assert (reply.status, reply.reason) == (405, "MethodNotAllowed")


async def test_a_refused_write_warns_of_unknown_fields(cluster: Cluster) -> None:
    body = new(MACHINE_POOLS, unique("pool"), spec={"junk": 1})
    await create(cluster, MACHINE_POOLS, body)
    reply = await cluster.send("POST", POOLS, body)
    assert (reply.status, len(reply.warnings)) == (409, differences.expected("warning-on-refusal", cluster))
