"""The network between processes that each have a loop of their own: requests, answers and the lines of watches as messages that travel.

The API server is one of those processes. A message takes some milliseconds, in order on its connection; a partition holds back what
travels (`drop`: it arrives late, when it is healed) or breaks the connections (`refuse`). A process that stands still finds in its
sockets what came meanwhile; one that was killed gets nothing, and what it had sent arrives all the same. A request that is held back by a
partition when its client gives up never arrives: a server that reads it late finds the connection closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple, TypeVar

from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout
from loopwatch.sandbox.apiserver import AnswerLost, ApiServer, Identity, StreamCut
from loopwatch.sandbox.transport import Headers
from tests.faults.ground import Cut
from tests.faults.paths import is_watch, resource_of
from tests.support.processes import Process, World

T = TypeVar("T")

_RESET = "connection reset by peer"


class Head(NamedTuple):
    """The beginning of an answer."""

    status: int
    headers: dict[str, str]


class End(NamedTuple):
    """The end of a body; `why` is empty where it is a proper one."""

    why: str = ""


Message = Head | bytes | End


class Weather(NamedTuple):
    """Of messages, the share that is slow (lost and sent again), and the longest that a slow one takes, in seconds."""

    slow_share: float = 0.02
    slowest_seconds: float = 0.3


class Link:
    """The way of one host to one resource of the API server."""

    def __init__(self, world: World, chance: random.Random, weather: Weather) -> None:
        self.world, self.chance, self.weather = world, chance, weather
        self.cut: Cut | None = None
        self.exchanges: list[Exchange] = []
        self._waiting: list[asyncio.Event] = []

    def travel_seconds(self) -> float:
        """What the next message takes: mostly some milliseconds."""
        slow = self.chance.random() < self.weather.slow_share
        return self.chance.uniform(0.01, self.weather.slowest_seconds) if slow else self.chance.uniform(0.0005, 0.005)

    def break_off(self, cut: Cut) -> None:
        """Partition."""
        self.cut = cut
        if cut == "refuse":
            for exchange in list(self.exchanges):
                exchange.reset()

    def heal(self) -> None:
        """End of the partition: what was held back goes on."""
        self.cut = None
        for exchange in list(self.exchanges):
            exchange.go_on()


class Network:
    """All links of one world. `on_send` is told of each request as it leaves, `on_answer` of each answer that a client has read.

    The latter gets the status and the moment at which the server had handled it.
    """

    def __init__(self, world: World, api: ApiServer, server: Process, seed: str, weather: Weather) -> None:
        self.world, self.api, self.server, self.weather = world, api, server, weather
        self.on_send: Callable[[str, Request], None] = lambda _client, _request: None
        self.on_answer: Callable[[str, Request, int, float], None] = lambda _client, _request, _status, _handled_at: None
        self._seed = seed
        self._links: dict[tuple[str, str], Link] = {}

    def link(self, host: str, resource: str) -> Link:
        """The link of a host (all its processes) to a resource."""
        key = (host, resource)
        if key not in self._links:
            self._links[key] = Link(self.world, random.Random(f"{self._seed} {host} {resource}"), self.weather)
        return self._links[key]

    def links(self, host: str = "*", resource: str = "*") -> list[Link]:
        """Those that exist so far, of one host or all, to one resource or all."""
        return [link for key, link in self._links.items() if host in ("*", key[0]) and resource in ("*", key[1])]

    def reset(self, client: str) -> None:
        """A process died: its connections are closed by its kernel."""
        for link in self._links.values():
            for exchange in list(link.exchanges):
                if exchange.identity.client == client:
                    exchange.leave()


class WireTransport:
    """One process's way to the API server; see kube.transport.Transport. `host` names its links, `client` itself."""

    def __init__(self, network: Network, process: Process, host: str, client: str) -> None:
        self._network, self._process, self._host = network, process, host
        self._identity = Identity(client)

    @contextlib.asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncGenerator[WireResponse]:
        """Send once."""
        await asyncio.sleep(0)
        link = self._network.link(self._host, resource_of(request.path))
        exchange = Exchange(self._network, link, self._process, self._identity, request, timeout)
        try:
            yield await exchange.begin()
        finally:
            exchange.leave()

    async def renew_credentials(self) -> bool:
        """There are none."""
        return False

    async def close(self) -> None:
        """Every exchange has been left by then."""


