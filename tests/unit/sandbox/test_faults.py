"""Faults on demand, as a client meets them; stepped time, no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import msgspec
import pytest

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, MACHINES, ObjectKey
from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import (
    Cut,
    Fault,
    Forbid,
    Garbage,
    Hang,
    Latency,
    LoseAnswer,
    NoBookmarks,
    NotServed,
    Respond,
    Silence,
    Stale,
    Unauthorized,
)
from loopwatch.sandbox.transport import SandboxResponse, SandboxTransport
from tests.support.stepped import SteppedClock, stepped

PATIENCE = Timeout(connect=1, read=10, total=60)
ENDLESS = Timeout(connect=1, read=1000, total=None)
POOL = MACHINE_POOLS.object_path(ObjectKey("", "a"))


class World:
    """A sandbox with a pool and a Lease, and one client."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.api = ApiServer(self.clock)
        self.client = SandboxTransport(self.api, "client")
        self.pool(0)

    def pool(self, value: int) -> None:
        self.api.put_object(MACHINE_POOLS, {"metadata": {"name": "a"}, "spec": {"providerID": str(value)}})

    async def ask(self, method: str = "GET", path: str = POOL, body: object = None, **query: str) -> tuple[int, bytes]:
        headers = {} if body is None else {"Content-Type": "application/merge-patch+json"}
        encoded = None if body is None else msgspec.json.encode(body)
        async with self.client.send(Request(method, path, tuple(query.items()), headers, encoded), PATIENCE) as response:
            return response.status, await response.read()

    async def provider_id(self, **query: str) -> str:
        status, body = await self.ask(**query)
        assert status == 200
        return str(msgspec.json.decode(body)["spec"]["providerID"])

    def watch(self, **query: str) -> Watching:
        given = {"watch": "1", "resourceVersion": str(self.api.revision), **query}
        return Watching(self.client, Request("GET", MACHINE_POOLS.collection_path(), tuple(given.items())))


class Watching:
    """An open watch in an `async with`."""

    def __init__(self, client: SandboxTransport, request: Request) -> None:
        self._sending = client.send(request, ENDLESS)
        self._lines: AsyncIterator[bytes]

    async def __aenter__(self) -> Self:
        response: SandboxResponse = await self._sending.__aenter__()
        assert response.status == 200
        self._lines = response.chunks()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._sending.__aexit__(kind, error, trace)

    async def line(self, within: float = 5.0) -> bytes:
        async with asyncio.timeout(within):
            return await anext(self._lines)

    async def event(self, within: float = 5.0) -> tuple[str, str]:
        event = msgspec.json.decode(await self.line(within))
        return event["type"], event["object"].get("spec", {}).get("providerID", "")

    async def silent(self, seconds: float = 50.0) -> bool:
        """Whether nothing comes for so long; the watch is of no use after it."""
        try:
            await self.line(seconds)
        except TimeoutError:
            return True
        return False


@stepped
async def test_latency_delays_the_answer_and_nothing_else() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Latency(seconds=2.5), verb="get"))
    began = world.clock.monotonic()
    assert await world.provider_id() == "0"
    assert world.clock.monotonic() - began == pytest.approx(2.5)


@stepped
async def test_latency_beyond_the_patience_is_a_timeout_and_the_write_is_not_made() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Latency(seconds=20), verb="patch"))
    with pytest.raises(TransportTimeout):
        await world.ask("PATCH", body={"spec": {"providerID": "1"}})
    assert await world.provider_id() == "0"


@pytest.mark.parametrize("status", [429, 500, 503])
@stepped
async def test_a_refusal_is_a_status_with_the_wait_it_asks_for(status: int) -> None:
    world = World()
    world.api.faults.add(Fault(effect=Respond(status, retry_after_seconds=7)))
    async with world.client.send(Request("GET", POOL), PATIENCE) as response:
        body = msgspec.json.decode(await response.read())
        assert (response.status, response.headers["retry-after"], body["code"]) == (status, "7", status)
    assert body["details"] == {"retryAfterSeconds": 7}
    assert body["reason"] == {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}[status]


@stepped
async def test_a_proxys_page_is_html() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Respond(502, html=True)))
    async with world.client.send(Request("GET", POOL), PATIENCE) as response:
        assert (response.status, response.headers["Content-Type"]) == (502, "text/html")
        assert b"502 Bad Gateway" in await response.read()


@stepped
async def test_a_count_is_used_up_and_the_next_request_is_answered() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Respond(500), count=2))
    assert [(await world.ask())[0] for _ in range(3)] == [500, 500, 200]


@pytest.mark.parametrize("count", [0, -1])
@stepped
async def test_a_count_that_hits_nothing_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"count {count} hits nothing"):
        World().api.faults.add(Fault(effect=Hang(), count=count))


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        ({"verb": "get"}, True),
        ({"verb": "list"}, False),
        ({"resource": "machine*"}, True),
        ({"resource": "leases"}, False),
        ({"client": "cli?nt"}, True),
        ({"client": "other"}, False),
        ({"name": "a"}, True),
        ({"name": "b"}, False),
        ({"namespace": ""}, True),
        ({"namespace": "default"}, False),
        ({"subresource": ""}, True),
        ({"subresource": "status"}, False),
    ],
)
@stepped
async def test_a_fault_hits_what_it_names(match: dict[str, str], hit: bool) -> None:
    world = World()
    world.api.faults.add(msgspec.convert({"effect": {"type": "respond", "status": 503}, **match}, Fault))
    assert ((await world.ask())[0] == 503) == hit


