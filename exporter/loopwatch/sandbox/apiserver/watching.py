"""Watches: the state now or the events since a resourceVersion, then every change, with bookmarks, until the time is up.

A watch keeps its own queue, filled by the collection as it records events; lines are encoded once for all watches that need no line of
their own. Bookmarks are as rare as the real server's: at most one a period and one two seconds before the end, and none while the
resource has seen nothing newer than where the watch began. A quiet watch is silent for minutes, and a client has to bear that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.clock import Clock
from loopwatch.sandbox.apiserver import statuses
from loopwatch.sandbox.apiserver.listing import ListOptions
from loopwatch.sandbox.apiserver.selectors import Selection
from loopwatch.sandbox.apiserver.served import ResourceType
from loopwatch.sandbox.apiserver.store import Collection, Event, Store
from loopwatch.sandbox.faults import StreamFaults, StreamState

MIN_TIMEOUT_SECONDS: Final = 1800.0
"""Without timeoutSeconds a watch ends after this to twice this, at random."""
BEFORE_END_SECONDS: Final = 2.0
INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}
LONGEST_QUEUE: Final = 100_000
"""A watcher that is this far behind is cut off, as the real server does much earlier."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class StreamCut(Exception):
    """The connection of a watch breaks here, without an end of the body."""


class Begin(NamedTuple):
    """Where a watch begins: the lines it starts with, and the revision after which events follow."""

    lines: list[bytes]
    revision: int
    ended: bool = False


class Timing(NamedTuple):
    """When a watch ends and how often it brings bookmarks (None: never), in seconds."""

    timeout_seconds: float
    bookmark_seconds: float | None


def begin(store: Store, kind_of: ResourceType, selection: Selection, options: ListOptions, *, bookmarks: bool, frozen: int | None) -> Begin:
    """Where a watch begins; a refusal (500) for a resourceVersion that is none, an ERROR line for one that is too old."""
    collection = store.collections[kind_of.resource]
    version = _parse_version(options.version)
    if options.initial_events:
        if not options.version:
            store.progress = store.revision
        revision = store.revision if frozen is None or not options.version else frozen
        prefix = f"/{selection.namespace}/" if selection.namespace else "/"
        lines = [collection.event_line("ADDED", stored) for stored in collection.at(revision, prefix, "") if selection.matches(stored)]
        if bookmarks:
            lines.append(bookmark_line(kind_of, revision, INITIAL_EVENTS_END))
        return Begin(lines, revision)
    if version == 0:
        return Begin([], store.revision)
    if version < collection.horizon:
        status = statuses.expired(f"too old resource version: {version} ({collection.horizon})").status()
        return Begin([_encode({"type": "ERROR", "object": status}) + b"\n"], version, ended=True)
    return Begin([], version)


