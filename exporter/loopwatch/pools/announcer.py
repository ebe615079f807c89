"""Tells of pools by Kubernetes Events, beside everything else: no loop ever waits for one, and none that fails is sent again.

What the observer sees becomes news (see `news`), told only where this process led when it saw it. News waits in a queue with a bound and
leaves at a steady pace, however many pools fall silent at once; news that is there already is counted, not queued twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError
from loopwatch.kube.transport import TransportError
from loopwatch.log import Repeated, get_logger
from loopwatch.metrics.store import Store
from loopwatch.pools.derive import news
from loopwatch.pools.derive.news import News, Seen, Told
from loopwatch.pools.families.events import EVENTS, RESULTS, EventsFacts
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.pace import Pace

MOST_WAITING: Final = 1000
EVENTS_PER_SECOND: Final = 20.0
NOT_WRITTEN: Final = "an Event about a pool could not be written; it is left out"
DROPPED: Final = "too many Events wait to be written; news of this pool is left out"


class WritesEvents(Protocol):
    """pools.act.events.EventWriter."""

    async def write(self, news: News) -> None:
        """Create it, or count it where it was written before."""
        ...


class Announcer:
    """The queue of Events of one controller. `leading` is asked when there is news."""

    def __init__(self, observer: PoolsObserver, store: Store, writer: WritesEvents, clock: Clock, *, leading: Callable[[], bool]) -> None:
        self._observer, self._store, self._writer, self._clock, self._leading = observer, store, writer, clock, leading
        self._seen: dict[str, Seen] = {}
        self._waiting: OrderedDict[tuple[str, str, str], News] = OrderedDict()
        self._woken = asyncio.Event()
        self._pace = Pace(clock, EVENTS_PER_SECOND)
        self._counts: Counter[str] = Counter()
        self._repeated = Repeated(clock)
        self._log = get_logger()
        for name in observer.views:
            self._changed(name)
        observer.subscribe(self._changed)
        self._expose()

    async def run(self) -> None:
        """Write what waits, for ever."""
        while True:
            while not self._waiting:
                self._woken.clear()
                await self._woken.wait()
            await self._pace.slot()
            _, told = self._waiting.popitem(last=False)
            await self._write(told)

    def _changed(self, name: str) -> None:
        view = self._observer.views.get(name)
        before = self._seen.get(name)
        seen, told = news.see(before, view) if view is not None else (None, ())
        if seen is None:
            self._seen.pop(name, None)
            return
        self._seen[name] = seen
        if told and view is not None and view.pool is not None and self._leading():
            for each in told:
                self._tell(name, seen.uid, view.pool.metadata.resource_version, each)

    def _tell(self, name: str, uid: str, resource_version: str, told: Told) -> None:
        now, key = self._clock.utcnow(), (name, uid, told.reason)
        waiting = self._waiting.get(key)
        if waiting is not None:
            self._waiting[key] = replace(waiting, count=waiting.count + 1, at=now, message=told.message, resource_version=resource_version)
        elif len(self._waiting) >= MOST_WAITING:
            self._count("dropped")
            self._repeated.say(self._log.warning, DROPPED, machinepool=name, reason=told.reason, waiting=MOST_WAITING)
        else:
            self._waiting[key] = News(name, uid, resource_version, told.type, told.reason, told.message, at=now, first_at=now)
            self._woken.set()

    async def _write(self, told: News) -> None:
        try:
            await self._writer.write(told)
        except (ApiError, TransportError) as error:
            kind = error.kind
            if isinstance(error, ApiError) and error.retry_after:
                self._pace.pause(error.retry_after)
            self._count("forbidden" if kind == "forbidden" else "error")
            self._repeated.say(
                self._log.warning, NOT_WRITTEN, about=kind, machinepool=told.machinepool, reason=told.reason, error=str(error)
            )
        else:
            self._count("ok")

    def _count(self, result: str) -> None:
        self._counts[result] += 1
        self._expose()

    def _expose(self) -> None:
        self._store.put(EVENTS, (), EventsFacts(tuple(self._counts[result] for result in RESULTS)))
