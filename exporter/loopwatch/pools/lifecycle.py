"""Marks a silent pool Unknown, and nothing else.

The decision is one comparison of two exposed samples: silence above grace. Around it stands what keeps that honest: reads that keep
sight, a fresh read that confirms before anything is written, a last look at the same samples right before the write. It never writes
True or False, never deletes, never compares a timestamp. Source: IronCore v0.5.0's MachinePoolLifecycle; where this one is more careful,
docs/architecture.md says so.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from loopwatch.clock import Clock
from loopwatch.kube.backoff import Backoff
from loopwatch.kube.errors import ApiError
from loopwatch.kube.transport import TransportError
from loopwatch.log import Repeated, get_logger
from loopwatch.metrics.store import Store
from loopwatch.pools.confirm import Confirmation, Verdict
from loopwatch.pools.deadlines import Deadlines
from loopwatch.pools.families.lifecycle import GRACE
from loopwatch.pools.families.pool import SILENCE
from loopwatch.pools.model import decode_machine_pool
from loopwatch.pools.observe import PoolsObserver

RETRY_FIRST_FRACTION: Final = 0.02
RETRY_CAP_FRACTION: Final = 0.2
"""A write that failed is tried again after 1 s, at most 10 s, with the default grace of 50 s."""
TICK_SECONDS: Final = 0.001
"""What a timer waits beyond a deadline: samples are rounded to a millisecond, and silence must be above the grace, not at it."""


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


class Lifecycle:
    """The controller's deciding loop. `leading` is asked right before each write."""

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
        self._deadlines = Deadlines()
        self._held: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._retries: list[tuple[float, str]] = []
        self._wake = asyncio.Event()
        self._log = get_logger()
        self._repeated = Repeated(clock)
        for name in observer.views:
            self._changed(name)
        observer.subscribe(self._changed)

    async def run(self) -> None:
        """Decide for ever."""
        while True:
            self._turned()
            self._wake.clear()
            name = self._next_due()
            if name is None:
                await self._wait(self._seconds_to_next())
            else:
                await self._judge(name)

    def sight_changed(self) -> None:
        """Sight came back: waits are computed anew."""
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

    def _changed(self, name: str) -> None:
        view = self._observer.views.get(name)
        if view is None or view.pool is None or view.marked_unknown:
            self._deadlines.clear(name)
            self._release(name)
            return
        if self._held.get(name) == view.silent_since:
            return
        self._release(name)
        self._deadlines.set(name, view.silent_since)
        if not self._wake.is_set() and (first := self._deadlines.first()) and first[1] == name:
            self._wake.set()

    def _next_due(self) -> str | None:
        """A pool to judge now: one whose retry is due, else the one silent for longest. It is held until it is written or lives."""
        while self._retries and self._retries[0][0] <= self._clock.monotonic():
            name = heapq.heappop(self._retries)[1]
            if name in self._held:
                return name
        first = self._deadlines.first()
        if first is None or not self._passed(first[0]):
            return None
        silent_since, name = first
        self._deadlines.clear(name)
        self._held[name] = silent_since
        return name

    def _passed(self, silent_since: float) -> bool:
        return self._observer.moment().in_sight - silent_since > self._rules.grace_seconds

    def _seconds_to_next(self) -> float:
        """Seconds to the next deadline, were sight to last; a retry may come first. Without either, until something changes."""
        waits = [self._retries[0][0] - self._clock.monotonic()] if self._retries else []
        first = self._deadlines.first()
        if first is not None and self._observer.has_sight():
            waits.append(first[0] + self._rules.grace_seconds - self._observer.moment().in_sight)
        return max(min(waits, default=self._rules.grace_seconds), 0.0) + TICK_SECONDS

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _judge(self, name: str) -> None:
        """Confirm, look once more, write. Whatever fails is tried again after a while, for this pool alone."""
        if not self.is_due(name):
            self._reconsider(name)
            return
        try:
            finding = await self._confirmation.read(name)
            if finding.verdict is not Verdict.STILL_SILENT or finding.raw_pool is None:
                self._log.info("the pool is not marked: a fresh read found otherwise", machinepool=name, found=finding.verdict.value)
                self._reconsider(name)
                return
            if not (self._leading() and self._observer.has_sight() and self.is_due(name)):
                self._retry(name, None)
                return
            written = await self._marker.mark(finding.raw_pool)
        except (ApiError, TransportError) as error:
            self._repeated.say(
                self._log.warning, "could not mark the pool Unknown; it is tried again", about=name, machinepool=name, error=str(error)
            )
            self._retry(name, error.retry_after if isinstance(error, ApiError) else None)
            return
        self._observer.see_pool(name, decode_machine_pool(written), self._clock.monotonic())
        self._observer.count_mark(name)
        self._log.warning("grace period exceeded without progress: the pool was marked Unknown", machinepool=name)

    def _release(self, name: str) -> None:
        self._held.pop(name, None)
        self._backoffs.pop(name, None)

    def _reconsider(self, name: str) -> None:
        """What the view says now counts: the pool lives, is gone, or goes back among the deadlines when its view changes again."""
        view = self._observer.views.get(name)
        if view is not None and self._held.get(name) != view.silent_since:
            self._changed(name)

    def _retry(self, name: str, retry_after: float | None) -> None:
        if name not in self._held:
            return
        grace = self._rules.grace_seconds
        backoff = self._backoffs.get(name)
        if backoff is None:
            backoff = Backoff(self._clock, first_seconds=grace * RETRY_FIRST_FRACTION, cap_seconds=grace * RETRY_CAP_FRACTION)
            self._backoffs[name] = backoff
        heapq.heappush(self._retries, (self._clock.monotonic() + backoff.next(retry_after), name))
