"""The in-memory transport keeps the promises of `kube.transport`."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from loopwatch.kube.resources import MACHINE_POOLS
from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Fault, Hang, Latency
from loopwatch.sandbox.transport import SandboxTransport
from tests.support.stepped import SteppedClock, stepped

PATIENCE = Timeout(connect=1, read=10, total=60)
LIST = Request("GET", MACHINE_POOLS.collection_path())
WATCH = Request("GET", MACHINE_POOLS.collection_path(), (("watch", "1"), ("resourceVersion", "0")))


async def status(transport: SandboxTransport, request: Request = LIST, timeout: Timeout = PATIENCE) -> int:
    async with transport.send(request, timeout) as response:
        await response.read()
        return response.status


@pytest.mark.parametrize(("timeout", "seconds"), [(Timeout(1, 5, 60), 5), (Timeout(1, 50, 7), 7)])
@stepped
async def test_an_answer_that_does_not_come_ends_by_read_or_by_total(timeout: Timeout, seconds: float) -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    api.faults.add(Fault(effect=Hang()))
    began = clock.monotonic()
    with pytest.raises(TransportTimeout, match="no answer within"):
        await status(SandboxTransport(api, "c"), timeout=timeout)
    assert clock.monotonic() - began == pytest.approx(seconds)


@stepped
async def test_a_quiet_watch_ends_by_read_and_each_line_begins_it_anew() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    transport = SandboxTransport(api, "c")
    began = clock.monotonic()
    async with transport.send(WATCH, Timeout(1, 10, None)) as response:
        lines = response.chunks()
        waiting = asyncio.ensure_future(anext(lines))
        await clock.sleep(9)
        api.put_object(MACHINE_POOLS, {"metadata": {"name": "a"}})
        assert b'"ADDED"' in await waiting
        with pytest.raises(TransportTimeout, match="no bytes within"):
            await anext(lines)
    assert clock.monotonic() - began == pytest.approx(19)


@stepped
async def test_a_total_timeout_bounds_the_body_too() -> None:
    clock = SteppedClock()
    transport = SandboxTransport(ApiServer(clock), "c")
    began = clock.monotonic()
    with pytest.raises(TransportTimeout):
        await status(transport, WATCH, Timeout(1, 50, 20))
    assert clock.monotonic() - began == pytest.approx(20)


@stepped
async def test_a_partition_hits_one_client_alone_and_is_found_by_the_connect_timeout() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    cut_off, other = SandboxTransport(api, "a"), SandboxTransport(api, "b")
    cut_off.partition()
    began = clock.monotonic()
    with pytest.raises(TransportTimeout, match="no connection within 1 s"):
        await status(cut_off)
    assert clock.monotonic() - began == pytest.approx(1)
    assert await status(other) == 200
    cut_off.heal()
    assert await status(cut_off) == 200


@stepped
async def test_a_write_may_be_made_while_its_answer_is_lost_to_a_partition() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    transport = SandboxTransport(api, "c")
    api.faults.add(Fault(effect=Latency(seconds=2)))
    body = msgspec.json.encode({"apiVersion": MACHINE_POOLS.api_version, "kind": "MachinePool", "metadata": {"name": "a"}})
    writing = asyncio.create_task(status(transport, Request("POST", MACHINE_POOLS.collection_path(), body=body)))
    await clock.sleep(1)
    transport.partition()
    with pytest.raises(TransportTimeout):
        await writing
    assert api.object(MACHINE_POOLS, "a") is not None


@stepped
async def test_a_watch_goes_on_after_a_short_partition() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    transport = SandboxTransport(api, "c")
    async with transport.send(WATCH, Timeout(1, 60, None)) as response:
        transport.partition()
        api.put_object(MACHINE_POOLS, {"metadata": {"name": "a"}})
        waiting = asyncio.ensure_future(anext(response.chunks()))
        await clock.sleep(30)
        assert not waiting.done()
        transport.heal()
        assert b'"ADDED"' in await waiting


@stepped
async def test_refusing_resets_what_is_open_and_refuses_what_comes() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    transport = SandboxTransport(api, "c")
    began = clock.monotonic()
    async with transport.send(WATCH, Timeout(1, 60, None)) as response:
        waiting = asyncio.ensure_future(anext(response.chunks()))
        await clock.sleep(1)
        transport.partition("refuse")
        with pytest.raises(TransportError, match="reset by peer"):
            await waiting
    with pytest.raises(TransportError, match="refused"):
        await status(transport)
    assert clock.monotonic() - began == pytest.approx(1), "nobody had to wait"
    transport.heal()
    assert await status(transport) == 200


@stepped
async def test_closing_fails_what_is_under_way_and_all_that_comes() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    api.faults.add(Fault(effect=Hang(), verb="list"))
    transport = SandboxTransport(api, "c")
    waiting = asyncio.create_task(status(transport))
    await clock.sleep(1)
    await transport.close()
    with pytest.raises(TransportError, match="closed"):
        await waiting
    with pytest.raises(TransportError, match="closed"):
        await status(transport)


@stepped
async def test_leaving_a_watch_takes_it_from_the_server() -> None:
    api = ApiServer(SteppedClock())
    collection = api._store.collections[MACHINE_POOLS]
    transport = SandboxTransport(api, "c")
    async with transport.send(WATCH, Timeout(1, 60, None)) as response:
        lines = response.chunks()
        api.put_object(MACHINE_POOLS, {"metadata": {"name": "a"}})
        await anext(lines)
        assert len(collection.listeners) == 1
    assert collection.listeners == []


@stepped
async def test_a_token_is_read_again_only_when_it_is_renewed() -> None:
    api = ApiServer(SteppedClock(), tokens={"old": "pool-a"})
    current = ["old"]
    transport = SandboxTransport(api, "c", token=lambda: current[0])
    assert await status(transport) == 200
    api.tokens = {"new": "pool-a"}
    assert await status(transport) == 401
    assert not await transport.renew_credentials(), "the file has not changed yet"
    current[0] = "new"
    assert await status(transport) == 401
    assert await transport.renew_credentials()
    assert await status(transport) == 200


@stepped
async def test_without_a_token_a_client_is_anonymous_and_may_nothing() -> None:
    api = ApiServer(SteppedClock(), tokens={"t": "pool-a"})
    async with SandboxTransport(api, "c").send(LIST, Timeout(1, 1, 1)) as response:
        body = msgspec.json.decode(await response.read())
    assert (response.status, body["reason"], 'User "system:anonymous" cannot list' in body["message"]) == (403, "Forbidden", True)


@stepped
async def test_headers_are_found_whatever_their_case() -> None:
    async with SandboxTransport(ApiServer(SteppedClock()), "c").send(LIST, Timeout(1, 1, 1)) as response:
        assert response.headers["content-TYPE"] == "application/json"
        assert dict(response.headers) == {"content-type": "application/json", "date": "Fri, 01 May 2026 12:00:00 GMT"}


@stepped
async def test_requests_of_two_clients_interleave() -> None:
    api = ApiServer(SteppedClock())
    order: list[str] = []

    async def three(name: str) -> None:
        transport = SandboxTransport(api, name)
        for _ in range(3):
            await status(transport)
            order.append(name)

    await asyncio.gather(three("a"), three("b"))
    assert order == ["a", "b"] * 3
