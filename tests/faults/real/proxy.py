"""A proxy between the processes and a real API server that knows HTTP and Kubernetes: it does to requests what the sandbox's faults do.

Which process sends says a header of ours, which it takes off. Faults are the sandbox's own table; partitions are of a host and a resource.
It remembers which process made which resourceVersion, also where the answer never arrived.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Literal, NoReturn

import aiohttp
import msgspec
from aiohttp import web

from loopwatch.kube.transport import Request
from loopwatch.sandbox import faults
from loopwatch.sandbox.apiserver import Identity, calls, statuses
from loopwatch.sandbox.apiserver.api import _respond
from loopwatch.sandbox.apiserver.calls import Call
from loopwatch.sandbox.apiserver.router import Answer, page_not_found, traits_of
from loopwatch.sandbox.apiserver.served import served_types
from loopwatch.sandbox.faults import FaultTable, Rule, StreamFaults, StreamState
from tests.faults.ground import Cut, End
from tests.faults.paths import resource_of

CLIENT = "X-Loopwatch-Client"
HANDLED_AT = "X-Handled-At"
"""Of an answer: time.monotonic() when the request went on to the API server."""
_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "accept-encoding", CLIENT.lower()})
_EXPIRED = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Expired",
    "code": 410,
    "message": "too old resource version",
}
_EXPIRED_LINE = msgspec.json.encode({"type": "ERROR", "object": _EXPIRED}) + b"\n"


class FaultProxy:
    """To one API server, at `address`, with an administrator's certificate in `tls` (False: it speaks plain HTTP)."""

    def __init__(self, address: str, tls: ssl.SSLContext | Literal[False]) -> None:
        self.faults = FaultTable(lambda: 0)
        self.writers: dict[str, str] = {}
        self._address, self._tls = address, tls
        self._types = {(kind_of.resource.group, kind_of.resource.version, kind_of.resource.plural): kind_of for kind_of in served_types()}
        self._cuts: dict[tuple[str, str], list[Cut]] = {}
        self._moved = asyncio.Event()
        self._open: dict[asyncio.Transport, tuple[str, str]] = {}
        self._watches: set[_Watch] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen on a free port of loopback; gives the address."""
        application = web.Application(client_max_size=2**22)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False, trust_env=False) as self._session:
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                yield f"http://127.0.0.1:{runner.addresses[0][1]}"
            finally:
                await runner.cleanup()

    def partition(self, keys: list[tuple[str, str]], cut: Cut) -> End:
        """Cut (host, resource) off until the end; what is cut twice heals with the last."""
        for key in keys:
            self._cuts.setdefault(key, []).append(cut)
        if cut == "refuse":
            for transport, (client, resource) in list(self._open.items()):
                if (client.rsplit(".", 1)[0], resource) in keys:
                    transport.abort()
        self._wake()

        def heal() -> None:
            for key in keys:
                self._cuts[key].remove(cut)
            self._wake()

        return heal

    def reset(self, client: str) -> None:
        """A process died: its connections are closed."""
        for transport, (of, _) in list(self._open.items()):
            if of == client:
                transport.abort()

    def compact(self) -> None:
        """Every open watch is told that its version is too old."""
        for watch in self._watches:
            watch.expire()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        client = request.headers.get(CLIENT, "")
        resource = resource_of(request.path)
        transport = request.transport
        if transport is None:
            return web.Response(status=499)
        self._open[transport] = (client, resource)
        try:
            await self._passable(client, resource, request)
            asked = Request(request.method, request.path, tuple(request.query.items()), dict(request.headers), await request.read())
            call = calls.parse(asked, Identity(client), self._types)
            return await self._answer(request, call, resource)
        finally:
            self._open.pop(transport, None)

    async def _passable(self, client: str, resource: str, request: web.Request) -> None:
        """Wait for a dropping partition to heal; a refusing one ends the connection."""
        while cuts := self._cuts.get((client.rsplit(".", 1)[0], resource)):
            if "refuse" in cuts:
                _break(request)
            await self._moved.wait()

    async def _answer(self, request: web.Request, call: Call, resource: str) -> web.StreamResponse:
        lost: list[Rule] = []
        for rule in self.faults.matching(traits_of(call)):
            effect = rule.fault.effect
            if isinstance(effect, faults.LoseAnswer) and effect.applied:
                lost.append(rule)
            elif isinstance(effect, _BEFORE):
                rule.take()
                answer = await self._before(request, call, rule)
                if answer is not None:
                    return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        handled_at = time.monotonic()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = self._address + request.path_qs
        async with self._session.request(request.method, url, headers=headers, data=call.request.body or None) as upstream:
            if call.verb == "watch" and upstream.status == 200:
                if lost:
                    lost[0].take()
                    _break(request)
                return await self._stream(request, call, resource, upstream)
            body = await upstream.read()
            self._remember(call, upstream.status, body)
            if lost:
                lost[0].take()
                _break(request)
            await self._passable(call.identity.client, resource, request)
            kept = {name: value for name, value in upstream.headers.items() if name.lower() in {"content-type", "retry-after"}}
            return web.Response(status=upstream.status, body=body, headers={**kept, HANDLED_AT: repr(handled_at)})

    async def _before(self, request: web.Request, call: Call, rule: Rule) -> Answer | None:
        """What a fault does before the request goes on."""
        match rule.fault.effect:
            case faults.Latency(seconds=seconds):
                await asyncio.sleep(seconds)
            case faults.Hang(resume=resume):
                while not resume or self.faults.in_force(rule.number):
                    await self._change_of_faults()
            case faults.LoseAnswer():
                _break(request)
            case faults.Unauthorized():
                return _refused(statuses.unauthorized())
            case faults.Forbid(user=user) if call.kind_of is not None:
                key = call.key
                who = user or call.identity.client
                return _refused(
                    statuses.forbidden(
                        call.kind_of.resource, who, call.verb, subresource=call.subresource, namespace=key.namespace, name=key.name
                    )
                )
            case faults.NotServed():
                return page_not_found()
            case faults.Respond() as effect:
                return _respond(effect)
        return None

    async def _change_of_faults(self) -> None:
        changed = asyncio.Event()
        self.faults.on_change(changed.set)
        try:
            await changed.wait()
        finally:
            self.faults.forget(changed.set)

    def _remember(self, call: Call, status: int, body: bytes) -> None:
        if call.request.method != "GET" and 200 <= status < 300:
            written: dict[str, Any] = msgspec.json.decode(body)
            self.writers[str(written.get("metadata", {}).get("resourceVersion", ""))] = call.identity.client

    async def _stream(self, request: web.Request, call: Call, resource: str, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", HANDLED_AT: repr(time.monotonic())})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b"")
        watch = _Watch(upstream, StreamFaults(self.faults, traits_of(call)))
        self._watches.add(watch)
        try:
            async for line in watch.lines():
                await self._passable(call.identity.client, resource, request)
                await response.write(line)
        except _Cut:
            _break(request)
        finally:
            self._watches.discard(watch)
            watch.close()
        await response.write_eof()
        return response


class _Cut(Exception):
    """The connection breaks here."""


class _Watch:
    """The lines of one watch, as faults let them through."""

    def __init__(self, upstream: aiohttp.ClientResponse, stream_faults: StreamFaults) -> None:
        self._faults = stream_faults
        self._lines: deque[bytes] = deque()
        self._ended = False
        self._wake = asyncio.Event()
        self._sent = 0
        self._expired = False
        stream_faults.table.on_change(self._wake.set)
        self._reading = asyncio.ensure_future(self._read(upstream))

    def close(self) -> None:
        """No line is asked for any more."""
        self._faults.table.forget(self._wake.set)
        self._reading.cancel()

    def expire(self) -> None:
        """The server says that the version is too old, and ends the stream."""
        self._expired = True
        self._wake.set()

    async def lines(self) -> AsyncIterator[bytes]:
        """One at a time; _Cut where a fault breaks the stream."""
        while True:
            state = self._faults.state(self._sent)
            if state.cut is not None:
                if state.cut.mid_line and self._lines:
                    yield self._lines[0][: len(self._lines[0]) // 2]
                raise _Cut
            if self._expired and not state.silent:
                yield _EXPIRED_LINE
                return
            line = None if state.silent else self._faults.next_garbage() or self._next(state)
            if line is not None:
                self._sent += 1
                yield line
            elif self._ended and not self._lines and not state.silent:
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    def _next(self, state: StreamState) -> bytes | None:
        if state.frozen is not None:
            return None
        while self._lines:
            line = self._lines.popleft()
            if state.bookmarks or not line.startswith(b'{"type":"BOOKMARK"'):
                return line
        return None

    async def _read(self, upstream: aiohttp.ClientResponse) -> None:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            rest = b""
            async for chunk in upstream.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                self._lines.extend(line + b"\n" for line in whole)
                self._wake.set()
        self._ended = True
        self._wake.set()


_BEFORE = (
    faults.Latency,
    faults.Respond,
    faults.Unauthorized,
    faults.Forbid,
    faults.NotServed,
    faults.Hang,
    faults.LoseAnswer,
)


def _refused(refusal: statuses.Refusal) -> Answer:
    return Answer(refusal.code, {"Content-Type": statuses.JSON_TYPE, **refusal.headers}, refusal.body())


def _break(request: web.Request) -> NoReturn:
    """Reset the connection."""
    if request.transport is not None:
        request.transport.abort()
    raise asyncio.CancelledError
