"""A TCP proxy on loopback that fails as networks do: without a word, with a reset, by being slow, or by not being there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

CHUNK_BYTES = 65_536


class FreezingProxy:
    """Hands bytes on to one address. `refuses` and `delay_seconds` may be set at any time and hold until they are set back.

    While it refuses, new connections are reset; `cut` does so to those that are open. `freeze` makes those silent for good, both ways,
    without closing them. Each chunk waits `delay_seconds`.
    """

    def __init__(self, host: str, port: int) -> None:
        self.refuses = False
        self.delay_seconds = 0.0
        self._host, self._port = host, port
        self._open: dict[asyncio.Task[None], asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen on a free port while the context is open; yields the port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def freeze(self) -> None:
        """From now on nothing passes on the connections that are open; new ones work."""
        for frozen in self._open.values():
            frozen.set()

    def cut(self) -> None:
        """End every connection that is open; new ones work."""
        for task in tuple(self._tasks):
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        frozen = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._connect(reader, writer, frozen))
        self._tasks.add(task)
        self._open[task] = frozen
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._open.pop(task, None)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frozen: asyncio.Event) -> None:
        try:
            there, back = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._pass_on(reader, back, frozen))
                ways.create_task(self._pass_on(there, writer, frozen))
        finally:
            writer.transport.abort()
            back.transport.abort()

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, frozen: asyncio.Event) -> None:
        """One way of a connection, to its end; what a frozen one still reads is thrown away."""
        with contextlib.suppress(OSError):
            while chunk := await source.read(CHUNK_BYTES):
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                if not frozen.is_set():
                    target.write(chunk)
                    await target.drain()
            if not frozen.is_set():
                target.write_eof()
