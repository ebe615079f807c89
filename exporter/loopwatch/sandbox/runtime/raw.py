"""Listeners on a unix socket that are no gRPC server: what a wrong endpoint looks like to a client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from loopwatch.sandbox.runtime.behaviours import Closing, Garbage, Http1, SocketBehaviour

_HTTP1_ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno.\n"
_GARBAGE = bytes(range(256)) * 4


class RawServer:
    """Listens and treats each connection as `behaviour` says."""

    def __init__(self, behaviour: SocketBehaviour) -> None:
        self._behaviour = behaviour
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.BaseTransport] = set()

    async def start(self, socket_path: Path) -> None:
        """Bind `socket_path`, over a dead server's socket if there is one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Connection(self._behaviour, self._open), socket_path)

    def stop(self) -> None:
        """Stop listening and cut every connection; the path is left as it is."""
        if self._server:
            self._server.close()
        for transport in tuple(self._open):
            transport.close()


class _Connection(asyncio.Protocol):
    def __init__(self, behaviour: SocketBehaviour, connections: set[asyncio.BaseTransport]) -> None:
        self._behaviour = behaviour
        self._connections = connections
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast("asyncio.Transport", transport)  # a stream's; uvloop's are no subclass of it
        self._connections.add(self._transport)
        if isinstance(self._behaviour, Closing):
            self._transport.close()
        elif isinstance(self._behaviour, Garbage):
            self._transport.write(_GARBAGE)

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - what the client says makes no difference
        """The client has said something."""
        if self._transport and isinstance(self._behaviour, Http1):
            self._transport.write(_HTTP1_ANSWER)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why makes no difference either
        """The client has gone, or was sent away."""
        if self._transport:
            self._connections.discard(self._transport)