@stepped
async def test_a_hang_answers_never_even_after_it_is_cleared() -> None:
    world = World()
    number = world.api.faults.add(Fault(effect=Hang(), verb="patch"))
    hanging = asyncio.create_task(world.ask("PATCH", body={"spec": {"providerID": "1"}}))
    await world.clock.sleep(1)
    assert world.api.faults.remove(number)
    with pytest.raises(TransportTimeout):
        await hanging
    assert await world.provider_id() == "0"
    assert world.api.requests.matching(verb="patch")[0].status == 0


@stepped
async def test_a_stopped_server_that_goes_on_carries_out_what_it_had_taken() -> None:
    world = World()
    number = world.api.faults.add(Fault(effect=Hang(resume=True)))
    hanging = asyncio.create_task(world.ask("PATCH", body={"spec": {"providerID": "1"}}))
    await world.clock.sleep(8)
    world.api.faults.remove(number)
    assert (await hanging)[0] == 200
    assert await world.provider_id() == "1"


@stepped
async def test_a_lost_answer_may_belong_to_a_write_that_was_made() -> None:
    world = World()
    world.api.faults.add(Fault(effect=LoseAnswer(), verb="patch", count=1))
    with pytest.raises(TransportError, match="closed before an answer"):
        await world.ask("PATCH", body={"spec": {"providerID": "1"}})
    assert await world.provider_id() == "1"
    world.api.faults.add(Fault(effect=LoseAnswer(applied=False), verb="patch", count=1))
    with pytest.raises(TransportError):
        await world.ask("PATCH", body={"spec": {"providerID": "2"}})
    assert await world.provider_id() == "1"


@stepped
async def test_a_request_that_is_refused_for_another_reason_is_answered_in_spite_of_a_lost_answer() -> None:
    world = World()
    world.api.faults.add(Fault(effect=LoseAnswer(), verb="patch"))
    assert (await world.ask("PATCH", body=[]))[0] == 400


@stepped
async def test_rights_and_tokens_can_be_taken_away() -> None:
    world = World()
    number = world.api.faults.add(Fault(effect=Unauthorized()))
    assert (await world.ask())[0] == 401
    world.api.faults.remove(number)
    world.api.faults.add(Fault(effect=Forbid(), verb="get"))
    status, body = await world.ask()
    said = 'User "client" cannot get resource "machinepools" in API group "compute.ironcore.dev" at the cluster scope'
    assert (status, said in msgspec.json.decode(body)["message"]) == (403, True)


@stepped
async def test_a_resource_that_is_not_served_is_missing_from_discovery_too() -> None:
    world = World()
    number = world.api.faults.add(Fault(effect=NotServed(), resource="machinepools"))
    assert await world.ask() == (404, b"404 page not found\n")
    _, listed = await world.ask(path=MACHINE_POOLS.root)
    assert b'"machinepools"' not in listed
    assert b'"machines"' in listed
    world.api.faults.remove(number)
    assert (await world.ask())[0] == 200


@stepped
async def test_a_cut_breaks_open_watches_and_each_new_one_until_it_is_used_up() -> None:
    world = World()
    async with world.watch() as first, world.watch() as second:
        world.api.faults.add(Fault(effect=Cut(), verb="watch", count=2))
        for stream in (first, second):
            with pytest.raises(TransportError, match="reset"):
                await stream.line()
    async with world.watch() as third:
        world.pool(1)
        assert await third.event() == ("MODIFIED", "1")


@stepped
async def test_a_cut_in_the_middle_leaves_half_a_line() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Cut(after_lines=1, mid_line=True), verb="watch"))
    async with world.watch() as stream:
        world.pool(1)
        world.pool(2)
        assert await stream.event() == ("MODIFIED", "1")
        half = await stream.line()
        assert half.startswith(b'{"type":"MODIFIED","object":{')
        assert not half.endswith(b"\n")
        with pytest.raises(TransportError):
            await stream.line()


@stepped
async def test_a_half_open_watch_is_silent_for_ever_and_has_no_bookmarks() -> None:
    world = World()
    async with world.watch(allowWatchBookmarks="true", timeoutSeconds="30") as stream:
        number = world.api.faults.add(Fault(effect=Silence(), verb="watch"))
        world.pool(1)
        await world.clock.sleep(1)
        world.api.faults.remove(number)
        assert await stream.silent(500), "its own end and its bookmarks do not come either"
    async with world.watch(resourceVersion=str(world.api.revision - 1)) as stream:
        assert await stream.event() == ("MODIFIED", "1")


