"""A `kube.transport.Transport` that calls the sandbox in the same process: no socket, no thread, right for a stepped clock.

It keeps a client's promises as the network would: connect, read and total timeouts, a connection that breaks, answers that never come.
Each transport is one client and can be partitioned from the API server on its own. It refuses to be faster than a loop turn: every
request yields at least once, so that tasks interleave as they would over a network.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Literal, TypeVar

from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout
from loopwatch.sandbox.apiserver import Answer, AnswerLost, ApiServer, Identity, StreamCut

T = TypeVar("T")

TokenSource = Callable[[], str | None]
"""Gives the token as it stands now: a client reads it at the start and again in `renew_credentials`."""

Partition = Literal["drop", "refuse"]
"""`drop`: packets vanish, so that only timeouts tell; `refuse`: connections are refused and open ones reset."""


class Headers(Mapping[str, str]):
    """HTTP headers, looked up without regard to case."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {name.lower(): value for name, value in headers.items()}

    def __getitem__(self, name: str) -> str:
        return self._headers[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


class SandboxTransport:
    """One client of a sandbox. `client` is its User-Agent, by which faults and records know it."""

    def __init__(self, server: ApiServer, client: str, *, token: str | TokenSource | None = None) -> None:
        self._server = server
        self._client = client
        self._read_token = token if callable(token) else (lambda: token)
        self._token = self._read_token()
        self._partition: Partition | None = None
        self._reachable = asyncio.Event()
        self._reachable.set()
        self._exchanges: set[_Exchange] = set()
        self._closed = False

    @contextlib.asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncGenerator[SandboxResponse]:
        """Send once; see `kube.transport.Transport`."""
        exchange = _Exchange(timeout)
        self._exchanges.add(exchange)
        try:
            await self._connect(exchange, timeout)
            answer = await exchange.within(timeout.read, self._answer(request), "answer")
            response = SandboxResponse(answer, exchange, self._reachable)
            try:
                yield response
            finally:
                await response.close()
        finally:
            self._exchanges.discard(exchange)

    async def renew_credentials(self) -> bool:
        """Read the token again; True where it changed."""
        before, self._token = self._token, self._read_token()
        return self._token != before

    async def close(self) -> None:
        """Fail what is under way and all that comes."""
        self._closed = True
        self._break_all("the transport is closed")

    def partition(self, kind: Partition = "drop") -> None:
        """Cut this client off until `heal`."""
        self._partition = kind
        if kind == "refuse":
            self._break_all("connection reset by peer")
        else:
            self._reachable.clear()

    def heal(self) -> None:
        """Let this client through again; what was dropped meanwhile arrives late, as TCP would have it."""
        self._partition = None
        self._reachable.set()

    async def _connect(self, exchange: _Exchange, timeout: Timeout) -> None:
        await self._server.clock.sleep(0)
        if self._closed:
            raise TransportError("the transport is closed")
        if self._partition == "refuse":
            raise TransportError("connection refused")
        await exchange.within(timeout.connect, self._reachable.wait(), "connection")

    async def _answer(self, request: Request) -> Answer:
        headers = {"User-Agent": self._client, "Accept": "application/json", **request.headers}
        sent = Request(request.method, request.path, request.query, headers, request.body)
        try:
            answer = await self._server.handle(sent, Identity(self._client, self._token))
        except AnswerLost:
            raise TransportError("the connection was closed before an answer came") from None
        try:
            await self._reachable.wait()
        except asyncio.CancelledError:
            if answer.stream is not None:
                await answer.stream.aclose()
            raise
        return answer

    def _break_all(self, why: str) -> None:
        for exchange in self._exchanges:
            exchange.break_off(why)


class SandboxResponse:
    """An answer whose head has arrived; see `kube.transport.Response`."""

    def __init__(self, answer: Answer, exchange: _Exchange, reachable: asyncio.Event) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = Headers(answer.headers)
        self._answer = answer
        self._exchange = exchange
        self._reachable = reachable

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives: a watch brings one chunk a line."""
        stream = self._answer.stream
        if stream is None:
            yield await self._exchange.within(self._exchange.timeout.read, self._delivered(self._answer.body), "body")
            return
        while True:
            try:
                chunk = await self._exchange.within(self._exchange.timeout.read, self._next(stream), "bytes")
            except StopAsyncIteration:
                return
            except StreamCut:
                raise TransportError("the connection was reset while the body was read") from None
            yield chunk

    async def close(self) -> None:
        """Leave the rest unread."""
        if self._answer.stream is not None:
            await self._answer.stream.aclose()

    async def _delivered(self, body: bytes) -> bytes:
        await self._reachable.wait()
        return body

    async def _next(self, stream: AsyncIterator[bytes]) -> bytes:
        return await self._delivered(await anext(stream))


class _Exchange:
    """One request and its answer: its timeouts, and the way to break it off from outside."""

    def __init__(self, timeout: Timeout) -> None:
        self.timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._ends = None if timeout.total is None else self._loop.time() + timeout.total
        self._waits: set[asyncio.Timeout] = set()
        self._broken = ""

    async def within(self, seconds: float, awaitable: Awaitable[T], what: str) -> T:
        """Await for at most `seconds` and what is left of the whole; TransportTimeout after that, TransportError when broken off."""
        until = self._loop.time() + seconds
        wait = asyncio.timeout_at(until if self._ends is None else min(until, self._ends))
        self._waits.add(wait)
        try:
            async with wait:
                return await awaitable
        except TimeoutError:
            if self._broken:
                raise TransportError(self._broken) from None
            raise TransportTimeout(f"no {what} within {seconds:g} s") from None
        finally:
            self._waits.discard(wait)

    def break_off(self, why: str) -> None:
        """Fail whatever is being awaited."""
        self._broken = why
        for wait in self._waits:
            wait.reschedule(self._loop.time())
