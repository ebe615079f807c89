"""From bytes to the sink: decodes lists and events, and keeps a broken object from costing more than itself.

The hot path of the process. An event is decoded in three cheap passes of msgspec: its envelope, the object's name and version, the
object as the caller wants it; what is not named is skipped unread. An object that the caller's decoder refuses is named by the second
pass, told once, and remembered until it can be decoded or is gone. It refuses to guess: a line that is no event ends the watch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
import structlog

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError, Call, StreamError
from loopwatch.kube.reflection import ReflectorStats, Sink
from loopwatch.kube.resources import ObjectKey
from loopwatch.text import clean_message

T = TypeVar("T")
Decode = Callable[[msgspec.Raw], T]

BATCH: Final = 250
"""Objects of a list decoded between two turns of the event loop: some milliseconds, where a page of 500 fat objects may take 50."""

_UNDECODABLE: Final = (ValueError, RecursionError)
"""What a decoder raises: msgspec.DecodeError is a ValueError; an object nested a thousand deep ends in a RecursionError."""

log: Any = structlog.get_logger("loopwatch.kube")


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_event: Final = msgspec.json.Decoder(_Event).decode
_decode_head: Final = msgspec.json.Decoder(_Head).decode


class Listing(NamedTuple, Generic[T]):
    """What the pages of one list brought so far."""

    objects: dict[ObjectKey, T]
    undecodable: dict[ObjectKey, str]
    nameless: list[str]


class Delivery(Generic[T]):
    """Feeds one sink; `place` is the resourceVersion to watch from, empty where a list must come first."""

    def __init__(self, sink: Sink[T], decode: Decode[T], call: Call, stats: ReflectorStats, clock: Clock) -> None:
        self._sink = sink
        self._decode = decode
        self._call = call
        self._stats = stats
        self._clock = clock
        self._decodable: set[ObjectKey] = set()
        self._undecodable: set[ObjectKey] = set()
        self._told: set[ObjectKey] = set()
        self._nameless = 0
        self.place = ""

    async def add_page(self, listing: Listing[T], items: list[msgspec.Raw]) -> None:
        """Decode a page into `listing`, letting the event loop turn between batches."""
        for start in range(0, len(items), BATCH):
            for item in items[start : start + BATCH]:
                self._add(listing, item)
            await self._clock.sleep(0)

    def replace(self, listing: Listing[T], resource_version: str, at: float) -> None:
        """The list is complete: hand it over, and watch from its version."""
        self._decodable = set(listing.objects)
        self._undecodable = set(listing.undecodable)
        self._nameless = len(listing.nameless)
        self._told &= self._decodable | self._undecodable
        for key, why in listing.undecodable.items():
            self._tell(key, why)
        for why in listing.nameless:
            log.warning("an object has no readable name and is left out", call=str(self._call), why=why)
        self._count(at)
        self._sink.replaced(listing.objects, frozenset(listing.undecodable), at)
        self.place = resource_version

    def deliver(self, lines: list[bytes], at: float) -> None:
        """Hand over the events of one chunk. Raises ApiError for an ERROR event, StreamError for a line that is no event."""
        touched = False
        for line in lines:
            try:
                event = _decode_event(line)
                kind = event.type
                meta = _NO_META if kind == "ERROR" else _decode_head(event.object).metadata
            except _UNDECODABLE as error:
                raise StreamError(
                    f"{self._call}: a line of {len(line)} bytes is no watch event: {clean_message(str(error), 200)}"
                ) from error
            if kind == "BOOKMARK":
                self.place = meta.resource_version
                continue
            if kind == "ERROR":
                raise ApiError.from_event(event.object, call=self._call)
            self._deliver_one(kind, ObjectKey(meta.namespace, meta.name), event.object, at)
            self.place = meta.resource_version
            touched = True
        if touched:
            self._count(at)

    def _deliver_one(self, kind: str, key: ObjectKey, raw: msgspec.Raw, at: float) -> None:
        if not key.name:
            raise StreamError(f"{self._call}: an event {clean_message(kind, 32)} names no object")
        if kind in {"ADDED", "MODIFIED"}:
            try:
                obj = self._decode(raw)
            except _UNDECODABLE as error:
                self._decodable.discard(key)
                self._undecodable.add(key)
                self._tell(key, str(error))
                self._sink.undecodable(key, at)
                return
            self._undecodable.discard(key)
            self._decodable.add(key)
            self._sink.changed(key, obj, at)
        elif kind == "DELETED":
            for keys in (self._decodable, self._undecodable, self._told):
                keys.discard(key)
            self._sink.deleted(key, at)
        else:
            raise StreamError(f"{self._call}: event type {clean_message(kind, 32)!r} is none of ADDED, MODIFIED, DELETED, BOOKMARK, ERROR")

    def _add(self, listing: Listing[T], item: msgspec.Raw) -> None:
        try:
            meta = _decode_head(item).metadata
        except _UNDECODABLE as error:
            listing.nameless.append(clean_message(str(error), 200))
            return
        if not meta.name:
            listing.nameless.append("metadata.name is empty")
            return
        key = ObjectKey(meta.namespace, meta.name)
        try:
            listing.objects[key] = self._decode(item)
        except _UNDECODABLE as error:
            listing.undecodable[key] = str(error)

    def _tell(self, key: ObjectKey, why: str) -> None:
        """Once for each object, until it is gone."""
        if key not in self._told:
            self._told.add(key)
            name = "/".join(part for part in key if part)
            log.warning("an object can't be decoded", resource=self._call.what, name=name, why=clean_message(why, 200))

    def _count(self, at: float) -> None:
        self._stats.objects = len(self._decodable)
        self._stats.undecodable_objects = len(self._undecodable) + self._nameless
        self._stats.last_event_at = at


_NO_META: Final = _Meta()