@stepped
async def test_a_hang_silences_open_watches_and_a_server_that_goes_on_brings_what_they_missed() -> None:
    world = World()
    async with world.watch() as stopped, world.watch() as dead:
        number = world.api.faults.add(Fault(effect=Hang(resume=True), verb="watch", count=1))
        other = world.api.faults.add(Fault(effect=Hang(), verb="watch", count=1))
        world.pool(1)
        await world.clock.sleep(30)
        world.api.faults.remove(number)
        world.api.faults.remove(other)
        assert await stopped.event() == ("MODIFIED", "1")
        assert await dead.silent()


@stepped
async def test_garbage_comes_once_a_watch_and_the_events_go_on() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Garbage(line="{broken", after_lines=1), verb="watch"))
    async with world.watch() as stream:
        world.pool(1)
        world.pool(2)
        assert await stream.event() == ("MODIFIED", "1")
        assert await stream.line() == b"{broken\n"
        assert await stream.event() == ("MODIFIED", "2")


@stepped
async def test_bookmarks_can_be_switched_off() -> None:
    world = World()
    number = world.api.faults.add(Fault(effect=NoBookmarks(), verb="watch"))
    world.api.put_object(MACHINE_POOLS, {"metadata": {"name": "b"}})
    start = str(world.api.revision - 1)
    async with world.watch(allowWatchBookmarks="true", fieldSelector="metadata.name=a", resourceVersion=start) as stream:
        assert await stream.silent(200)
    world.api.faults.remove(number)
    async with world.watch(allowWatchBookmarks="true", fieldSelector="metadata.name=a", resourceVersion=start) as stream:
        assert (await stream.event(61))[0] == "BOOKMARK"


@stepped
async def test_stale_reads_stand_still_but_a_consistent_read_never_does() -> None:
    world = World()
    number = world.api.faults.add(Fault(effect=Stale()))
    frozen = world.api.revision
    world.pool(1)
    assert await world.provider_id(resourceVersion="0") == "0"
    assert await world.provider_id() == "1"
    collection = MACHINE_POOLS.collection_path()
    _, cached = await world.ask(path=collection, resourceVersion="0")
    assert msgspec.json.decode(cached)["metadata"]["resourceVersion"] == str(frozen)
    assert msgspec.json.decode(cached)["items"][0]["spec"] == {"providerID": "0"}
    _, consistent = await world.ask(path=collection)
    assert msgspec.json.decode(consistent)["items"][0]["spec"] == {"providerID": "1"}
    assert (await world.ask(path=collection, resourceVersion=str(world.api.revision)))[0] == 504
    async with world.watch(resourceVersion=str(frozen)) as stream:
        await world.clock.sleep(20)
        world.api.faults.remove(number)
        assert await stream.event() == ("MODIFIED", "1")


@stepped
async def test_a_stale_watch_that_is_open_already_brings_nothing_newer() -> None:
    world = World()
    async with world.watch() as stream:
        world.api.faults.add(Fault(effect=Stale(), verb="watch"))
        world.pool(1)
        assert await stream.silent()


@stepped
async def test_faults_add_up_in_the_order_they_were_set() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Latency(seconds=1)))
    world.api.faults.add(Fault(effect=Latency(seconds=2)))
    world.api.faults.add(Fault(effect=Respond(503)))
    began = world.clock.monotonic()
    assert (await world.ask())[0] == 503
    assert world.clock.monotonic() - began == pytest.approx(3)
    assert [rule.hits for rule in world.api.faults.rules()] == [1, 1, 1]


@stepped
async def test_every_request_is_on_record_with_its_answer() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Respond(503), verb="list"))
    began = world.clock.monotonic()
    await world.clock.sleep(3)
    await world.ask()
    await world.ask(path=MACHINES.collection_path(), limit="1")
    await world.ask("PATCH", MACHINE_POOLS.object_path(ObjectKey("", "a"), "status"), {"status": {"state": "Ready"}})
    await world.ask("PATCH", LEASES.object_path(ObjectKey("default", "l")), {})
    await world.ask(path="/version")
    records = world.api.requests.matching(client="client")
    assert [(record.method, record.verb, record.resource, record.subresource, record.status) for record in records] == [
        ("GET", "get", "machinepools", "", 200),
        ("GET", "list", "machines", "", 503),
        ("PATCH", "patch", "machinepools", "status", 200),
        ("PATCH", "patch", "leases", "", 404),
        ("GET", "get", "/version", "", 200),
    ]
    assert (records[1].query, records[3].namespace, records[3].name) == ("limit=1", "default", "l")
    assert records[0].at == pytest.approx(began + 3)
    assert world.api.requests.counts()["client", "patch", "machinepools/status"] == 1
    assert world.api.requests.matching(verb="patch", since=world.clock.monotonic() + 1) == []
    world.api.requests.clear()
    assert world.api.requests.matching() == []


@stepped
async def test_setting_the_scene_is_past_faults_and_record() -> None:
    world = World()
    world.api.faults.add(Fault(effect=Hang()))
    world.pool(5)
    pool = world.api.object(MACHINE_POOLS, "a")
    assert pool is not None
    assert pool["spec"] == {"providerID": "5"}
    assert world.api.requests.matching() == []
