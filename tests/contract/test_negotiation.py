"""Media types, compression, and who may ask."""

from __future__ import annotations

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, ObjectKey, Resource
from tests.contract import differences
from tests.contract.cluster import Cluster, create, new, unique

POOLS = MACHINE_POOLS.collection_path()
PROTOBUF = "application/vnd.kubernetes.protobuf"
ONE = {"limit": "1"}


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "application/json;q=0.9,text/html", f"{PROTOBUF},application/json"])
async def test_json_is_given_to_whoever_takes_it(cluster: Cluster, accept: str) -> None:
    reply = await cluster.send("GET", POOLS, query=ONE, headers={"Accept": accept})
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")


@pytest.mark.parametrize("accept", [PROTOBUF, "application/cbor", "text/html"])
async def test_a_custom_resource_has_no_other_form(cluster: Cluster, accept: str) -> None:
    for query in (ONE, {"watch": "1", "timeoutSeconds": "1"}):
        reply = await cluster.send("GET", POOLS, query=query, headers={"Accept": accept})
        assert reply.status == 406


async def test_a_406_names_what_there_is(cluster: Cluster) -> None:
    custom = await cluster.send("GET", POOLS, headers={"Accept": "text/html"})
    assert (custom.status, custom.reason) == (406, "NotAcceptable")
    said = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    assert custom.message == said
    built_in = await cluster.send("GET", LEASES.collection_path(), headers={"Accept": "text/html"})
    assert (built_in.status, built_in.message.startswith("406: Not Acceptable")) == (406, True)


@pytest.mark.parametrize(
    ("row", "resource", "accept"),
    [
        ("protobuf", LEASES, PROTOBUF),
        ("yaml-answer", MACHINE_POOLS, "application/yaml"),
        ("table", MACHINE_POOLS, "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ],
)
async def test_other_forms_are_the_real_servers_alone(cluster: Cluster, row: str, resource: Resource, accept: str) -> None:
    reply = await cluster.send("GET", resource.collection_path(), query=ONE, headers={"Accept": accept})
    assert reply.status == differences.expected(row, cluster)


async def test_a_body_of_another_form_is_refused(cluster: Cluster) -> None:
    body = new(MACHINE_POOLS, unique("pool"))
    plain = await cluster.send("POST", POOLS, body, headers={"Content-Type": "text/plain"})
    assert (plain.status, plain.reason) == (415, "UnsupportedMediaType")
    assert plain.message == (
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf"
    )
    yaml = await cluster.send("POST", POOLS, body, headers={"Content-Type": "application/yaml"})
    assert yaml.status == differences.expected("yaml-body", cluster)


@pytest.mark.parametrize("content_type", ["", "application/json; charset=utf-8"])
async def test_a_json_body_may_say_more_or_nothing_of_its_form(cluster: Cluster, content_type: str) -> None:
    reply = await cluster.send("POST", POOLS, new(MACHINE_POOLS, unique("pool")), headers={"Content-Type": content_type})
    assert reply.status == 201


async def test_a_large_list_is_gzipped_and_a_small_answer_is_not(cluster: Cluster) -> None:
    label = unique("large")
    for index in range(3):
        body = new(MACHINE_POOLS, f"{label}-{index}")
        body["metadata"] |= {"labels": {"large": label}, "annotations": {"filler": "x" * 60_000}}
        await create(cluster, MACHINE_POOLS, body)
    query = {"labelSelector": f"large={label}"}
    large = await cluster.send("GET", POOLS, query=query, headers={"Accept-Encoding": "gzip"})
    assert (large.headers.get("Content-Encoding"), len(large.names)) == ("gzip", 3)
    plain = await cluster.send("GET", POOLS, query=query, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert plain.json["items"] == large.json["items"]
    small = await cluster.send("GET", MACHINE_POOLS.object_path(ObjectKey("", f"{label}-0")), headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in small.headers


async def test_a_token_that_nobody_knows_is_unauthorized(cluster: Cluster) -> None:
    reply = await cluster.send_with_token("a-wrong-one", POOLS)
    assert reply.status == 401
    assert reply.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "said", "named"),
    [
        (
            "PATCH",
            "/apis/coordination.k8s.io/v1/namespaces/default/leases/l",
            {},
            (
                'leases.coordination.k8s.io "l" is forbidden: User "jane" cannot patch resource "leases" in API group '
                '"coordination.k8s.io" in the namespace "default"'
            ),
            "l",
        ),
        (
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            {"metadata": {"name": "l"}},
            (
                'leases.coordination.k8s.io is forbidden: User "jane" cannot create resource "leases" in API group "coordination.k8s.io" '
                'in the namespace "default"'
            ),
            None,
        ),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/leases",
            None,
            (
                'leases.coordination.k8s.io is forbidden: User "jane" cannot list resource "leases" in API group "coordination.k8s.io" '
                "at the cluster scope"
            ),
            None,
        ),
        (
            "GET",
            "/apis/compute.ironcore.dev/v1alpha1/machinepools?watch=1",
            None,
            (
                'machinepools.compute.ironcore.dev is forbidden: User "jane" cannot watch resource "machinepools" in API group '
                '"compute.ironcore.dev" at the cluster scope'
            ),
            None,
        ),
        (
            "PATCH",
            "/apis/compute.ironcore.dev/v1alpha1/machinepools/p/status",
            {},
            (
                'machinepools.compute.ironcore.dev "p" is forbidden: User "jane" cannot patch resource "machinepools/status" in API group '
                '"compute.ironcore.dev" at the cluster scope'
            ),
            "p",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/n",
            None,
            'namespaces "n" is forbidden: User "jane" cannot delete resource "namespaces" in API group "" in the namespace "n"',
            "n",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("/") else None,
)
async def test_a_missing_right_is_named_in_full(
    cluster: Cluster, method: str, path: str, body: object, said: str, named: str | None
) -> None:
    reply = await cluster.send(method, path, body, headers=cluster.refused_user("jane"))
    assert (reply.status, reply.reason, reply.message) == (403, "Forbidden", said)
    assert reply.json["details"].get("name") == named
