"""A TCP proxy on loopback that can freeze what passes through it: a network that fails without saying so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

CHUNK_BYTES = 65_536


class FreezingProxy:
    """Hands bytes on to one address. `freeze` makes every connection that is open silent for good, both ways, without closing it."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._open: set[asyncio.Event] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen on a free port while the context is open; yields the port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def freeze(self) -> None:
        """From now on nothing passes on the connections that are open; new ones work."""
        for frozen in self._open:
            frozen.set()
        self._open.clear()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frozen = asyncio.Event()
        self._open.add(frozen)
        there, back = await asyncio.open_connection(self._host, self._port)
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(_pass_on(reader, back, frozen))
                ways.create_task(_pass_on(there, writer, frozen))
        finally:
            self._open.discard(frozen)
            writer.close()
            back.close()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, frozen: asyncio.Event) -> None:
    """One way of a connection, to its end; what a frozen one still reads is thrown away."""
    with contextlib.suppress(OSError):
        while chunk := await source.read(CHUNK_BYTES):
            if not frozen.is_set():
                target.write(chunk)
                await target.drain()
        if not frozen.is_set():
            target.write_eof()
