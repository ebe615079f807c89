"""The fresh read before a write: is the pool as silent as the cache says?

A watch can lag, hang or lie still while the API server goes on. So a pool that falls due is read once more, pool and Lease, consistently
(no resourceVersion: what etcd holds now). What contradicts the cache is taken over and ends the watch that missed it. It writes nothing.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey, Resource
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.model import decode_lease, decode_machine_pool
from loopwatch.pools.observe import PoolsObserver

NOT_FOUND: Final = 404


class Verdict(enum.Enum):
    """What the read found."""

    STILL_SILENT = "still silent"
    ALIVE = "progress that the watch had missed"
    GONE = "the pool no longer exists"
    CHANGED_MEANWHILE = "an event that came while it was read"
    UNREADABLE = "an object that can't be decoded"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict, and the pool's body where it may be written on."""

    verdict: Verdict
    raw_pool: bytes | None = None


class Confirmation:
    """Reads one pool and its Lease. `reopen_*` end a watch that was found to have missed something."""

    def __init__(
        self,
        observer: PoolsObserver,
        reader: Reader,
        clock: Clock,
        *,
        timeout_seconds: float,
        reopen_pools: Callable[[], None],
        reopen_leases: Callable[[], None],
        lease_reader: Reader | None = None,
    ) -> None:
        self._observer, self._clock, self._timeout_seconds = observer, clock, timeout_seconds
        self._reader, self._lease_reader = reader, lease_reader or reader
        self._reopen_pools, self._reopen_leases = reopen_pools, reopen_leases

    async def read(self, name: str) -> Finding:
        """Read both objects at once; ApiError or TransportError where either can't be had (a 404 of the object itself is an answer)."""
        before = self._observer.views.get(name)
        try:
            async with asyncio.TaskGroup() as reads:
                pool_read = reads.create_task(_get(self._reader, MACHINE_POOLS, ObjectKey("", name), self._timeout_seconds))
                lease_read = reads.create_task(_get(self._lease_reader, LEASES, ObjectKey(LEASE_NAMESPACE, name), self._timeout_seconds))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        if before is None or self._observer.views.get(name) is not before:
            return Finding(Verdict.CHANGED_MEANWHILE)
        return self._compare(before, pool_read.result(), lease_read.result())

    def _compare(self, before: PoolView, raw_pool: bytes | None, raw_lease: bytes | None) -> Finding:
        """Feed what was read to the observer; whether silence was broken shows in the view it makes of it."""
        at, name = self._clock.monotonic(), before.name
        if raw_pool is None:
            self._observer.lose_pool(name, at)
            self._reopen_pools()
            return Finding(Verdict.GONE)
        try:
            lease = decode_lease(raw_lease) if raw_lease is not None else None
        except msgspec.DecodeError:
            self._observer.unreadable(name, at, pool=False)
            return Finding(Verdict.UNREADABLE)
        try:
            pool = decode_machine_pool(raw_pool)
        except msgspec.DecodeError:
            self._observer.unreadable(name, at, pool=True)
            return Finding(Verdict.UNREADABLE)
        self._observer.see_lease(name, lease, at)
        if self._observer.views[name].silent_since != before.silent_since:
            self._reopen_leases()
        after_lease = self._observer.views[name]
        self._observer.see_pool(name, pool, at)
        after = self._observer.views[name]
        if after.silent_since != after_lease.silent_since:
            self._reopen_pools()
        if after.silent_since != before.silent_since or after.marked_unknown:
            return Finding(Verdict.ALIVE)
        return Finding(Verdict.STILL_SILENT, raw_pool)


async def _get(reader: Reader, resource: Resource, key: ObjectKey, timeout_seconds: float) -> bytes | None:
    """The object's body; None where the server says that this very object does not exist."""
    try:
        return await reader.get(resource, key, timeout_seconds=timeout_seconds)
    except ApiError as error:
        if error.status == NOT_FOUND and error.details_name == key.name:
            return None
        raise
