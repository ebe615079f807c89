"""Lists: pages, snapshots, resourceVersions, selectors."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, MACHINES, ObjectKey
from tests.contract.cluster import Cluster, HttpCluster, Reply, SandboxCluster, create, get, new, patch, unique

POOLS = MACHINE_POOLS.collection_path()
ETCD_VARIABLE = "LOOPWATCH_REAL_ETCD"


async def some_pools(cluster: Cluster, count: int) -> tuple[str, list[str]]:
    """Pools with a label of their own, in the order of a list, and the selector for them."""
    label = unique("set")
    names = [f"{label}-{index}" for index in range(count)]
    for name in names:
        body = new(MACHINE_POOLS, name)
        body["metadata"]["labels"] = {"contract": label}
        await create(cluster, MACHINE_POOLS, body)
    return f"contract={label}", names


async def listed(cluster: Cluster, path: str = POOLS, **query: str) -> Reply:
    reply = await cluster.send("GET", path, query=query)
    assert reply.status == 200, reply.body
    return reply


async def test_a_list_has_its_kind_a_version_and_the_objects_by_name(cluster: Cluster) -> None:
    selector, names = await some_pools(cluster, 3)
    reply = await listed(cluster, labelSelector=selector)
    assert (reply.json["kind"], reply.json["apiVersion"]) == ("MachinePoolList", MACHINE_POOLS.api_version)
    assert reply.names == names
    assert int(reply.version) >= max(int(item["metadata"]["resourceVersion"]) for item in reply.json["items"])


async def test_items_of_custom_resources_name_their_kind_and_those_of_leases_do_not(cluster: Cluster) -> None:
    _, names = await some_pools(cluster, 1)
    await create(cluster, LEASES, new(LEASES, names[0], "default"))
    pool = (await listed(cluster, fieldSelector=f"metadata.name={names[0]}")).json["items"][0]
    assert pool == (await get(cluster, MACHINE_POOLS, ObjectKey("", names[0]))).json
    lease = (await listed(cluster, LEASES.collection_path("default"), fieldSelector=f"metadata.name={names[0]}")).json["items"][0]
    whole = (await get(cluster, LEASES, ObjectKey("default", names[0]))).json
    assert lease == {key: value for key, value in whole.items() if key not in {"kind", "apiVersion"}}


async def test_an_empty_list_has_items_and_a_version(cluster: Cluster) -> None:
    reply = await listed(cluster, LEASES.collection_path(unique("nowhere")))
    assert (reply.json["items"], int(reply.version) > 0) == ([], True)


async def test_pages_show_what_was_there_at_the_first(cluster: Cluster) -> None:
    selector, names = await some_pools(cluster, 5)
    first = await listed(cluster, labelSelector=selector, limit="2")
    assert first.names == names[:2]
    await cluster.send("DELETE", MACHINE_POOLS.object_path(ObjectKey("", names[2])))
    await patch(cluster, MACHINE_POOLS, ObjectKey("", names[3]), {"spec": {"providerID": "changed"}})
    late = new(MACHINE_POOLS, f"{names[0]}-late")
    late["metadata"]["labels"] = {"contract": selector.removeprefix("contract=")}
    await create(cluster, MACHINE_POOLS, late)
    second = await listed(cluster, labelSelector=selector, limit="2", **{"continue": first.json["metadata"]["continue"]})
    assert second.names == names[2:4]
    assert "spec" not in second.json["items"][1]
    third = await listed(cluster, labelSelector=selector, limit="2", **{"continue": second.json["metadata"]["continue"]})
    assert third.names == names[4:]
    assert not third.json["metadata"].get("continue")
    assert first.version == second.version == third.version
    assert (await listed(cluster, labelSelector=selector)).names == [names[0], f"{names[0]}-late", names[1], names[3], names[4]]


async def test_the_rest_is_counted_only_without_a_selector(cluster: Cluster) -> None:
    selector, _ = await some_pools(cluster, 3)
    whole = len((await listed(cluster)).names)
    plain = (await listed(cluster, limit="1")).json["metadata"]
    assert plain["remainingItemCount"] == whole - 1
    assert "remainingItemCount" not in (await listed(cluster, limit="1", labelSelector=selector)).json["metadata"]


async def test_a_full_page_has_a_token_while_any_object_follows_selected_or_not(cluster: Cluster) -> None:
    selector, names = await some_pools(cluster, 2)
    await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, unique("zzz-not-selected")))
    full = await listed(cluster, labelSelector=selector, limit="2")
    assert full.names == names
    rest = await listed(cluster, labelSelector=selector, limit="2", **{"continue": full.json["metadata"]["continue"]})
    assert (rest.names, rest.json["metadata"].get("continue", "")) == ([], "")


async def test_the_last_page_has_no_token_even_when_it_is_full(cluster: Cluster) -> None:
    whole = await listed(cluster)
    if not whole.names:
        await some_pools(cluster, 1)
        whole = await listed(cluster)
    pages = await listed(cluster, resourceVersion=whole.version, limit=str(len(whole.names)))
    assert (pages.names, pages.json["metadata"].get("continue", "")) == (whole.names, "")


async def test_pages_of_all_namespaces_go_on_where_they_stopped(cluster: Cluster) -> None:
    label = unique("set")
    for namespace in ("default", "kube-system"):
        for index in range(2):
            body = new(LEASES, f"{label}-{index}", namespace)
            body["metadata"]["labels"] = {"contract": label}
            await create(cluster, LEASES, body)
    seen: list[tuple[str, str]] = []
    token = ""
    for _ in range(4):
        query = {"labelSelector": f"contract={label}", "limit": "1"} | ({"continue": token} if token else {})
        page = (await listed(cluster, LEASES.collection_path(), **query)).json
        seen += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert seen == [(namespace, f"{label}-{index}") for namespace in ("default", "kube-system") for index in range(2)]


async def test_a_list_from_the_cache_has_no_pages(cluster: Cluster) -> None:
    selector, names = await some_pools(cluster, 2)
    version = (await listed(cluster)).version
    cached = await listed(cluster, resourceVersion="0", limit="1", labelSelector=selector)
    assert "continue" not in cached.json["metadata"] or not cached.json["metadata"]["continue"]
    paged = await listed(cluster, resourceVersion=version, resourceVersionMatch="NotOlderThan", limit="1", labelSelector=selector)
    assert (paged.names, bool(paged.json["metadata"]["continue"])) == (names[:1], True)


async def test_an_exact_version_shows_the_past(cluster: Cluster) -> None:
    selector, names = await some_pools(cluster, 2)
    version = (await listed(cluster, labelSelector=selector)).version
    await cluster.send("DELETE", MACHINE_POOLS.object_path(ObjectKey("", names[0])))
    exact = await listed(cluster, resourceVersion=version, resourceVersionMatch="Exact", labelSelector=selector)
    assert (exact.names, exact.version) == (names, version)
    by_limit = await listed(cluster, resourceVersion=version, limit="9", labelSelector=selector)
    assert (by_limit.names, by_limit.version) == (names, version)
    newest = await listed(cluster, labelSelector=selector)
    assert newest.names == names[1:]
    not_older = await listed(cluster, resourceVersion=newest.version, labelSelector=selector)
    assert not_older.names == names[1:]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"limit": "abc"}, 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        (
            {"resourceVersion": "abc"},
            400,
            'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
        ),
        (
            {"resourceVersionMatch": "Exact"},
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless '
                "resourceVersion is provided"
            ),
        ),
        (
            {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for '
                'resourceVersion "0"'
            ),
        ),
        (
            {"resourceVersion": "5", "resourceVersionMatch": "Bad"},
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Bad": supported values: "Exact", '
                '"NotOlderThan", ""'
            ),
        ),
        (
            {"sendInitialEvents": "true"},
            422,
            'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
        ),
        ({"fieldSelector": "spec.providerID=x"}, 400, "field label not supported: spec.providerID"),
        ({"fieldSelector": "bad"}, 400, "invalid selector: 'bad'; can't understand 'bad'"),
    ],
    ids=lambda value: "&".join(f"{key}={item}" for key, item in value.items()) if isinstance(value, dict) else None,
)
async def test_parameters_that_make_no_sense_are_refused(cluster: Cluster, query: dict[str, str], status: int, said: str) -> None:
    reply = await cluster.send("GET", POOLS, query=query)
    assert (reply.status, reply.message) == (status, said)


async def test_a_version_from_the_future_is_a_timeout(cluster: Cluster) -> None:
    reply = await cluster.send("GET", POOLS, query={"resourceVersion": "99999999999"})
    assert (reply.status, reply.reason, reply.headers["Retry-After"]) == (504, "Timeout", "1")
    assert reply.message.startswith("Timeout: Too large resource version: 99999999999, current: ")
    assert reply.json["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


async def test_a_broken_continue_token_is_a_bad_request(cluster: Cluster) -> None:
    reply = await cluster.send("GET", POOLS, query={"continue": "abc"})
    assert (reply.status, reply.reason) == (400, "BadRequest")
    assert reply.message.startswith("invalid continue token: continue key is not valid: ")


async def test_a_continue_token_excludes_a_version(cluster: Cluster) -> None:
    selector, _ = await some_pools(cluster, 2)
    token = (await listed(cluster, labelSelector=selector, limit="1")).json["metadata"]["continue"]
    reply = await cluster.send("GET", POOLS, query={"continue": token, "resourceVersion": "5"})
    assert (reply.status, reply.message) == (400, "specifying resource version is not allowed when using continue")


async def compact(cluster: Cluster) -> None:
    """Forget history: by the sandbox's method; on a real server by etcd's HTTP gateway, where its address is known."""
    if isinstance(cluster, SandboxCluster):
        cluster.api.compact()
        return
    etcd = os.environ.get(ETCD_VARIABLE)
    if not etcd:
        pytest.skip(f"compaction needs etcd: set {ETCD_VARIABLE} to its client address, such as http://127.0.0.1:2379")
    revision = int((await listed(cluster)).version)
    store = HttpCluster("etcd", etcd)
    try:
        reply = await store.send("POST", "/v3/kv/compaction", {"revision": revision, "physical": True})
        assert reply.status == 200 or b"has been compacted" in reply.body, reply.body
    finally:
        await store.close()


async def test_after_a_compaction_a_continue_token_has_expired_and_offers_an_inconsistent_rest(cluster: Cluster) -> None:
    selector, names = await some_pools(cluster, 3)
    old = {"v": "meta.k8s.io/v1", "rv": 2, "start": f"/{names[0]}\0"}
    await compact(cluster)
    token = base64.urlsafe_b64encode(json.dumps(old).encode()).decode().rstrip("=")
    reply = await cluster.send("GET", POOLS, query={"continue": token, "labelSelector": selector, "limit": "1"})
    assert (reply.status, reply.reason) == (410, "Expired")
    assert reply.message.startswith("The provided continue parameter is too old to display a consistent list result. ")
    resume: dict[str, Any] = {"labelSelector": selector, "continue": reply.json["metadata"]["continue"]}
    rest = await listed(cluster, **resume)
    assert rest.names == names[1:]


async def test_after_a_compaction_an_exact_version_has_expired(cluster: Cluster) -> None:
    await compact(cluster)
    reply = await cluster.send("GET", POOLS, query={"resourceVersion": "2", "resourceVersionMatch": "Exact"})
    assert (reply.status, reply.reason) == (410, "Expired")
    assert reply.message == "The resourceVersion for the provided list is too old."


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("{key}=a", "a"),
        ("{key}==a", "a"),
        ("{key}!=a", "bn"),
        ("{key}", "ab"),
        ("!{key}", "n"),
        ("{key} in (a,b)", "ab"),
        ("{key} notin (a)", "bn"),
        ("{key}=a,{key}!=b", "a"),
        ("{key}=", ""),
    ],
)
async def test_label_selectors_select(cluster: Cluster, selector: str, found: str) -> None:
    key, group = unique("key"), unique("group")
    for letter in "abn":
        body = new(MACHINE_POOLS, f"{group}-{letter}")
        body["metadata"]["labels"] = {"group": group} | ({} if letter == "n" else {key: letter})
        await create(cluster, MACHINE_POOLS, body)
    reply = await listed(cluster, labelSelector=f"group={group},{selector.format(key=key)}")
    assert "".join(name[-1] for name in reply.names) == found


async def test_field_selectors_select_by_name_and_namespace(cluster: Cluster) -> None:
    name = unique("lease")
    for namespace in ("default", "kube-system"):
        await create(cluster, LEASES, new(LEASES, name, namespace))
    both = await listed(cluster, LEASES.collection_path(), fieldSelector=f"metadata.name={name}")
    assert both.names == [name, name]
    one = await listed(cluster, LEASES.collection_path(), fieldSelector=f"metadata.name={name},metadata.namespace!=default")
    assert [item["metadata"]["namespace"] for item in one.json["items"]] == ["kube-system"]
    none = await listed(cluster, LEASES.collection_path("default"), fieldSelector=f"metadata.name={name},metadata.namespace=other")
    assert none.names == []


async def test_machines_are_selected_by_pool_and_class(cluster: Cluster) -> None:
    pool, machine_class, name = unique("pool"), unique("class"), unique("machine")
    for index, chosen in enumerate((pool, "other")):
        spec = {"machinePoolRef": {"name": chosen}, "machineClassRef": {"name": machine_class}}
        await create(cluster, MACHINES, new(MACHINES, f"{name}-{index}", "default", spec=spec))
    on_pool = await listed(cluster, MACHINES.collection_path(), fieldSelector=f"spec.machinePoolRef.name={pool}")
    assert on_pool.names == [f"{name}-0"]
    of_class = await listed(cluster, MACHINES.collection_path(), fieldSelector=f"spec.machineClassRef.name={machine_class}")
    assert of_class.names == [f"{name}-0", f"{name}-1"]
    refused = await cluster.send("GET", MACHINES.collection_path(), query={"fieldSelector": "spec.power=On"})
    assert (refused.status, refused.message) == (400, "field label not supported: spec.power")


async def test_leases_are_selected_by_nothing_of_their_spec(cluster: Cluster) -> None:
    reply = await cluster.send("GET", LEASES.collection_path(), query={"fieldSelector": "spec.holderIdentity=a"})
    assert reply.status == 400
    assert reply.message == '"spec.holderIdentity" is not a known field selector: only "metadata.name", "metadata.namespace"'


async def test_a_get_may_name_a_version_that_it_must_not_be_older_than(cluster: Cluster) -> None:
    key = ObjectKey("", unique("pool"))
    made = await create(cluster, MACHINE_POOLS, new(MACHINE_POOLS, key.name))
    path = MACHINE_POOLS.object_path(key)
    assert (await cluster.send("GET", path, query={"resourceVersion": made.version})).json == made.json
    wrong = await cluster.send("GET", path, query={"resourceVersion": "abc"})
    assert wrong.status == 500
    assert wrong.message == 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'


async def test_a_get_of_nothing_is_a_whole_status(cluster: Cluster) -> None:
    name = unique("none")
    reply = await get(cluster, MACHINE_POOLS, ObjectKey("", name))
    assert reply.status == 404
    assert reply.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'machinepools.compute.ironcore.dev "{name}" not found',
        "reason": "NotFound",
        "details": {"name": name, "group": "compute.ironcore.dev", "kind": "machinepools"},
        "code": 404,
    }
