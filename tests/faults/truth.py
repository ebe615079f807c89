"""What the API server has accepted, as an observer inside it knows: of each pool its objects, and every moment at which it made progress.

Progress is defined here once more, from upstream's words and not from the product's code: renewTime differs as an instant, or comes, or
goes; or Ready differs in presence, status or observedGeneration, but for a change to Unknown with reason MachinePoolStatusUnknown.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

from loopwatch.kube.resources import LEASES

Document = Mapping[str, Any]
MARKED = ("Unknown", "MachinePoolStatusUnknown")


class Ready(NamedTuple):
    """What of a Ready condition counts."""

    status: str
    reason: str
    observed_generation: int


class Write(NamedTuple):
    """One accepted write; `by` is the client, empty for an administrator's hands. A body is None where there is no object."""

    at: float
    by: str
    resource: str
    name: str
    before: Document | None
    after: Document | None


class PoolTruth:
    """One pool. Progress counts from its creation; a new pool of the same name begins anew."""

    def __init__(self) -> None:
        self.pool: Document | None = None
        self.lease: Document | None = None
        self.lease_progress: list[float] = []
        self.ready_progress: list[float] = []
        self.renew_times: list[tuple[float, object]] = []
        self.unknown_since: float | None = None
        self.readable_since = 0.0
        self._renewed: object = None

    @property
    def progress_at(self) -> float:
        """The last of either."""
        return max(self.lease_progress[-1], self.ready_progress[-1])

    @property
    def last_progress(self) -> tuple[float, ...]:
        """The last of each; empty for a pool that never was."""
        return (*self.lease_progress[-1:], *self.ready_progress[-1:])

    def renew_time_at(self, at: float) -> object:
        """The Lease's renewTime as an instant, as it was then; None where there was none."""
        return next((instant for since, instant in reversed(self.renew_times) if since <= at), None)

    @property
    def reported(self) -> bool:
        """It has a Lease or a Ready condition."""
        return self.lease is not None or ready_of(self.pool) is not None

    @property
    def readable(self) -> bool:
        """Its objects have the types that they should have."""
        generation = self.pool["metadata"].get("generation", 0) if self.pool else 0
        renew_time = self.lease["spec"].get("renewTime") if self.lease else None
        return isinstance(generation, int) and (renew_time is None or isinstance(renew_time, str))

    def take(self, write: Write) -> None:
        """One more write. A Lease that can't be read shows no progress; the one after it is compared with the last that could."""
        if not self.readable:
            self.readable_since = write.at
        if write.resource == LEASES.plural:
            self._take_lease(write)
        else:
            self._take_pool(write)

    def _take_lease(self, write: Write) -> None:
        self.lease = write.after
        renewed = None if write.after is None else instant((write.after.get("spec") or {}).get("renewTime"))
        if renewed != self._renewed and not isinstance(renewed, int):
            self._renewed = renewed
            self.renew_times.append((write.at, renewed))
            if self.pool is not None:
                self.lease_progress.append(write.at)

    def _take_pool(self, write: Write) -> None:
        before, self.pool = self.pool, write.after
        if self.pool is None or before is None or uid(before) != uid(self.pool):
            self.lease_progress, self.ready_progress, self.unknown_since = [write.at], [write.at], None
        elif ready_moved(ready_of(before), ready_of(self.pool)):
            self.ready_progress.append(write.at)
        ready = ready_of(self.pool)
        if ready is None or ready.status != "Unknown":
            self.unknown_since = None
        elif self.unknown_since is None:
            self.unknown_since = write.at


class Truth:
    """All pools of an API server."""

    def __init__(self) -> None:
        self.pools: dict[str, PoolTruth] = {}

    def pool(self, name: str) -> PoolTruth:
        """One pool; empty where it never was."""
        return self.pools.setdefault(name, PoolTruth())

    def take(self, write: Write) -> PoolTruth:
        """One more accepted write; the pool as it is now."""
        pool = self.pool(write.name)
        pool.take(write)
        return pool


def uid(pool: Document) -> str:
    """Which pool it is, among those of one name."""
    return str(pool["metadata"].get("uid", ""))


def conditions_of(pool: Document | None) -> list[dict[str, Any]]:
    """The list."""
    return list(((pool or {}).get("status") or {}).get("conditions") or [])


def ready_of(pool: Document | None) -> Ready | None:
    """The first Ready condition."""
    for entry in conditions_of(pool):
        if entry.get("type") == "Ready":
            return Ready(entry.get("status", ""), entry.get("reason", ""), entry.get("observedGeneration") or 0)
    return None


def ready_moved(before: Ready | None, after: Ready | None) -> bool:
    """Whether a change of Ready is progress."""
    if after is not None and (after.status, after.reason) == MARKED:
        return False
    if before is None or after is None:
        return before is not after
    return (before.status, before.observed_generation) != (after.status, after.observed_generation)


def instant(text: object) -> object:
    """A renewTime as the instant that it names; what it is where it names none."""
    if not text:
        return None
    if not isinstance(text, str):
        return text
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
