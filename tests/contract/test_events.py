"""Events, and reviews of one's own rights."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.kube.resources import EVENTS, MACHINE_POOLS, SELF_SUBJECT_ACCESS_REVIEWS, ObjectKey
from tests.contract.cluster import MERGE_PATCH, Cluster, unique

REVIEWS = SELF_SUBJECT_ACCESS_REVIEWS.collection_path()


def event(name: str, namespace: str = "default", of_namespace: str = "", **fields: object) -> dict[str, Any]:
    """An Event about a pool."""
    of = {"apiVersion": MACHINE_POOLS.api_version, "kind": "MachinePool", "name": "a", "uid": "u"}
    about = of | ({"namespace": of_namespace} if of_namespace else {})
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "type": "Normal", "reason": "R", **fields}


async def test_an_event_is_created_and_its_count_patched(cluster: Cluster) -> None:
    name, first = unique("event"), "2026-05-01T12:00:00Z"
    body = event(name, count=1, firstTimestamp=first, lastTimestamp=first, source={"component": "c"}, reportingComponent="c")
    made = await cluster.send("POST", EVENTS.collection_path("default"), body)
    assert (made.status, made.json["count"], made.json["involvedObject"]["uid"]) == (201, 1, "u")
    patch = {"count": 2, "lastTimestamp": "2026-05-01T12:00:05Z"}
    path = EVENTS.object_path(ObjectKey("default", name))
    patched = await cluster.send("PATCH", path, patch, headers={"Content-Type": MERGE_PATCH})
    assert (patched.status, patched.json["count"], patched.json["firstTimestamp"]) == (200, 2, first)
    assert patched.json["lastTimestamp"] == patch["lastTimestamp"]
    assert "spec" not in patched.json


@pytest.mark.parametrize(("namespace", "of_namespace"), [("kube-system", ""), ("default", "kube-system")])
async def test_an_event_lies_in_its_objects_namespace_or_in_default(cluster: Cluster, namespace: str, of_namespace: str) -> None:
    reply = await cluster.send("POST", EVENTS.collection_path(namespace), event(unique("event"), namespace, of_namespace))
    assert (reply.status, reply.reason) == (422, "Invalid")
    assert "involvedObject.namespace" in reply.message
    assert "does not match event.namespace" in reply.message


async def test_an_event_that_is_gone_can_not_be_patched(cluster: Cluster) -> None:
    path = EVENTS.object_path(ObjectKey("default", unique("event")))
    assert (await cluster.send("PATCH", path, {"count": 2}, headers={"Content-Type": MERGE_PATCH})).status == 404


async def test_a_review_of_ones_own_rights_says_what_would_be_refused(cluster: Cluster) -> None:
    attributes = {"verb": "patch", "group": "compute.ironcore.dev", "resource": "machinepools", "subresource": "status", "name": "a"}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    mine = await cluster.send("POST", REVIEWS, body)
    assert (mine.status, mine.json["kind"], mine.json["status"]["allowed"]) == (201, "SelfSubjectAccessReview", True)
