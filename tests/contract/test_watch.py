"""Watches: events, resumption, bookmarks, and what a client is not promised."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, MACHINES, ObjectKey, Resource
from tests.contract.cluster import Cluster, create, new, patch, unique

POOLS = MACHINE_POOLS.collection_path()
ASKED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
Event = tuple[str, dict[str, Any]]


async def version_of(cluster: Cluster, resource: Resource) -> str:
    return (await cluster.send("GET", resource.collection_path(), query={"limit": "1"})).version


async def delete(cluster: Cluster, resource: Resource, key: ObjectKey) -> None:
    assert (await cluster.send("DELETE", resource.object_path(key))).status == 200


async def a_life(cluster: Cluster, name: str) -> ObjectKey:
    """A pool that is made, labelled, changed, and deleted."""
    key = ObjectKey("", name)
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, name))
    for selected in ("yes", "no", "yes"):
        await patch(cluster, MACHINE_POOLS, key, {"metadata": {"labels": {"selected": selected}}})
    await delete(cluster, MACHINE_POOLS, key)
    return key


def types(events: list[Event]) -> list[str]:
    return [event_type for event_type, _ in events]


def versions(events: list[Event]) -> list[int]:
    return [int(body["metadata"]["resourceVersion"]) for _, body in events]


async def test_a_watch_brings_every_change_with_its_version(cluster: Cluster) -> None:
    name = unique("pool")
    start = await version_of(cluster, MACHINE_POOLS)
    async with cluster.watch(POOLS, resourceVersion=start, fieldSelector=f"metadata.name={name}", timeoutSeconds="60") as stream:
        await a_life(cluster, name)
        events = await stream.events(5)
    assert types(events) == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    assert versions(events) == sorted(set(versions(events)))
    assert int(start) < versions(events)[0]
    assert events[4][1]["metadata"]["labels"] == {"selected": "yes"}
    assert all(body["kind"] == "MachinePool" for _, body in events)


async def test_a_write_that_changes_nothing_is_no_event(cluster: Cluster) -> None:
    key = ObjectKey("default", unique("lease"))
    made = await create(cluster, LEASES, new(LEASES, key.name, "default", spec={"holderIdentity": "a"}))
    selector = f"metadata.name={key.name}"
    path = LEASES.collection_path("default")
    async with cluster.watch(path, resourceVersion=made.version, fieldSelector=selector, timeoutSeconds="60") as stream:
        await patch(cluster, LEASES, key, {"spec": {"holderIdentity": "a"}})
        await patch(cluster, LEASES, key, {})
        await patch(cluster, LEASES, key, {"spec": {"holderIdentity": "b"}})
        event_type, body = await stream.event()
    assert (event_type, body["spec"]["holderIdentity"], body["kind"]) == ("MODIFIED", "b", "Lease")


async def test_a_watch_resumes_after_a_version(cluster: Cluster) -> None:
    name = unique("pool")
    start = await version_of(cluster, MACHINE_POOLS)
    await a_life(cluster, name)
    selector = f"metadata.name={name}"
    async with cluster.watch(POOLS, resourceVersion=start, fieldSelector=selector, timeoutSeconds="60") as stream:
        whole = await stream.events(5)
    assert types(whole) == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    middle = str(versions(whole)[1])
    async with cluster.watch(POOLS, resourceVersion=middle, fieldSelector=selector, timeoutSeconds="60") as stream:
        assert await stream.events(3) == whole[2:]


async def test_an_object_enters_and_leaves_a_label_selection(cluster: Cluster) -> None:
    name = unique("pool")
    start = await version_of(cluster, MACHINE_POOLS)
    await a_life(cluster, name)
    query = {"labelSelector": "selected=yes", "fieldSelector": f"metadata.name={name}"}
    async with cluster.watch(POOLS, resourceVersion=start, timeoutSeconds="60", **query) as stream:
        events = await stream.events(4)
    assert types(events) == ["ADDED", "DELETED", "ADDED", "DELETED"]
    left = events[1][1]["metadata"]
    assert left["labels"] == {"selected": "yes"}, "what leaves is shown as it last was"
    assert int(left["resourceVersion"]) > versions(events)[0], "at the version of the change that took it out"


async def test_a_machine_enters_and_leaves_a_pools_selection(cluster: Cluster) -> None:
    pool, key = unique("pool"), ObjectKey("default", unique("machine"))
    start = await version_of(cluster, MACHINES)
    await create(cluster, MACHINES, new(MACHINES, key.name, "default"))
    for chosen in (pool, "other"):
        await patch(cluster, MACHINES, key, {"spec": {"machinePoolRef": {"name": chosen}}})
    selector = f"spec.machinePoolRef.name={pool}"
    async with cluster.watch(MACHINES.collection_path(), resourceVersion=start, fieldSelector=selector, timeoutSeconds="60") as stream:
        assert types(await stream.events(2)) == ["ADDED", "DELETED"]


async def test_a_watch_of_a_namespace_sees_no_other(cluster: Cluster) -> None:
    name = unique("lease")
    start = await version_of(cluster, LEASES)
    for namespace in ("default", "kube-system"):
        await create(cluster, LEASES, new(LEASES, name, namespace))
    selector = f"metadata.name={name}"
    async with cluster.watch(
        LEASES.collection_path("kube-system"), resourceVersion=start, fieldSelector=selector, timeoutSeconds="60"
    ) as stream:
        _, body = await stream.event()
    assert body["metadata"]["namespace"] == "kube-system", "the Lease of the other namespace was made before it"


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}, {"resourceVersion": ""}])
async def test_a_watch_from_nowhere_begins_with_what_is_there(cluster: Cluster, query: dict[str, str]) -> None:
    name = unique("pool")
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, name))
    async with cluster.watch(POOLS, fieldSelector=f"metadata.name={name}", timeoutSeconds="60", **query) as stream:
        assert (await stream.event())[0] == "ADDED"
        await delete(cluster, MACHINE_POOLS, ObjectKey("", name))
        assert (await stream.event())[0] == "DELETED"


@pytest.mark.parametrize(("resource", "namespace"), [(MACHINE_POOLS, ""), (LEASES, "default")])
@pytest.mark.parametrize(
    "asked", [{"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, {}], ids=["asked", "from-nowhere"]
)
async def test_the_end_of_the_initial_events_is_a_bookmark(
    cluster: Cluster, resource: Resource, namespace: str, asked: dict[str, str]
) -> None:
    name = unique("initial")
    made = await create(cluster, resource, new(resource, name, namespace))
    query = {"allowWatchBookmarks": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": "60", **asked}
    async with cluster.watch(resource.collection_path(namespace), **query) as stream:
        (first, body), (second, mark) = await stream.events(2)
    assert (first, body["metadata"]["name"], second) == ("ADDED", name, "BOOKMARK")
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert (mark["kind"], mark["apiVersion"]) == (resource.kind, resource.api_version)
    assert int(mark["metadata"]["resourceVersion"]) >= int(made.version)


async def test_without_initial_events_a_watch_begins_now(cluster: Cluster) -> None:
    name = unique("pool")
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, name))
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", "fieldSelector": f"metadata.name={name}"}
    async with cluster.watch(POOLS, timeoutSeconds="60", **query) as stream:
        await patch(cluster, MACHINE_POOLS, ObjectKey("", name), {"spec": {"providerID": "x"}})
        assert (await stream.event())[0] == "MODIFIED"


async def test_a_bookmark_comes_before_the_end_where_there_is_something_new_to_whoever_wishes(cluster: Cluster) -> None:
    start = await version_of(cluster, MACHINE_POOLS)
    query = {"resourceVersion": start, "fieldSelector": f"metadata.name={unique('other')}", "timeoutSeconds": "4"}
    async with cluster.watch(POOLS, allowWatchBookmarks="true", **query) as wishing, cluster.watch(POOLS, **query) as plain:
        made = await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, unique("pool")))
        marks, nothing = await asyncio.gather(wishing.rest(), plain.rest())
    assert set(types(marks)) == {"BOOKMARK"}, "the change itself is not selected, but its version is told"
    assert versions(marks)[0] >= int(made.version)
    assert "annotations" not in marks[0][1]["metadata"]
    assert nothing == []


async def test_a_watch_ends_clean_when_its_time_is_up(cluster: Cluster) -> None:
    start = await version_of(cluster, LEASES)
    selector = f"metadata.name={unique('none')}"
    async with cluster.watch(LEASES.collection_path(), resourceVersion=start, fieldSelector=selector, timeoutSeconds="1") as stream:
        began = asyncio.get_running_loop().time()
        assert await stream.rest() == []
        assert 0.5 < asyncio.get_running_loop().time() - began < 5


async def test_a_version_that_is_too_old_is_an_error_event_with_status_200(cluster: Cluster) -> None:
    async with cluster.watch(POOLS, resourceVersion="1", timeoutSeconds="60") as stream:
        events = await stream.rest()
    assert types(events) == ["ERROR"]
    status = events[0][1]
    assert (status["kind"], status["status"], status["reason"], status["code"]) == ("Status", "Failure", "Expired", 410)
    assert status["message"].startswith("too old resource version: 1 (")


async def test_a_version_from_the_future_is_a_silent_watch(cluster: Cluster) -> None:
    async with cluster.watch(POOLS, resourceVersion="99999999999", timeoutSeconds="1") as stream:
        await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, unique("pool")))
        assert await stream.rest() == []


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"resourceVersion": "abc"}, 500, 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'),
        ({"timeoutSeconds": "abc"}, 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        (
            {"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"},
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch '
                "unless sendInitialEvents is provided"
            ),
        ),
        (
            {"sendInitialEvents": "true"},
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting '
                "resourceVersionMatch to NotOlderThan"
            ),
        ),
    ],
    ids=lambda value: "&".join(f"{key}={item}" for key, item in value.items()) if isinstance(value, dict) else None,
)
async def test_parameters_that_make_no_sense_are_refused(cluster: Cluster, query: dict[str, str], status: int, said: str) -> None:
    reply = await cluster.send("GET", POOLS, query={"watch": "1", **query})
    assert (reply.status, reply.message) == (status, said)


async def test_a_finalized_object_is_modified_and_then_deleted(cluster: Cluster) -> None:
    key = ObjectKey("", unique("held"))
    start = await version_of(cluster, MACHINE_POOLS)
    body = new(MACHINE_POOLS, key.name)
    body["metadata"]["finalizers"] = ["example.com/held"]
    await create(cluster, MACHINE_POOLS, body)
    await delete(cluster, MACHINE_POOLS, key)
    await patch(cluster, MACHINE_POOLS, key, {"metadata": {"finalizers": None}})
    async with cluster.watch(POOLS, resourceVersion=start, fieldSelector=f"metadata.name={key.name}", timeoutSeconds="60") as stream:
        events = await stream.events(3)
    assert types(events) == ["ADDED", "MODIFIED", "DELETED"]
    assert "deletionTimestamp" in events[1][1]["metadata"]
    assert versions(events) == sorted(set(versions(events)))


async def test_two_watches_see_the_same(cluster: Cluster) -> None:
    name = unique("pool")
    start = await version_of(cluster, MACHINE_POOLS)
    query = {"resourceVersion": start, "fieldSelector": f"metadata.name={name}", "timeoutSeconds": "60"}
    async with cluster.watch(POOLS, **query) as first, cluster.watch(POOLS, **query) as second:
        await a_life(cluster, name)
        assert await first.events(5) == await second.events(5)
