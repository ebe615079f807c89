"""Marks silent pools Unknown, and nothing else.

The decision is one comparison of two exposed samples: silence above grace. Around it stands what keeps that honest: a fresh read that
confirms before anything is written, a last look at leadership, sight and the same samples right before each write. Every controller keeps
the book of who is silent; only the one that leads reads and writes for it, so that a new leader knows what the old one knew. It never
writes True or False, never deletes, never compares a timestamp. Source: IronCore v0.5.0's MachinePoolLifecycle; where this one is more
careful, docs/architecture.md says so.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from loopwatch.clock import Clock
from loopwatch.kube.backoff import Backoff
from loopwatch.kube.errors import ApiError
from loopwatch.kube.transport import TransportError
from loopwatch.log import Repeated, get_logger
from loopwatch.metrics.store import Store
from loopwatch.pools.confirm import Confirmation, Finding, Verdict
from loopwatch.pools.derive.versions import is_older
from loopwatch.pools.families.lifecycle import GRACE, MARKING, MarkingFacts
from loopwatch.pools.families.pool import SILENCE
from loopwatch.pools.model import MachinePool, decode_machine_pool
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.pace import Pace
from loopwatch.pools.silence import SilenceBook

NOT_MARKED: Final = "could not mark the pool Unknown; it is tried again"
RETRY_FIRST_FRACTION: Final = 0.02
RETRY_CAP_FRACTION: Final = 0.2
"""A pool whose read or write failed is tried again after 1 s, at most 10 s, with the default grace of 50 s."""
TICK_SECONDS: Final = 0.001
"""What a timer waits beyond a deadline: samples are rounded to a millisecond, and silence must be above the grace, not at it."""
WRITERS: Final = 20
"""Writes under way at a time: enough to reach 275 to 534 a second on servers where one writer reached 125."""
CONFIRMED_FRACTION: Final = 0.2
"""How old a confirming read may be when its write leaves: 10 s with the default grace, as sight; an older one is read anew."""


class MarksUnknown(Protocol):
    """pools.act.mark.Marker."""

    async def mark(self, raw_pool: bytes) -> bytes:
        """Write Unknown on the pool as read."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator set."""

    grace_seconds: float
    mark_never_reported: bool = True
    marks_per_second: float = 250.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """A pool whose silence was confirmed at `at`, waiting for its write."""

    name: str
    raw_pool: bytes
    at: float


