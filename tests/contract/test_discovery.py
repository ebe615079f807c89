"""What an API server says of itself."""

from __future__ import annotations

import pytest

from loopwatch.kube.resources import EVENTS, LEASES, MACHINE_CLASSES, MACHINE_POOLS, MACHINES, NAMESPACES, Resource
from tests.contract.cluster import Cluster

SERVED = [MACHINE_POOLS, MACHINES, MACHINE_CLASSES, LEASES, EVENTS, NAMESPACES]


@pytest.mark.parametrize("path", ["/readyz", "/healthz", "/livez"])
async def test_health_is_plain_ok(cluster: Cluster, path: str) -> None:
    reply = await cluster.send("GET", path)
    assert (reply.status, reply.body) == (200, b"ok")
    assert reply.headers["Content-Type"].startswith("text/plain")


async def test_the_version_names_major_minor_and_the_git_version(cluster: Cluster) -> None:
    version = (await cluster.send("GET", "/version")).json
    assert version["major"] == "1"
    assert version["gitVersion"].startswith(f"v1.{version['minor']}.")


@pytest.mark.parametrize("resource", SERVED, ids=lambda resource: resource.plural)
async def test_a_served_resource_is_in_its_versions_list(cluster: Cluster, resource: Resource) -> None:
    reply = await cluster.send("GET", resource.root)
    assert (reply.status, reply.json["kind"]) == (200, "APIResourceList")
    found = {entry["name"]: entry for entry in reply.json["resources"]}[resource.plural]
    assert (found["kind"], found["namespaced"]) == (resource.kind, resource.namespaced)
    assert set(found["verbs"]) >= {"create", "delete", "get", "list", "patch", "update", "watch"}


async def test_the_status_subresource_is_listed_where_there_is_one(cluster: Cluster) -> None:
    names = [entry["name"] for entry in (await cluster.send("GET", MACHINE_POOLS.root)).json["resources"]]
    assert "machinepools/status" in names
    assert "machineclasses/status" not in names


async def test_the_group_is_in_the_list_of_groups(cluster: Cluster) -> None:
    groups = (await cluster.send("GET", "/apis")).json["groups"]
    found = next(group for group in groups if group["name"] == "compute.ironcore.dev")
    assert found["preferredVersion"]["groupVersion"] == MACHINE_POOLS.api_version


@pytest.mark.parametrize(
    "path",
    [
        "/apis/nothing.example.com/v1/things",
        "/apis/compute.ironcore.dev/v1alpha1/volumepools",
        "/apis/compute.ironcore.dev/v9/machinepools",
        "/apis/compute.ironcore.dev/v1alpha1/machines/name-without-namespace",
        "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machinepools/a",
    ],
)
async def test_a_path_that_nothing_serves_is_a_404_in_plain_text(cluster: Cluster, path: str) -> None:
    reply = await cluster.send("GET", path)
    assert (reply.status, reply.body) == (404, b"404 page not found\n")
    assert reply.headers["Content-Type"].startswith("text/plain")
