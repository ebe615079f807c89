"""What the API server keeps: objects with one revision counter for all, as etcd has, and each resource's recent events.

Objects are immutable once stored: a write puts a new one. Bytes are encoded once, for lists, and once an event, for every watch. Old
revisions are rebuilt from the events, so a paginated list is consistent for as long as the events after it are kept; `compact` and a
bounded history take them away, and then the answer is 410, as in a cluster.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.kube.resources import ObjectKey, Resource
from loopwatch.sandbox.apiserver.managed_fields import Ownership

_AFTER_SLASH: Final = chr(ord("/") + 1)
FIRST_REVISION: Final = 200
"""As in a cluster that has just started: revision 1 is long too old for a watch."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class Stored(NamedTuple):
    """An object at one revision; `item` is its JSON as a list shows it."""

    key: ObjectKey
    revision: int
    body: dict[str, Any]
    owners: tuple[Ownership, ...]
    item: bytes


@dataclass(slots=True)
class Event:
    """One change: `now` is what a watch shows (for DELETED the last state, at the revision of the deletion)."""

    revision: int
    type: str
    now: Stored
    before: Stored | None
    line: bytes | None = None
    """The event as every watch without a selector sends it: made by `Collection.line_of` for the first that asks."""


class Collection:
    """The objects of one resource, and its events since `horizon`."""

    def __init__(self, resource: Resource, *, custom: bool, history_limit: int) -> None:
        self.resource = resource
        self.objects: dict[str, Stored] = {}
        self.events: list[Event] = []
        self.horizon = FIRST_REVISION
        self.listeners: list[Callable[[Event], None]] = []
        self.named_listeners: dict[str, list[Callable[[Event], None]]] = {}
        self._paths: list[str] = []
        self._history_limit = history_limit
        self._prefix = b"" if custom else f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()

    @property
    def last_revision(self) -> int:
        """The revision of the newest event, or where the history begins."""
        return self.events[-1].revision if self.events else self.horizon

    def item(self, body: dict[str, Any]) -> bytes:
        """An object as a list shows it: a built-in list's items carry no kind and apiVersion."""
        if self._prefix:
            body = {key: value for key, value in body.items() if key not in {"kind", "apiVersion"}}
        return _encode(body)

    def whole(self, stored: Stored) -> bytes:
        """An object as a GET shows it."""
        return self._prefix + stored.item[1:] if self._prefix else stored.item

    def event_line(self, event_type: str, stored: Stored) -> bytes:
        """One line of a watch."""
        return b'{"type":"' + event_type.encode() + b'","object":' + self.whole(stored) + b"}\n"

    def line_of(self, event: Event) -> bytes:
        """The line of an event, made once for all watches."""
        if event.line is None:
            event.line = self.event_line(event.type, event.now)
        return event.line

    def record(self, event_type: str, now: Stored, before: Stored | None) -> None:
        """Put or take an object and tell whoever watches."""
        path = path_of(now.key)
        if event_type == "DELETED":
            del self.objects[path]
            del self._paths[bisect.bisect_left(self._paths, path)]
        else:
            if before is None:
                bisect.insort(self._paths, path)
            self.objects[path] = now
        event = Event(now.revision, event_type, now, before)
        self.events.append(event)
        if len(self.events) > 2 * self._history_limit:
            self.forget_before(self.events[-self._history_limit].revision - 1)
        for listener in (*self.listeners, *self.named_listeners.get(now.key.name, ())):
            listener(event)

    def forget_before(self, revision: int) -> None:
        """Drop the events up to and with `revision`."""
        if revision > self.horizon:
            del self.events[: bisect.bisect_right(self.events, revision, key=_revision_of)]
            self.horizon = revision

    def events_after(self, revision: int) -> list[Event]:
        """The events later than `revision`, which must not lie before the horizon."""
        return self.events[bisect.bisect_right(self.events, revision, key=_revision_of) :]

    def at(self, revision: int, prefix: str, start: str) -> list[Stored]:
        """The objects as they were at `revision`, in order of their paths, from `start` on and within `prefix`."""
        undone = self._undone(revision)
        paths = self._paths
        if any(stored is not None for stored in undone.values()):
            paths = sorted({*paths, *(path for path, stored in undone.items() if stored is not None)})
        first, last = bisect.bisect_left(paths, max(start, prefix)), bisect.bisect_left(paths, prefix[:-1] + _AFTER_SLASH)
        within = paths[first:last]
        if not undone:
            return [self.objects[path] for path in within]
        found = (undone[path] if path in undone else self.objects[path] for path in within)
        return [stored for stored in found if stored is not None]

    def at_path(self, revision: int, path: str) -> Stored | None:
        """One object as it was at `revision`."""
        undone = self._undone(revision)
        return undone[path] if path in undone else self.objects.get(path)

    def _undone(self, revision: int) -> dict[str, Stored | None]:
        """What the objects that changed after `revision` were at it; None for those that were not there."""
        undone: dict[str, Stored | None] = {}
        for event in self.events_after(revision):
            undone.setdefault(path_of(event.now.key), event.before)
        return undone


class Store:
    """All collections and their revision counter."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self.compacted = FIRST_REVISION
        self.progress = FIRST_REVISION
        """The revision of the last consistent read: the real server asks etcd for progress then, and bookmarks may name it."""
        self.collections: dict[Resource, Collection] = {}

    def next_revision(self) -> int:
        """The revision of a write that is about to be recorded."""
        self.revision += 1
        return self.revision

    def compact(self, revision: int | None = None) -> None:
        """Forget every revision before `revision` (default: the current one): watches and lists from older ones answer 410."""
        revision = self.revision if revision is None else min(revision, self.revision)
        self.compacted = max(self.compacted, revision)
        for collection in self.collections.values():
            collection.forget_before(revision)


def path_of(key: ObjectKey) -> str:
    """`/namespace/name` or `/name`: the order of lists is the order of these."""
    return f"/{key.namespace}/{key.name}" if key.namespace else f"/{key.name}"


def _revision_of(event: Event) -> int:
    return event.revision
