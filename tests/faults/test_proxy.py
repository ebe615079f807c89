"""The proxy of soak-real does to requests what the sandbox's faults do; here the sandbox's own server stands behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from loopwatch.clock import SystemClock
from loopwatch.kube.resources import MACHINE_POOLS, ObjectKey
from loopwatch.sandbox import faults
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Effect, Fault
from loopwatch.sandbox.server import serve
from tests.faults.real.proxy import CLIENT, HANDLED_AT, FaultProxy

POOLS = MACHINE_POOLS.collection_path()
POOL = MACHINE_POOLS.object_path(ObjectKey("", "pool-a"))
MERGE = {"Content-Type": "application/merge-patch+json"}
BROKEN = (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError)
TURNS = 200
"""Of the event loop: enough for a request to reach the server and come back, were nothing in its way."""


class Behind:
    """The API server, the proxy before it, and one client."""

    def __init__(self, api: ApiServer, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        self.api, self.proxy, self.session = api, proxy, session

    def suffer(self, effect: Effect, **match: Any) -> int:
        """A fault until the end of the test."""
        return self.proxy.faults.add(Fault(effect=effect, **match))

    async def taint(self, key: str) -> aiohttp.ClientResponse:
        """Patch the pool."""
        body = json.dumps({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}).encode()
        async with self.session.patch(POOL, data=body, headers=MERGE) as response:
            await response.read()
            return response

    def taints(self) -> list[str]:
        """As stored."""
        found = self.api.object(MACHINE_POOLS, "pool-a")
        assert found is not None
        return [taint["key"] for taint in found["spec"].get("taints", [])]

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[aiohttp.StreamReader]:
        """Watch the pools from now on."""
        query = {"watch": "1", "resourceVersion": str(self.api.revision), "timeoutSeconds": "60"}
        async with self.session.get(POOLS, params=query) as response:
            assert response.status == 200
            yield response.content

    def put_taint(self, key: str) -> None:
        """Somebody else writes the pool."""
        self.api.put_object(MACHINE_POOLS, {"metadata": {"name": "pool-a"}, "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}})


@pytest.fixture
async def behind() -> AsyncIterator[Behind]:
    api = ApiServer(SystemClock())
    api.put_object(MACHINE_POOLS, {"metadata": {"name": "pool-a"}, "spec": {}})
    async with serve(api) as server:
        proxy = FaultProxy(server, tls=False)
        async with proxy.listening() as address, aiohttp.ClientSession(address, headers={CLIENT: "controller-1.3"}) as session:
            session._retry_connection = False
            yield Behind(api, proxy, session)


async def turns() -> None:
    """Let everybody run for a while."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def taint_of(stream: aiohttp.StreamReader) -> str:
    """Of the next event."""
    event: dict[str, Any] = json.loads(await stream.readline())
    return str(event["object"]["spec"]["taints"][0]["key"])


async def test_what_passes_is_remembered_by_its_writer(behind: Behind) -> None:
    response = await behind.taint("one")
    assert response.status == 200
    assert HANDLED_AT in response.headers
    assert behind.proxy.writers == {str(behind.api.revision): "controller-1.3"}


@pytest.mark.parametrize(
    ("effect", "status"),
    [
        (faults.Respond(429, retry_after_seconds=3), 429),
        (faults.Respond(502, html=True), 502),
        (faults.Unauthorized(), 401),
        (faults.Forbid(), 403),
        (faults.NotServed(), 404),
    ],
)
async def test_an_answer_of_the_servers_own_keeps_the_request_from_it(behind: Behind, effect: Effect, status: int) -> None:
    behind.suffer(effect, verb="patch", client="controller-1.*")
    response = await behind.taint("one")
    assert response.status == status
    assert response.headers.get("Retry-After") == ("3" if status == 429 else None)
    assert behind.taints() == []


@pytest.mark.parametrize("applied", [True, False])
async def test_a_lost_answer_is_a_broken_connection(behind: Behind, applied: bool) -> None:
    behind.suffer(faults.LoseAnswer(applied=applied), verb="patch", count=1)
    with pytest.raises(BROKEN):
        await behind.taint("one")
    assert behind.taints() == (["one"] if applied else [])
    assert (await behind.taint("two")).status == 200


async def test_a_fault_of_another_client_hits_nobody_else(behind: Behind) -> None:
    behind.suffer(faults.Respond(500), client="controller-2.*")
    assert (await behind.taint("one")).status == 200


async def test_a_hang_that_resumes_goes_on_with_its_end(behind: Behind) -> None:
    number = behind.suffer(faults.Hang(resume=True), verb="patch")
    patching = asyncio.create_task(behind.taint("one"))
    await turns()
    assert not patching.done()
    behind.proxy.faults.remove(number)
    assert (await patching).status == 200


async def test_a_dropping_partition_holds_requests_and_lines_back(behind: Behind) -> None:
    async with behind.watch() as stream:
        heal = behind.proxy.partition([("controller-1", "machinepools")], "drop")
        patching, reading = asyncio.create_task(behind.taint("one")), asyncio.create_task(taint_of(stream))
        behind.put_taint("zero")
        await turns()
        assert not patching.done()
        assert not reading.done()
        heal()
        assert (await patching).status == 200
        assert await reading == "zero"


async def test_a_refusing_partition_breaks_what_is_open_and_what_comes(behind: Behind) -> None:
    async with behind.watch() as stream:
        heal = behind.proxy.partition([("controller-1", "machinepools")], "refuse")
        with pytest.raises(BROKEN):
            await taint_of(stream)
        with pytest.raises(BROKEN):
            await behind.taint("one")
    heal()
    assert (await behind.taint("two")).status == 200


async def test_the_connections_of_a_dead_process_are_closed(behind: Behind) -> None:
    async with behind.watch() as stream:
        behind.proxy.reset("controller-1.2")
        behind.put_taint("one")
        assert await taint_of(stream) == "one"
        behind.proxy.reset("controller-1.3")
        with pytest.raises(BROKEN):
            await taint_of(stream)


async def test_a_watch_is_cut_within_a_line(behind: Behind) -> None:
    behind.suffer(faults.Cut(after_lines=1, mid_line=True), verb="watch")
    async with behind.watch() as stream:
        behind.put_taint("one")
        assert await taint_of(stream) == "one"
        behind.put_taint("two")
        with pytest.raises(BROKEN):
            await stream.read()


async def test_garbage_comes_once_and_the_watch_goes_on(behind: Behind) -> None:
    behind.suffer(faults.Garbage(line="{half"), verb="watch")
    async with behind.watch() as stream:
        assert await stream.readline() == b"{half\n"
        behind.put_taint("one")
        assert await taint_of(stream) == "one"


async def test_a_stale_watch_is_held_until_the_fault_ends(behind: Behind) -> None:
    async with behind.watch() as stream:
        number = behind.suffer(faults.Stale(), verb="watch")
        behind.put_taint("one")
        reading = asyncio.create_task(taint_of(stream))
        await turns()
        assert not reading.done()
        behind.proxy.faults.remove(number)
        assert await reading == "one"


async def test_a_compaction_ends_a_watch_with_410(behind: Behind) -> None:
    async with behind.watch() as stream:
        behind.proxy.compact()
        event = json.loads(await stream.readline())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await stream.read() == b""
