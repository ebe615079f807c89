"""The fresh read before a write: is the pool as silent as the cache says?

A watch can lag, hang or lie still while the API server goes on. So pools that fall due are read once more, pools and Leases, consistently
(no resourceVersion: what etcd holds now): a few with a GET each, many with one list of either resource. What contradicts the cache is
taken over and ends the watch that missed it. It writes nothing.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey, Resource
from loopwatch.kube.transport import TransportError
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.model import decode_lease, decode_machine_pool
from loopwatch.pools.observe import PoolsObserver

NOT_FOUND: Final = 404
MOST_GETS: Final = 20
"""More pools than that are confirmed by a list of each resource: two requests for each 500 objects, however many fell silent."""
PAGE_LIMIT: Final = 500

BATCH: Final = 250
"""Pools compared before other tasks get a turn: some 8 ms."""


class Verdict(enum.Enum):
    """What the read found."""

    STILL_SILENT = "still silent"
    ALIVE = "progress that the watch had missed"
    GONE = "the pool no longer exists"
    CHANGED_MEANWHILE = "an event that came while it was read"
    UNREADABLE = "an object that can't be decoded"
    NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict; the pool's body where it may be written on, the error where there was no answer."""

    verdict: Verdict
    raw_pool: bytes | None = None
    error: ApiError | TransportError | None = None


Raw = bytes | msgspec.Raw
Pool = TypeVar("Pool")
Leased = TypeVar("Leased")


class _Name(msgspec.Struct):
    name: str = ""


class _Head(msgspec.Struct):
    metadata: _Name


_decode_head: Final = msgspec.json.Decoder(_Head).decode


class Confirmation:
    """Reads pools and their Leases. `reopen_*` end a watch that was found to have missed something."""

    def __init__(
        self,
        observer: PoolsObserver,
        pool_reader: Reader,
        lease_reader: Reader,
        clock: Clock,
        *,
        timeout_seconds: float,
        reopen_pools: Callable[[], None],
        reopen_leases: Callable[[], None],
    ) -> None:
        self._observer, self._clock, self._timeout_seconds = observer, clock, timeout_seconds
        self._pool_reader, self._lease_reader = pool_reader, lease_reader
        self._reopen_pools, self._reopen_leases = reopen_pools, reopen_leases

    async def read(self, names: Sequence[str]) -> dict[str, Finding]:
        """A finding for each name."""
        before = {name: self._observer.views.get(name) for name in names}
        if len(names) > MOST_GETS:
            return await self._read_lists(before)
        async with asyncio.TaskGroup() as reads:
            tasks = {name: reads.create_task(self._read_one(name, view)) for name, view in before.items()}
        return {name: task.result() for name, task in tasks.items()}

    async def _read_one(self, name: str, before: PoolView | None) -> Finding:
        try:
            pool, lease = await _both(
                _get(self._pool_reader, MACHINE_POOLS, ObjectKey("", name), self._timeout_seconds),
                _get(self._lease_reader, LEASES, ObjectKey(LEASE_NAMESPACE, name), self._timeout_seconds),
            )
        except (ApiError, TransportError) as error:
            return Finding(Verdict.NO_ANSWER, error=error)
        return self._compare(name, before, pool, lease)

    async def _read_lists(self, before: Mapping[str, PoolView | None]) -> dict[str, Finding]:
        try:
            pools, leases = await _both(
                _list(self._pool_reader, MACHINE_POOLS, "", before, self._timeout_seconds),
                _list(self._lease_reader, LEASES, LEASE_NAMESPACE, before, self._timeout_seconds),
            )
        except (ApiError, TransportError) as error:
            return dict.fromkeys(before, Finding(Verdict.NO_ANSWER, error=error))
        findings = {}
        for number, (name, view) in enumerate(before.items(), 1):
            findings[name] = self._compare(name, view, pools.get(name), leases.get(name))
            if number % BATCH == 0:
                await self._clock.sleep(0)
        return findings

    def _compare(self, name: str, before: PoolView | None, raw_pool: Raw | None, raw_lease: Raw | None) -> Finding:
        """Feed what was read to the observer; whether silence was broken shows in the view it makes of it."""
        if before is None or self._observer.views.get(name) is not before:
            return Finding(Verdict.CHANGED_MEANWHILE)
        at = self._clock.monotonic()
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
        after_lease = self._observer.views[name]
        if after_lease.silent_since != before.silent_since:
            self._reopen_leases()
        self._observer.see_pool(name, pool, at)
        after = self._observer.views[name]
        if after.silent_since != after_lease.silent_since:
            self._reopen_pools()
        if after.silent_since != before.silent_since or after.marked_unknown:
            return Finding(Verdict.ALIVE)
        return Finding(Verdict.STILL_SILENT, bytes(raw_pool))


async def _both(pool: Coroutine[Any, Any, Pool], lease: Coroutine[Any, Any, Leased]) -> tuple[Pool, Leased]:
    """Both at once; the first failure of either ends the other and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as reads:
            tasks = reads.create_task(pool), reads.create_task(lease)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return tasks[0].result(), tasks[1].result()


async def _get(reader: Reader, resource: Resource, key: ObjectKey, timeout_seconds: float) -> bytes | None:
    """The object's body; None where the server says that this very object does not exist."""
    try:
        return await reader.get(resource, key, timeout_seconds=timeout_seconds)
    except ApiError as error:
        if error.status == NOT_FOUND and error.details_name == key.name:
            return None
        raise


async def _list(
    reader: Reader, resource: Resource, namespace: str, wanted: Container[str], timeout_seconds: float
) -> dict[str, msgspec.Raw]:
    """The bodies of those wanted, from one consistent list in pages; `timeout_seconds` holds for each page.

    A token that expires on the way (410) is an ApiError like any other: the pools stay due, and are read anew.
    """
    found: dict[str, msgspec.Raw] = {}
    token = ""
    while True:
        page = await reader.list_page(
            resource, namespace=namespace, limit=PAGE_LIMIT, continue_token=token, timeout_seconds=timeout_seconds
        )
        for item in page.items:
            try:
                name = _decode_head(item).metadata.name
            except msgspec.DecodeError:
                continue
            if name in wanted:
                found[name] = item
        token = page.continue_token
        if not token:
            return found
