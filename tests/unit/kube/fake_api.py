"""One resource of an API server, in memory and behind the Transport seam, with faults on demand.

Just enough for the reader, the writer and the reflector: versions, a log that can be compacted, pages, watches with bookmarks and a
server-side timeout. What it answers is written down beside it as it was seen of the real one (410, 404 for a resource not served, silence
for a version of the future).
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from loopwatch.kube.resources import ObjectKey
from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout

WATCH = "watch"
LIST = "list"


class Headers(dict[str, str]):
    """Look-ups ignore case."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        super().__init__({name.lower(): value for name, value in (given or {}).items()})

    def get(self, key: str, default: Any = None) -> Any:
        """The header, in whatever case it is asked for."""
        return super().get(key.lower(), default)


@dataclass
class Fault:
    """What the next matching request meets instead of its answer."""

    on: str = ""
    status: int = 0
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Exception | None = None
    hang: bool = False
    lines: tuple[bytes, ...] = ()
    """For a watch: these bytes instead of events, then the end."""
    then: str = "end"
    """How the stream of `lines` goes on: end, hang or reset."""


class FakeResponse:
    """A Response: a body, or chunks."""

    def __init__(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, chunks: AsyncIterator[bytes] | None = None
    ) -> None:
        self.status = status
        self.headers: Mapping[str, str] = Headers(headers)
        self._body = body
        self._chunks = chunks

    async def read(self) -> bytes:
        """The body."""
        return self._body

    def chunks(self) -> AsyncIterator[bytes]:
        """The chunks, or the body as one."""
        return self._chunks or _once(self._body)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


def status_body(code: int, reason: str, message: str = "", **details: Any) -> bytes:
    """A metav1.Status."""
    return json.dumps(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message, "details": details}
    ).encode()


