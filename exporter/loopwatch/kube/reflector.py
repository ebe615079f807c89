"""A reflector keeps a sink equal to one resource of one API server, through everything that goes wrong on the way.

List (in pages, consistent), then watch from the list's version, again and again; a watch that ends is taken up where it left off, a
version that has expired costs a new list. A relist calls `replaced` and nothing else: it is not a change, and what vanished in a gap is
seen there. Only cancellation ends it: whatever the API server answers, or doesn't, becomes a number, a line in the log and a wait that
grows. It refuses to judge: how long without an answer is too long is the room's to decide (`on_answer`, `stats`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, TypeVar

import structlog

from loopwatch.clock import Clock
from loopwatch.kube.backoff import Backoff
from loopwatch.kube.delivery import Decode, Delivery, Listing
from loopwatch.kube.errors import ApiError, Call, StreamError
from loopwatch.kube.read import Reader, WatchStream
from loopwatch.kube.reflection import ERROR_KINDS, ReflectorStats, ReflectorTimes, Sink
from loopwatch.kube.resources import Resource
from loopwatch.kube.sayings import Sayings
from loopwatch.kube.transport import TransportError, TransportTimeout

__all__ = ["ERROR_KINDS", "Reflector", "ReflectorStats", "ReflectorTimes", "Sink"]

T = TypeVar("T")
log: Any = structlog.get_logger("loopwatch.kube")

_GONE: Final = 410
_NOT_FOUND: Final = 404
_KEEPS_PLACE: Final = frozenset({401, 403, 429, 502, 503, 504})
"""After these a watch is taken up where it was. Others may be the version's fault (an unreadable one is answered 500): list again."""

_LONG_PAST: Final = -1.0


def _nobody(at: float) -> None:
    """Who was given no `on_answer`."""
    del at


