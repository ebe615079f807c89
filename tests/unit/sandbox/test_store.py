"""Properties of the whole server: pages, replays and history agree for any sequence of writes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwatch.kube.resources import MACHINE_POOLS
from loopwatch.kube.transport import Request, Timeout
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.transport import SandboxTransport
from tests.support.stepped import SteppedClock, stepped

PATIENCE = Timeout(connect=1, read=100, total=100)
NAMES = ["a", "b", "c", "d", "e"]
STEPS = st.lists(st.tuples(st.sampled_from(["put", "label", "delete"]), st.sampled_from(NAMES), st.integers(0, 2)), max_size=25)
LABELLED = "labelSelector", "value=1"


def take(api: ApiServer, step: tuple[str, str, int]) -> None:
    """One step of a history; a delete of nothing is none."""
    what, name, value = step
    existing = api.object(MACHINE_POOLS, name)
    if what == "delete":
        if existing:
            api.delete_object(MACHINE_POOLS, name)
    elif what == "label":
        api.put_object(MACHINE_POOLS, {"metadata": {"name": name, "labels": {"value": str(value)}}})
    else:
        api.put_object(MACHINE_POOLS, {"metadata": {"name": name}, "spec": {"providerID": str(value)}})


async def ask(transport: SandboxTransport, **query: str) -> dict[str, Any]:
    """A list; 200 is expected."""
    request = Request("GET", MACHINE_POOLS.collection_path(), tuple(query.items()))
    async with transport.send(request, PATIENCE) as response:
        assert response.status == 200
        body: dict[str, Any] = msgspec.json.decode(await response.read())
        return body


async def replay(transport: SandboxTransport, **query: str) -> dict[str, Any]:
    """What a watch makes of nothing: the last state by name, after every event until its time is up."""
    state: dict[str, Any] = {}
    request = Request("GET", MACHINE_POOLS.collection_path(), (("watch", "1"), ("timeoutSeconds", "1"), *query.items()))
    async with transport.send(request, PATIENCE) as response:
        async for line in response.chunks():
            event = msgspec.json.decode(line)
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                assert name in state, "nothing is deleted that was not there"
                del state[name]
            else:
                assert (event["type"] == "ADDED") == (name not in state), event
                state[name] = event["object"]
    return state


def by_name(listed: dict[str, Any]) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in listed["items"]}


@given(STEPS, st.integers(1, 7), st.booleans())
@settings(deadline=None, max_examples=60)
@stepped
async def test_pages_of_any_size_join_to_the_list_whatever_is_written_between(
    steps: list[tuple[str, str, int]], limit: int, labelled: bool
) -> None:
    api = ApiServer(SteppedClock())
    transport = SandboxTransport(api, "test")
    half = len(steps) // 2
    for step in steps[:half]:
        take(api, step)
    chosen = dict([LABELLED]) if labelled else {}
    whole = await ask(transport, **chosen)
    items: list[Any] = []
    page = await ask(transport, limit=str(limit), **chosen)
    for step in [*steps[half:], *[("put", "z", 0)] * 10]:
        items += page["items"]
        assert page["metadata"]["resourceVersion"] == whole["metadata"]["resourceVersion"]
        if not page["metadata"].get("continue"):
            break
        take(api, step)
        page = await ask(transport, limit=str(limit), **chosen, **{"continue": page["metadata"]["continue"]})
    assert items == whole["items"]


@given(STEPS, st.integers(0, 25), st.booleans())
@settings(deadline=None, max_examples=60)
@stepped
async def test_a_list_and_the_events_after_it_make_the_newest_list(steps: list[tuple[str, str, int]], cut: int, labelled: bool) -> None:
    api = ApiServer(SteppedClock())
    transport = SandboxTransport(api, "test")
    chosen = dict([LABELLED]) if labelled else {}
    for step in steps[:cut]:
        take(api, step)
    start = await ask(transport, **chosen)
    for step in steps[cut:]:
        take(api, step)
    newest = by_name(await ask(transport, **chosen))
    state = by_name(start)
    request = Request(
        "GET",
        MACHINE_POOLS.collection_path(),
        (("watch", "1"), ("timeoutSeconds", "1"), ("resourceVersion", start["metadata"]["resourceVersion"]), *chosen.items()),
    )
    async with transport.send(request, PATIENCE) as response:
        async for line in response.chunks():
            event = msgspec.json.decode(line)
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                del state[name]
            else:
                state[name] = event["object"]
    assert state == newest


@given(STEPS, st.booleans())
@settings(deadline=None, max_examples=60)
@stepped
async def test_a_watch_from_nowhere_replays_to_the_list(steps: list[tuple[str, str, int]], labelled: bool) -> None:
    api = ApiServer(SteppedClock())
    transport = SandboxTransport(api, "test")
    first = api.revision
    for step in steps:
        take(api, step)
    chosen = dict([LABELLED]) if labelled else {}
    newest = by_name(await ask(transport, **chosen))
    assert await replay(transport, **chosen) == newest
    assert await replay(transport, resourceVersion=str(first), **chosen) == newest


@given(STEPS, st.integers(0, 25))
@settings(deadline=None, max_examples=60)
@stepped
async def test_an_exact_version_is_what_the_list_was_then(steps: list[tuple[str, str, int]], cut: int) -> None:
    api = ApiServer(SteppedClock())
    transport = SandboxTransport(api, "test")
    for step in steps[:cut]:
        take(api, step)
    then = await ask(transport)
    for step in steps[cut:]:
        take(api, step)
    version = then["metadata"]["resourceVersion"]
    assert await ask(transport, resourceVersion=version, resourceVersionMatch="Exact") == then


@given(STEPS)
@settings(deadline=None, max_examples=60)
@stepped
async def test_versions_only_rise_and_the_generation_counts_the_specs(steps: list[tuple[str, str, int]]) -> None:
    api = ApiServer(SteppedClock())
    last: dict[str, dict[str, Any]] = {}
    for step in steps:
        before = api.revision
        take(api, step)
        name = step[1]
        body = api.object(MACHINE_POOLS, name)
        old, last[name] = last.get(name, {}), body or {}
        if body is None or not old:
            continue
        assert (api.revision > before) == (body != old)
        same = body.get("spec") == old.get("spec")
        assert body["metadata"]["generation"] == old["metadata"]["generation"] + (0 if same else 1)


@stepped
async def test_a_bounded_history_forgets_the_oldest_and_says_so() -> None:
    api = ApiServer(SteppedClock(), history_limit=3)
    transport = SandboxTransport(api, "test")
    start = api.revision
    for value in range(10):
        take(api, ("put", "a", value))
    request = Request("GET", MACHINE_POOLS.collection_path(), (("watch", "1"), ("resourceVersion", str(start))))
    async with transport.send(request, PATIENCE) as response:
        event = msgspec.json.decode(await response.read())
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    recent = Request("GET", MACHINE_POOLS.collection_path(), (("watch", "1"), ("resourceVersion", str(api.revision - 2))))
    async with transport.send(recent, PATIENCE) as response:
        event = msgspec.json.decode(await anext(response.chunks()))
    assert event["object"]["spec"] == {"providerID": "8"}


@stepped
async def test_an_open_watch_outlives_a_compaction() -> None:
    api = ApiServer(SteppedClock())
    transport = SandboxTransport(api, "test")
    request = Request("GET", MACHINE_POOLS.collection_path(), (("watch", "1"), ("resourceVersion", str(api.revision))))
    async with transport.send(request, PATIENCE) as response:
        lines = response.chunks()
        take(api, ("put", "a", 1))
        await anext(lines)
        api.compact()
        take(api, ("put", "b", 1))
        assert msgspec.json.decode(await anext(lines))["object"]["metadata"]["name"] == "b"


@stepped
async def test_a_copy_of_an_object_is_the_callers_own() -> None:
    api = ApiServer(SteppedClock())
    made = api.put_object(MACHINE_POOLS, {"metadata": {"name": "a"}, "spec": {"providerID": "x"}, "status": {"state": "Ready"}})
    made["spec"]["providerID"] = "changed"
    again = api.object(MACHINE_POOLS, "a")
    assert again is not None
    assert (again["spec"], again["status"]) == ({"providerID": "x"}, {"state": "Ready"})
    assert api.object(MACHINE_POOLS, "b") is None
    assert [pool["metadata"]["name"] for pool in api.objects(MACHINE_POOLS)] == ["a"]


@stepped
async def test_setting_the_scene_goes_through_the_same_checks() -> None:
    api = ApiServer(SteppedClock())
    with pytest.raises(ValueError, match=r"422 Invalid: MachinePool.*spec\.providerID"):
        api.put_object(MACHINE_POOLS, {"metadata": {"name": "a"}, "spec": {"providerID": 5}})
    with pytest.raises(ValueError, match="404 NotFound"):
        api.delete_object(MACHINE_POOLS, "a")
    with pytest.raises(ValueError, match="strings"):
        api.inject_object(MACHINE_POOLS, {"metadata": {"name": 5}})


@stepped
async def test_a_foreign_object_is_shown_as_it_is() -> None:
    api = ApiServer(SteppedClock())
    transport = SandboxTransport(api, "test")
    start = api.revision
    api.inject_object(MACHINE_POOLS, {"metadata": {"name": "odd", "labels": 5}, "spec": [], "status": {"conditions": "none"}})
    (item,) = (await ask(transport))["items"]
    assert (item["spec"], item["status"], item["metadata"]["labels"]) == ([], {"conditions": "none"}, 5)
    assert (await replay(transport, resourceVersion=str(start)))["odd"] == item
    api.delete_object(MACHINE_POOLS, "odd")
    assert (await ask(transport))["items"] == []