class FakeApi:
    """The server and its Transport at once."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[ObjectKey, dict[str, Any]] = {}
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self.compacted = 0
        self.requests: list[Request] = []
        self.timeouts: list[Timeout] = []
        self.faults: deque[Fault] = deque()
        self.renewals = 0
        self.renewal_error: Exception | None = None
        self.bookmark_seconds: float | None = 60.0
        self.chunked: Callable[[bytes], list[bytes]] = lambda line: [line]
        self.before_page: Callable[[int], None] = lambda _: None
        self.silent = False
        self._ends: set[asyncio.Future[str]] = set()
        self._news = asyncio.Event()
        self._snapshots: dict[str, tuple[int, list[dict[str, Any]]]] = {}

    # -- the world

    def put(self, name: str, namespace: str = "", **content: Any) -> None:
        """Create or change an object."""
        key = ObjectKey(namespace, name)
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self._record(kind, key, content)

    def delete(self, name: str, namespace: str = "") -> None:
        """Delete it, if it is there."""
        key = ObjectKey(namespace, name)
        if key in self.objects:
            self._record("DELETED", key, {k: v for k, v in self.objects[key].items() if k != "metadata"})

    def compact(self) -> None:
        """Forget the log: older versions and continue tokens are 410 from now on."""
        self.compacted = self.version
        self.log.clear()
        self._snapshots.clear()

    def end_watches(self, how: str = "end") -> None:
        """End every open watch: cleanly, or by `reset`."""
        for end in list(self._ends):
            if not end.done():
                end.set_result(how)

    def verbs(self) -> list[str]:
        """What was asked so far: list, watch, or the method."""
        return [_verb(request) for request in self.requests]

    def _record(self, kind: str, key: ObjectKey, content: dict[str, Any]) -> None:
        self.version += 1
        metadata = {"name": key.name, "resourceVersion": str(self.version)} | ({"namespace": key.namespace} if key.namespace else {})
        obj = {"metadata": metadata, **content}
        if kind == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = obj
        self.log.append((self.version, kind, obj))
        self._news.set()
        self._news = asyncio.Event()

    # -- the Transport

    @asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncIterator[FakeResponse]:
        """Note the request and answer it."""
        self.requests.append(request)
        self.timeouts.append(timeout)
        yield await self._answer(request, timeout)

    async def renew_credentials(self) -> bool:
        """Count it."""
        self.renewals += 1
        if self.renewal_error is not None:
            raise self.renewal_error
        return True

    async def close(self) -> None:
        """Cut every watch."""
        self.end_watches("reset")

    async def _answer(self, request: Request, timeout: Timeout) -> FakeResponse:
        fault = self._take_fault(request)
        if fault is not None and fault.hang:
            await asyncio.sleep(timeout.total or timeout.read)
            raise TransportTimeout("no answer")
        if fault is not None and fault.error is not None:
            raise fault.error
        if fault is not None and fault.status:
            return FakeResponse(fault.status, fault.body, fault.headers)
        if fault is not None:
            return FakeResponse(200, chunks=self._scripted(fault, timeout))
        query = dict(request.query)
        if query.get("watch"):
            return self._watch(query, timeout)
        if request.method == "GET":
            return self._list(query)
        return FakeResponse(200, request.body or b"")

    def _take_fault(self, request: Request) -> Fault | None:
        if self.faults and self.faults[0].on in {"", _verb(request)}:
            return self.faults.popleft()
        return None

    def _list(self, query: dict[str, str]) -> FakeResponse:
        token = query.get("continue", "")
        if token:
            snapshot_name, offset = token.split(":")
            if snapshot_name not in self._snapshots:
                return FakeResponse(410, status_body(410, "Expired", "The provided continue parameter is too old"))
            version, items = self._snapshots[snapshot_name]
        else:
            snapshot_name, offset = str(len(self._snapshots)), "0"
            version, items = self.version, list(self.objects.values())
            self._snapshots[snapshot_name] = (version, items)
        limit = int(query.get("limit", "0")) or len(items) or 1
        end = int(offset) + limit
        page = items[int(offset) : end]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if end < len(items):
            metadata |= {"continue": f"{snapshot_name}:{end}", "remainingItemCount": len(items) - end}
        self.before_page(end)
        return FakeResponse(200, json.dumps({"kind": "List", "metadata": metadata, "items": page}).encode())

    def _watch(self, query: dict[str, str], timeout: Timeout) -> FakeResponse:
        version = int(query["resourceVersion"])
        if version < self.compacted:
            return FakeResponse(410, status_body(410, "Expired", "too old resource version"))
        return FakeResponse(200, chunks=self._events(version, float(query["timeoutSeconds"]), timeout.read))

    async def _events(self, version: int, seconds: float, read_seconds: float) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end: asyncio.Future[str] = loop.create_future()
        self._ends.add(end)
        deadline = loop.time() + seconds
        read_deadline = loop.time() + read_seconds
        bookmark_at = loop.time() + self.bookmark_seconds if self.bookmark_seconds else None
        try:
            while True:
                news = self._news
                if version < self.compacted and not self.silent:
                    gone = {"type": "ERROR", "object": json.loads(status_body(410, "Expired", "too old resource version"))}
                    yield json.dumps(gone).encode() + b"\n"
                    return
                for event_version, kind, obj in [] if self.silent else self.log:
                    if event_version > version:
                        version = event_version
                        read_deadline = loop.time() + read_seconds
                        for chunk in self.chunked(json.dumps({"type": kind, "object": obj}).encode() + b"\n"):
                            yield chunk
                if end.done() and end.result() == "reset":
                    raise TransportError("connection reset")
                if end.done() or loop.time() >= deadline:
                    return
                if loop.time() >= read_deadline:
                    raise TransportTimeout("no bytes")
                if bookmark_at is not None and loop.time() >= bookmark_at and not self.silent:
                    bookmark_at = loop.time() + (self.bookmark_seconds or 0)
                    read_deadline = loop.time() + read_seconds
                    version = max(version, self.version)
                    yield json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}).encode() + b"\n"
                until = min(moment for moment in (deadline, read_deadline, bookmark_at) if moment is not None)
                waiting: asyncio.Future[Any] = asyncio.ensure_future(news.wait())
                both: set[asyncio.Future[Any]] = {waiting, end}
                await asyncio.wait(both, timeout=max(until - loop.time(), 0.001), return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        finally:
            self._ends.discard(end)

    async def _scripted(self, fault: Fault, timeout: Timeout) -> AsyncIterator[bytes]:
        for line in fault.lines:
            yield line
        if fault.then == "hang":
            await asyncio.sleep(timeout.read)
            raise TransportTimeout("no bytes")
        if fault.then == "reset":
            raise TransportError("connection reset")


def _verb(request: Request) -> str:
    if request.method != "GET":
        return request.method
    return WATCH if ("watch", "1") in request.query else LIST


@dataclass
class Mirror:
    """A sink that keeps what it is told."""

    objects: dict[ObjectKey, Any] = field(default_factory=dict)
    broken: set[ObjectKey] = field(default_factory=set)
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def replaced(self, objects: Mapping[ObjectKey, Any], undecodable: frozenset[ObjectKey], at: float) -> None:
        """Hold exactly these."""
        self.calls.append(("replaced", len(objects), at))
        self.objects, self.broken = dict(objects), set(undecodable)

    def changed(self, key: ObjectKey, obj: Any, at: float) -> None:
        """Hold it."""
        self.calls.append(("changed", key, at))
        self.objects[key] = obj
        self.broken.discard(key)

    def deleted(self, key: ObjectKey, at: float) -> None:
        """Hold it no longer."""
        self.calls.append(("deleted", key, at))
        self.objects.pop(key, None)
        self.broken.discard(key)

    def undecodable(self, key: ObjectKey, at: float) -> None:
        """It is there, and not to be held."""
        self.calls.append(("undecodable", key, at))
        self.objects.pop(key, None)
        self.broken.add(key)