class Lifecycle:
    """The controller's deciding loop. `leading` is asked right before each write; `turned` is called at each turn of the loop."""

    def __init__(
        self,
        observer: PoolsObserver,
        store: Store,
        confirmation: Confirmation,
        marker: MarksUnknown,
        clock: Clock,
        rules: Rules,
        *,
        leading: Callable[[], bool],
        turned: Callable[[], None],
    ) -> None:
        self._observer, self._store, self._clock, self._rules = observer, store, clock, rules
        self._confirmation, self._marker, self._leading, self._turned = confirmation, marker, leading, turned
        self._book = SilenceBook()
        self._candidates: dict[str, None] = {}
        self._busy: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._retries: list[tuple[float, str]] = []
        self._queue: deque[Ticket] = deque()
        self._queued = asyncio.Event()
        self._pace = Pace(clock, rules.marks_per_second)
        self._wake = asyncio.Event()
        self._log = get_logger()
        self._repeated = Repeated(clock)
        for name in observer.views:
            self._changed(name)
        observer.subscribe(self._changed)
        self._expose()
        store.before_reading(self._expose)

    async def run(self) -> None:
        """Decide for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._decide(), name="lifecycle: decide")
            for number in range(WRITERS):
                tasks.create_task(self._write(), name=f"lifecycle: write {number}")

    def reconsider(self) -> None:
        """Sight or the lead came (back): waits are computed anew."""
        self._wake.set()

    def is_due(self, name: str) -> bool:
        """The decision. Both numbers are the store's, as /metrics shows them at this moment."""
        view = self._observer.views.get(name)
        if view is None or view.pool is None or not view.readable or view.marked_unknown:
            return False
        if not view.ever_reported and not self._rules.mark_never_reported:
            return False
        now = self._observer.moment()
        silence, grace = self._store.value(SILENCE, {"machinepool": name}, now), self._store.value(GRACE, {}, now)
        return silence is not None and grace is not None and silence > grace

    async def _decide(self) -> None:
        while True:
            self._turned()
            self._wake.clear()
            names = self._take_due()
            if names:
                findings = await self._confirmation.read(names)
                for name, finding in findings.items():
                    self._judge(name, finding)
            else:
                await self._wait(self._seconds_to_next())

    def _changed(self, name: str) -> None:
        """A view has changed; what is under way for the pool ends where the moment has moved from which it is silent."""
        view = self._observer.views.get(name)
        if view is None:
            self._book.forget(name)
            self._candidates.pop(name, None)
            self._release(name)
            return
        self._book.see(view)
        if self._busy.get(name, view.silent_since) != view.silent_since or view.marked_unknown:
            self._release(name)
        if name not in self._book.passed or view.marked_unknown:
            self._candidates.pop(name, None)
        elif name not in self._busy:  # also where it is a candidate already: what kept it from being due may have gone (unreadable objects)
            self._candidates[name] = None
            self._wake.set()
        if not self._wake.is_set() and (first := self._book.first()) is not None and first[1] == name:
            self._wake.set()

    def _take_due(self) -> list[str]:
        """The pools to read now: past the grace, due by the samples, and not under way already. None without sight or the lead."""
        now = self._observer.moment()
        newly = self._book.move_passed(self._rules.grace_seconds, sight_at=now.in_sight, at=now.monotonic)
        self._candidates.update(dict.fromkeys(name for name in newly if not self._observer.views[name].marked_unknown))
        again = [name for name in self._pop_retries(now.monotonic) if name in self._busy]
        if not (self._leading() and self._observer.has_sight()):
            for name in again:
                self._release(name)
            return []
        waiting = [name for name in self._candidates if name not in self._busy and self.is_due(name)]
        for name in waiting:
            self._busy[name] = self._observer.views[name].silent_since
        return again + waiting

    def _pop_retries(self, at: float) -> list[str]:
        names = []
        while self._retries and self._retries[0][0] <= at:
            names.append(heapq.heappop(self._retries)[1])
        return names

    def _seconds_to_next(self) -> float:
        """Seconds to the next deadline, were sight to last; a retry may come first. Without either, until something changes."""
        waits = [self._retries[0][0] - self._clock.monotonic()] if self._retries else []
        first = self._book.first()
        if first is not None and self._observer.has_sight():
            waits.append(first[0] + self._rules.grace_seconds - self._observer.moment().in_sight)
        return max(min(waits, default=self._rules.grace_seconds), 0.0) + TICK_SECONDS

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def _judge(self, name: str, finding: Finding) -> None:
        if name not in self._busy:
            return
        if finding.verdict is Verdict.STILL_SILENT and finding.raw_pool is not None:
            self._queue.append(Ticket(name, finding.raw_pool, self._clock.monotonic()))
            self._queued.set()
        elif finding.error is not None:
            self._retry(name, finding.error)
        else:
            self._log.info("the pool is not marked: a fresh read found otherwise", machinepool=name, found=finding.verdict.value)
            self._release(name)

    async def _write(self) -> None:
        """One of the writers: take the next ticket, wait for a slot, look once more, write."""
        while True:
            while not self._queue:
                self._queued.clear()
                await self._queued.wait()
            await self._pace.slot()
            if self._queue:
                await self._write_one(self._queue.popleft())

    async def _write_one(self, ticket: Ticket) -> None:
        name = ticket.name
        if name not in self._busy:
            return
        old = self._clock.monotonic() - ticket.at > self._rules.grace_seconds * CONFIRMED_FRACTION
        if old or not (self._leading() and self._observer.has_sight() and self.is_due(name)):
            self._release(name)
            self._wake.set()  # what is due still is read anew, as soon as this process has sight and leads
            return
        try:
            written = await self._marker.mark(ticket.raw_pool)
        except (ApiError, TransportError) as error:
            self._failed(ticket, error)
            return
        self._see_written(name, decode_machine_pool(written))
        self._release(name)
        self._log.warning("grace period exceeded without progress: the pool was marked Unknown", machinepool=name)

    def _see_written(self, name: str, written: MachinePool) -> None:
        """The answer of a mark; the watch may have overtaken it: with the reporter's return, or with the pool's end."""
        known = self._observer.pool(name)
        if known is None or known.metadata.uid != written.metadata.uid:
            return
        if not is_older(written.metadata.resource_version, known.metadata.resource_version):
            self._observer.see_pool(name, written, self._clock.monotonic())
        self._observer.count_mark(name)

    def _failed(self, ticket: Ticket, error: ApiError | TransportError) -> None:
        """A server that asks for a pause gets it from every writer, and the ticket goes back to the head of the queue."""
        if isinstance(error, ApiError) and error.kind == "throttled":
            self._pace.pause(error.retry_after or self._rules.grace_seconds * RETRY_FIRST_FRACTION)
            self._queue.appendleft(ticket)
            self._queued.set()
        else:
            self._retry(ticket.name, error)

    def _release(self, name: str) -> None:
        self._busy.pop(name, None)
        self._backoffs.pop(name, None)

    def _retry(self, name: str, error: ApiError | TransportError) -> None:
        if name not in self._busy:
            return
        if not (isinstance(error, ApiError) and error.kind == "conflict"):  # somebody wrote the pool meanwhile: read it again
            self._repeated.say(self._log.warning, NOT_MARKED, about=name, machinepool=name, error=str(error))
        grace = self._rules.grace_seconds
        backoff = self._backoffs.get(name)
        if backoff is None:
            backoff = Backoff(self._clock, first_seconds=grace * RETRY_FIRST_FRACTION, cap_seconds=grace * RETRY_CAP_FRACTION)
            self._backoffs[name] = backoff
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        heapq.heappush(self._retries, (self._clock.monotonic() + backoff.next(retry_after), name))
        self._wake.set()

    def _expose(self) -> None:
        self._store.put(MARKING, (), MarkingFacts(self._book.mass_silence(self._clock.monotonic()), len(self._queue)))
