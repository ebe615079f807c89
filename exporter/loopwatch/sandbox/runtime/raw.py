"""Listeners on a unix socket that are no gRPC server: what a wrong endpoint looks like to a client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from loopwatch.clock import Clock
from loopwatch.sandbox.runtime.behaviours import Closing, Garbage, Http1, SocketBehaviour

_HTTP1_ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno.\n"
_GARBAGE = bytes(range(256)) * 4
_ACCEPT_TURNS = 5
"""Turns of the event loop after which what was begun (accepting a connection, closing one) is done."""


class RawServer:
    """Listens and treats each connection as `behaviour` says."""

    def __init__(self, behaviour: SocketBehaviour, clock: Clock) -> None:
        self.behaviour = behaviour
        self.ended = False
        self.connections: set[asyncio.Transport] = set()
        self._clock = clock
        self._server: asyncio.Server | None = None

    async def start(self, socket_path: Path) -> None:
        """Bind `socket_path`, over a dead server's socket if there is one."""
        self._server = await asyncio.get_running_loop().create_unix_server(lambda: _Connection(self), socket_path)

    async def stop(self) -> None:
        """Stop listening and cut every connection; the path is left as it is."""
        self.ended = True
        await self._turns()  # closing under a connection that is just being accepted would leak it
        if self._server:
            self._server.close()
        for transport in tuple(self.connections):
            transport.abort()
        await self._turns()

    async def _turns(self) -> None:
        for _ in range(_ACCEPT_TURNS):
            await self._clock.sleep(0)


class _Connection(asyncio.Protocol):
    def __init__(self, server: RawServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast("asyncio.Transport", transport)  # a stream's; uvloop's are no subclass of it
        self._server.connections.add(self._transport)
        if self._server.ended or isinstance(self._server.behaviour, Closing):
            self._transport.abort()
        elif isinstance(self._server.behaviour, Garbage):
            self._transport.write(_GARBAGE)

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - what the client says makes no difference
        """The client has said something."""
        if self._transport and isinstance(self._server.behaviour, Http1):
            self._transport.write(_HTTP1_ANSWER)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why makes no difference either
        """The client has gone, or was sent away."""
        if self._transport:
            self._server.connections.discard(self._transport)