class Reflector(Generic[T]):
    """One resource, perhaps of one namespace or matching one field selector, in one sink."""

    def __init__(
        self,
        reader: Reader,
        resource: Resource,
        sink: Sink[T],
        decode: Decode[T],
        clock: Clock,
        *,
        namespace: str = "",
        field_selector: str = "",
        page_limit: int = 500,
        times: ReflectorTimes | None = None,
        on_answer: Callable[[float], None] = _nobody,
    ) -> None:
        """`decode` may raise ValueError (msgspec's errors are); `on_answer` hears the monotonic time of each read answered with 200."""
        self.stats = ReflectorStats()
        self.resource = resource
        self._reader = reader
        self._clock = clock
        self._namespace = namespace
        self._field_selector = field_selector
        self._page_limit = page_limit
        self._times = times or ReflectorTimes()
        self._on_answer = on_answer
        self._call = Call("watch", resource, namespace)
        self._delivery = Delivery(sink, decode, self._call, self.stats, clock)
        self._backoff = Backoff(clock, first_seconds=self._times.first_backoff_seconds, cap_seconds=self._times.cap_backoff_seconds)
        self._sayings = Sayings(clock)
        self._open_watch: asyncio.Timeout | None = None
        self._list_next = False
        self._gone_in_a_row = 0
        self._silent_since: float | None = None

    async def run(self) -> None:
        """Keep the sink equal, for ever."""
        while True:
            await self._clock.sleep(await self._step())

    def reopen(self) -> None:
        """End the watch by a new list, now. A back-off under way is not shortened; a list follows it."""
        if not self._list_next:
            self._list_next = True
            if self._open_watch is not None:
                self._open_watch.reschedule(_LONG_PAST)

    async def _step(self) -> float:
        """One list or one watch; the seconds to wait before the next."""
        try:
            if self._delivery.place and not self._list_next:
                return await self._watch()
            return await self._list()
        except ApiError as error:
            return self._refused(error)
        except TransportError as error:
            if isinstance(error, StreamError):
                self._delivery.place = ""
            return self._failed(error, error.kind, None)

    async def _list(self) -> float:
        """All pages, then the sink at once: a list that breaks off replaces nothing."""
        try:
            await self._list_in_pages(self._page_limit)
        except ApiError as error:
            if error.status != _GONE:
                raise
            self._count("gone")  # the continue token expired under way: one page can't
            await self._list_in_pages(0)
        self._list_next = False
        return 0.0

    async def _list_in_pages(self, limit: int) -> None:
        listing: Listing[T] = Listing({}, {}, [])
        continue_token = ""
        while True:
            page = await self._reader.list_page(
                self.resource,
                namespace=self._namespace,
                field_selector=self._field_selector,
                limit=limit,
                continue_token=continue_token,
            )
            at = self._clock.monotonic()
            self._answered(at)
            await self._delivery.add_page(listing, page.items)
            continue_token = page.continue_token
            if not continue_token:
                break
        if not page.resource_version:
            raise StreamError(f"{self._call}: the list has no resourceVersion to watch from")
        self.stats.lists_total += 1
        self._delivery.replace(listing, page.resource_version, at)
        self.stats.synced = True
        self._silent_since = None
        self._recovered()

    async def _watch(self) -> float:
        """Follow one watch to its end."""
        stream: WatchStream | None = None
        opened_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(None) as self._open_watch, self._watching() as stream:
                opened_at = self._clock.monotonic()
                self.stats.watches_total += 1
                self._answered(opened_at)
                self._recovered()
                await self._follow(stream)
        except TimeoutError:
            if not self._list_next:
                raise
            return 0.0  # reopen() ended it
        except TransportTimeout:
            if stream is None:
                raise
            # An idle resource looks the same as a dead connection: bookmarks come only where there is news. A new watch tells.
        finally:
            self._open_watch = None
            lived_seconds = self._clock.monotonic() - opened_at
            if stream is not None and lived_seconds >= self._times.settle_seconds:
                self._settled()
        self._doubt_silence(received=stream.received, opened_at=opened_at)
        return 0.0 if lived_seconds >= self._times.short_watch_seconds else self._backoff.next()

    def _watching(self) -> AbstractAsyncContextManager[WatchStream]:
        times = self._times
        return self._reader.watch(
            self.resource,
            namespace=self._namespace,
            field_selector=self._field_selector,
            resource_version=self._delivery.place,
            server_timeout_seconds=times.watch_seconds * (0.75 + 0.5 * self._clock.random()),
            read_timeout_seconds=times.read_seconds,
        )

    async def _follow(self, stream: WatchStream) -> None:
        monotonic, stats, deliver = self._clock.monotonic, self.stats, self._delivery.deliver
        async for lines in stream.batches():
            at = monotonic()
            stats.last_contact_at = at
            if lines:
                deliver(lines, at)

    def _doubt_silence(self, *, received: bool, opened_at: float) -> None:
        """A version from the future (a restored etcd) is answered 200 and then by nothing, for ever: list after long silence."""
        if received:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = opened_at
        elif self._clock.monotonic() - self._silent_since >= self._times.silent_seconds:
            self._delivery.place = ""

    def _refused(self, error: ApiError) -> float:
        if error.status == _NOT_FOUND:
            return self._not_served(error)
        if error.status not in _KEEPS_PLACE:
            self._delivery.place = ""
        if error.status == _GONE:
            self._gone_in_a_row += 1
            if self._gone_in_a_row == 1:  # what every long watch meets some day; only one that is gone at once again is in trouble
                self._count("gone")
                return 0.0
        return self._failed(error, error.kind, error.retry_after)

    def _failed(self, error: Exception, kind: str, retry_after: float | None) -> float:
        self._count(kind)
        self.stats.last_error = str(error)
        if self._sayings.due(kind):
            log.warning("can't follow a resource", resource=self._call.what, error=str(error), kind=kind)
        return self._backoff.next(retry_after)

    def _not_served(self, error: ApiError) -> float:
        self._delivery.place = ""
        every_seconds = max(self._times.not_served_seconds, error.retry_after or 0.0)
        self.stats.last_error = f"{self._call.what} is not served by this API server (404); looked for every {every_seconds:g} s"
        if self.stats.served is not False:
            log.warning("a resource is not served", resource=self._call.what, looked_for_every_seconds=every_seconds)
        self.stats.served = False
        return every_seconds

    def _answered(self, at: float) -> None:
        if self.stats.served is False:
            log.info("a resource is served now", resource=self._call.what)
        self.stats.served = True
        self.stats.last_contact_at = at
        self._on_answer(at)

    def _recovered(self) -> None:
        self.stats.last_error = ""

    def _settled(self) -> None:
        """All has been well for a while: forget the failures before it."""
        self._backoff.reset()
        self._gone_in_a_row = 0
        if self._sayings.forget():
            log.info("a resource is followed again", resource=self._call.what)

    def _count(self, kind: str) -> None:
        self.stats.errors_total[kind if kind in self.stats.errors_total else "other"] += 1
