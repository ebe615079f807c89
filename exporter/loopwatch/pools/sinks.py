"""A sink that hands everything on to another, and says so afterwards: how a sidecar's loops hear of each event once it is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from loopwatch.kube.reflection import Sink
from loopwatch.kube.resources import ObjectKey

T = TypeVar("T")


class Announce(Protocol):
    """What is called after each event; `listed` where it was a complete list."""

    def __call__(self, *, listed: bool) -> None:
        """Hear of it."""
        ...


class AnnouncingSink(Generic[T]):
    """Passes a reflector's calls to `sink`, then calls `announce`."""

    def __init__(self, sink: Sink[T], announce: Announce) -> None:
        self._sink = sink
        self._announce = announce

    def replaced(self, objects: Mapping[ObjectKey, T], undecodable: frozenset[ObjectKey], at: float) -> None:
        """A complete list."""
        self._sink.replaced(objects, undecodable, at)
        self._announce(listed=True)

    def changed(self, key: ObjectKey, obj: T, at: float) -> None:
        """ADDED or MODIFIED."""
        self._sink.changed(key, obj, at)
        self._announce(listed=False)

    def deleted(self, key: ObjectKey, at: float) -> None:
        """DELETED."""
        self._sink.deleted(key, at)
        self._announce(listed=False)

    def undecodable(self, key: ObjectKey, at: float) -> None:
        """An event whose object can't be decoded."""
        self._sink.undecodable(key, at)
        self._announce(listed=False)
