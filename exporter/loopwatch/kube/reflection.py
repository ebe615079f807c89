"""What a reflector tells and is told: its times, its numbers, and the sink that holds the copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from loopwatch.kube.resources import ObjectKey

T_contra = TypeVar("T_contra", contravariant=True)

ERROR_KINDS: Final = (
    "bad_request",
    "conflict",
    "connection",
    "credentials",
    "forbidden",
    "gone",
    "other",
    "server",
    "stream",
    "throttled",
    "timeout",
    "unauthorized",
)
"""Every value of the label `kind` in loopwatch_reflector_errors_total. A resource that is not served (404) is a state, not an error."""


class Sink(Protocol[T_contra]):
    """Holds the copy. Every call is synchronous; `at` is `clock.monotonic()` when the bytes arrived."""

    def replaced(self, objects: Mapping[ObjectKey, T_contra], undecodable: frozenset[ObjectKey], at: float) -> None:
        """A complete list: these are all the objects there are. What is in neither argument is gone, also if no DELETED was seen."""
        ...

    def changed(self, key: ObjectKey, obj: T_contra, at: float) -> None:
        """An event ADDED or MODIFIED; the object may equal the one held."""
        ...

    def deleted(self, key: ObjectKey, at: float) -> None:
        """An event DELETED."""
        ...

    def undecodable(self, key: ObjectKey, at: float) -> None:
        """An event whose object is there but can't be decoded; what was held of it is out of date."""
        ...


@dataclass(frozen=True, slots=True)
class ReflectorTimes:
    """All in seconds. The read timeout must be longer than the minute between bookmarks of an API server."""

    watch_seconds: float = 300.0
    """How long a watch is asked for, give or take a quarter, so that many processes don't come back at once."""
    read_seconds: float = 90.0
    """How long an open watch may bring nothing before it counts as half-open: a new one is open at most this long after the cut."""
    first_backoff_seconds: float = 1.0
    cap_backoff_seconds: float = 30.0
    settle_seconds: float = 10.0
    """A watch that lived as long ends the back-off: the next failure begins again at `first_backoff_seconds`."""
    short_watch_seconds: float = 1.0
    """A watch that ended sooner is followed by the back-off, so that no server can make this process spin."""
    silent_seconds: float = 600.0
    """Watches that bring no byte for so long are doubted (a resourceVersion of the future is answered by silence): list again."""
    not_served_seconds: float = 60.0
    """How often a resource is looked for that this API server does not serve."""


@dataclass(slots=True)
class ReflectorStats:
    """Numbers of one reflector, written by it alone; read them at any time."""

    synced: bool = False
    """A complete list was handed to the sink once."""
    served: bool | None = None
    """None before the first answer that tells; False while the API server answers 404 for the whole resource."""
    objects: int = 0
    """Objects that are there and can be decoded."""
    undecodable_objects: int = 0
    lists_total: int = 0
    watches_total: int = 0
    errors_total: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ERROR_KINDS, 0))
    last_contact_at: float | None = None
    """Monotonic: the last byte received."""
    last_event_at: float | None = None
    """Monotonic: the last event ADDED, MODIFIED or DELETED, or complete list."""
    last_error: str = ""
    """What hinders it now, empty when nothing does."""