class Exchange:
    """One request and its answer. The client's half runs in its process, the other half in the server's."""

    def __init__(self, network: Network, link: Link, process: Process, identity: Identity, request: Request, timeout: Timeout) -> None:
        self.identity, self.request, self.timeout = identity, request, timeout
        self.inbox: deque[Message] = deque()
        self.handled_at = 0.0
        self._network, self._link, self._process, self._world = network, link, process, network.world
        self._ends_at = None if timeout.total is None else network.world.now + timeout.total
        self._news = asyncio.Event()
        self._left = False
        self._arrived = False
        self._up: Callable[[], None] | None = None
        self._down: deque[tuple[float, Message]] = deque()
        self._down_free_at = 0.0
        self._serving: asyncio.Task[None] | None = None
        link.exchanges.append(self)

    async def begin(self) -> WireResponse:
        """Connect, send, and wait for the head of the answer."""
        if self._link.cut == "refuse":
            await asyncio.sleep(self._link.travel_seconds())
            raise TransportError("connection refused")
        self._network.on_send(self.identity.client, self.request)
        self._schedule(self._link.travel_seconds(), self._arrive)
        head = await self.within(min(self.timeout.connect, self.timeout.read), self.next(), "answer")
        if isinstance(head, Head):
            return WireResponse(self, head)
        raise TransportError(head.why if isinstance(head, End) else "an answer without a head")

    async def next(self) -> Message:
        """The next message; bytes that came together are read together."""
        while not self.inbox:
            self._news.clear()
            await self._news.wait()
        message = self.inbox.popleft()
        if isinstance(message, bytes):
            parts = [message]
            while self.inbox and isinstance(self.inbox[0], bytes):
                parts.append(self.inbox.popleft())  # type: ignore[arg-type]  # it was just looked at
            return b"".join(parts)
        return message

    async def within(self, seconds: float, awaitable: Awaitable[T], what: str) -> T:
        """Await for at most `seconds` and what is left of the whole."""
        until = self._process.loop.time() + seconds
        try:
            async with asyncio.timeout_at(until if self._ends_at is None else min(until, self._ends_at)):
                return await awaitable
        except TimeoutError:
            raise TransportTimeout(f"no {what} within {seconds:g} s") from None

    def answered(self, status: int) -> None:
        """The client has read the answer (of a watch: its head)."""
        self._network.on_answer(self.identity.client, self.request, status, self.handled_at)

    def leave(self) -> None:
        """The client's side is closed."""
        if self._left:
            return
        self._left = True
        with contextlib.suppress(ValueError):
            self._link.exchanges.remove(self)
        if self._arrived:
            self._world.at(self._world.now + self._link.travel_seconds(), self._close_server)
        elif self._link.cut is not None:
            self._up = None  # it was held back, and the connection is closed before anybody reads it

    def reset(self) -> None:
        """The connection breaks, for both sides."""
        self._up = None
        self._down.clear()
        self._close_server()
        self._give(End(_RESET))

    def go_on(self) -> None:
        """The way is free again."""
        if self._up is not None:
            self._schedule(self._link.travel_seconds(), self._arrive)
        if self._down:
            self._world.at(self._world.now + self._link.travel_seconds(), self._deliver)

    def _schedule(self, seconds: float, arrive: Callable[[], None]) -> None:
        self._up = arrive
        self._world.at(self._world.now + seconds, self._pass_up)

    def _pass_up(self) -> None:
        if self._up is None or self._link.cut is not None:
            return
        arrive, self._up = self._up, None
        arrive()

    def _arrive(self) -> None:
        self._arrived = True
        self._network.server.loop.call_soon(self._start_serving)

    def _start_serving(self) -> None:
        """A request whose client has left meanwhile is begun all the same; what is not done at once ends with the connection."""
        self._serving = self._network.server.loop.create_task(self._serve())
        if self._left:
            self._world.at(self._world.now + self._link.travel_seconds(), self._close_server)

    async def _serve(self) -> None:
        try:
            answer = await self._network.api.handle(self._sent(), self.identity)
        except AnswerLost:
            self._send(End("the connection was closed before an answer came"))
            return
        self.handled_at = self._world.now
        self._send(Head(answer.status, answer.headers))
        if answer.stream is None:
            self._send(answer.body)
        else:
            await self._stream(answer.stream)
        self._send(End())

    async def _stream(self, stream: AsyncIterator[bytes]) -> None:
        try:
            async for line in stream:
                self._send(line)
        except StreamCut:
            self._send(End("the connection was reset while the body was read"))
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    def _sent(self) -> Request:
        headers = {"User-Agent": self.identity.user_agent, "Accept": "application/json", **self.request.headers}
        return Request(self.request.method, self.request.path, self.request.query, headers, self.request.body)

    def _send(self, message: Message) -> None:
        if self._left:
            return
        due = max(self._world.now + self._link.travel_seconds(), self._down_free_at)
        self._down_free_at = due
        self._down.append((due, message))
        self._world.at(due, self._deliver)

    def _deliver(self) -> None:
        if self._link.cut is not None or self._left:
            return
        while self._down and self._down[0][0] <= self._world.now:
            self._give(self._down.popleft()[1])

    def _give(self, message: Message) -> None:
        if not self._left and not self._process.killed:
            self._process.loop.call_soon(self._take, message)

    def _take(self, message: Message) -> None:
        self.inbox.append(message)
        self._news.set()

    def _close_server(self) -> None:
        if self._serving is not None:
            self._network.server.loop.call_soon(self._serving.cancel)


class WireResponse:
    """An answer whose head has arrived; see kube.transport.Response."""

    def __init__(self, exchange: Exchange, head: Head) -> None:
        self.status = head.status
        self.headers: Mapping[str, str] = Headers(head.headers)
        self._exchange = exchange
        if is_watch(exchange.request):
            exchange.answered(head.status)

    async def read(self) -> bytes:
        """The whole body."""
        body = b"".join([chunk async for chunk in self.chunks()])
        self._exchange.answered(self.status)
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        while True:
            message = await self._exchange.within(self._exchange.timeout.read, self._exchange.next(), "bytes")
            if isinstance(message, bytes):
                yield message
            elif isinstance(message, End) and message.why:
                raise TransportError(message.why)
            else:
                return
