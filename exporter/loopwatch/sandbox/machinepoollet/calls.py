"""The stand-in's own few requests, straight on a Transport, and the gate that makes it stand still as SIGSTOP would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from loopwatch.clock import Clock
from loopwatch.kube.transport import Request, Timeout, Transport
from loopwatch.sandbox.machinepoollet.documents import Document

USER_AGENT = "machinepoollet/v0.0.0"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_DEAD_CONNECTION_SECONDS = 45.0
"""client-go pings a silent connection after 30 s and gives it up 15 s later; there is no other timeout."""
_SILENT_WATCH_SECONDS = 90.0
_CALL = Timeout(connect=_DEAD_CONNECTION_SECONDS, read=_DEAD_CONNECTION_SECONDS, total=None)
_WATCH = Timeout(connect=_DEAD_CONNECTION_SECONDS, read=_SILENT_WATCH_SECONDS, total=None)

Query = tuple[tuple[str, str], ...]


class CallRefused(Exception):
    """An answer that is no success; the text is the API server's message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Gate:
    """Open while the process runs; closed, everything that comes to it waits."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    def close(self) -> None:
        """SIGSTOP."""
        self._open.clear()

    def open(self) -> None:
        """SIGCONT."""
        self._open.set()

    async def passed(self) -> None:
        """Go on, as soon as the process runs."""
        await self._open.wait()


class Calls:
    """JSON in and out."""

    def __init__(self, transport: Transport, gate: Gate) -> None:
        self._transport = transport
        self._gate = gate

    async def send(
        self, method: str, path: str, body: Document | None = None, content_type: str = "application/json", query: Query = ()
    ) -> Document:
        """The decoded body of a 2xx answer; CallRefused for others, TransportError for none."""
        headers = {"Accept": "application/json", "User-Agent": USER_AGENT}
        if body is not None:
            headers["Content-Type"] = content_type
        request = Request(method, path, query, headers, None if body is None else json.dumps(body).encode())
        await self._gate.passed()
        async with self._transport.send(request, _CALL) as response:
            answer = await response.read()
            status = response.status
        await self._gate.passed()
        if not 200 <= status < 300:
            raise CallRefused(status, _message(status, answer))
        document: Document = json.loads(answer)
        return document

    async def watch(self, path: str, query: Query) -> AsyncIterator[Document]:
        """The decoded events of a watch until the server ends it; CallRefused where it is refused, TransportError where it breaks."""
        request = Request("GET", path, query, {"Accept": "application/json", "User-Agent": USER_AGENT})
        await self._gate.passed()
        async with self._transport.send(request, _WATCH) as response:
            if response.status != 200:
                raise CallRefused(response.status, _message(response.status, await response.read()))
            rest = b""
            async for chunk in response.chunks():
                await self._gate.passed()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)


@dataclass(frozen=True, slots=True)
class Process:
    """What every part of the program shares: its name for the pool, its requests, its time, its gate and its log."""

    pool_name: str
    calls: Calls
    clock: Clock
    gate: Gate
    log: Callable[[str], None]


def _message(status: int, answer: bytes) -> str:
    try:
        message = json.loads(answer)["message"]
    except (ValueError, KeyError, TypeError):
        return f"the server answered with status {status}"
    return str(message)