def _parse_version(text: str) -> int:
    if not text:
        return 0
    if text.isascii() and text.isdigit():
        return int(text)
    raise statuses.internal(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')


def bookmark_line(kind_of: ResourceType, revision: int, annotations: dict[str, str] | None = None) -> bytes:
    """A BOOKMARK event."""
    meta: dict[str, Any] = {"resourceVersion": str(revision)} | ({"annotations": annotations} if annotations else {})
    body = {"kind": kind_of.resource.kind, "apiVersion": kind_of.resource.api_version, "metadata": meta}
    return _encode({"type": "BOOKMARK", "object": body | ({} if kind_of.custom else {"spec": {}})}) + b"\n"


class Watch:
    """One open watch: iterate over its lines, one an event; `aclose` it in any case, read to the end or not.

    It takes part from the moment it is made, so that events and faults reach it also while nobody reads.
    """

    def __init__(
        self, store: Store, kind_of: ResourceType, selection: Selection, start: Begin, clock: Clock, timing: Timing, faults: StreamFaults
    ) -> None:
        self._store = store
        self._kind_of = kind_of
        self._collection: Collection = store.collections[kind_of.resource]
        self._selection = selection
        self._start = start
        self._clock = clock
        self._faults = faults
        self._wake = asyncio.Event()
        self._queue: deque[tuple[int, bytes]] = deque((0, line) for line in start.lines)
        self._sent = 0
        self._half_sent = False
        self._ended = False
        self._bookmark_seconds = timing.bookmark_seconds
        self._deadline = clock.monotonic() + timing.timeout_seconds
        self._bookmark_at = self._next_bookmark()
        faults.table.on_change(self._note_faults)
        if not start.ended:
            for event in self._collection.events_after(start.revision):
                self._take(event)
            self._listeners().append(self._take)

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> bytes:
        """The next line; StreamCut where a fault breaks the connection."""
        while not self._ended:
            state = self._faults.state(self._sent)
            if state.cut is not None:
                self._stop_listening()
                if state.cut.mid_line and not self._half_sent:
                    self._half_sent = True
                    return self._half_a_line()
                raise StreamCut
            line = None if state.silent else self._faults.next_garbage() or self._next_line(state)
            if line is not None:
                self._sent += 1
                return line
            if not state.silent and (self._start.ended or self._clock.monotonic() >= self._deadline):
                break
            await self._wait(state)
        self._stop_listening()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Leave the rest unread."""
        self._ended = True
        self._stop_listening()

    def _stop_listening(self) -> None:
        self._faults.table.forget(self._note_faults)
        with contextlib.suppress(ValueError):
            self._listeners().remove(self._take)

    def _note_faults(self) -> None:
        """A fault hits an open connection also while nobody reads from it."""
        self._faults.state(self._sent)
        if self._faults.dead:
            self._stop_listening()
            self._queue.clear()
        self._wake.set()

    def _listeners(self) -> list[Any]:
        if self._selection.name:
            return self._collection.named_listeners.setdefault(self._selection.name, [])
        return self._collection.listeners

    def _take(self, event: Event) -> None:
        if event.revision <= self._start.revision:
            return
        line = self._line_of(event)
        if line is not None:
            self._queue.append((event.revision, line))
            self._ended = len(self._queue) > LONGEST_QUEUE
            self._wake.set()

    def _line_of(self, event: Event) -> bytes | None:
        """The event as this watch sees it: an object that enters its selection is ADDED, one that leaves it is DELETED."""
        if not self._selection.moving:
            return self._collection.line_of(event) if self._selection.matches(event.now) else None
        before = event.before
        was = before is not None and self._selection.matches(before)
        stays = event.type != "DELETED" and self._selection.matches(event.now)
        if stays:
            return self._collection.line_of(event) if was or event.type == "ADDED" else self._collection.event_line("ADDED", event.now)
        if not was or before is None:
            return None
        if event.type == "DELETED":
            return self._collection.line_of(event)
        meta = before.body["metadata"] | {"resourceVersion": str(event.revision)}
        left = before._replace(item=self._collection.item(before.body | {"metadata": meta}))
        return self._collection.event_line("DELETED", left)

    def _next_line(self, state: StreamState) -> bytes | None:
        if self._queue and (state.frozen is None or self._queue[0][0] <= state.frozen):
            return self._queue.popleft()[1]
        if self._start.ended or self._bookmark_at is None or self._clock.monotonic() < self._bookmark_at:
            return None
        self._bookmark_at = self._next_bookmark()
        revision = self._seen_revision()
        if state.frozen is not None:
            revision = min(revision, state.frozen)
        return bookmark_line(self._kind_of, revision) if state.bookmarks and revision > self._start.revision else None

    def _seen_revision(self) -> int:
        return max(self._collection.last_revision, self._store.progress)

    def _next_bookmark(self) -> float | None:
        if self._bookmark_seconds is None:
            return None
        now, before_end = self._clock.monotonic(), self._deadline - BEFORE_END_SECONDS
        regular = now + self._bookmark_seconds
        return before_end if now < before_end < regular else regular

    def _half_a_line(self) -> bytes:
        line = self._queue[0][1] if self._queue else bookmark_line(self._kind_of, self._seen_revision())
        return line[: len(line) // 2]

    async def _wait(self, state: StreamState) -> None:
        """Until there is something to look at again."""
        due = [moment for moment in (self._deadline, self._bookmark_at) if moment is not None]
        delay = None if state.silent else max(min(due) - self._clock.monotonic(), 0.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._wake.wait()
        self._wake.clear()
