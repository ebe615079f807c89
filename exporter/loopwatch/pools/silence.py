"""Who is silent: which pools passed the grace, since when, and whether so many did that the cause must be a common one.

A book kept from the views, without I/O. A heap holds the moments (on the clock of sight) from which pools are silent; entries are never
taken out when a pool lives on, but recognised as stale when they come up, so that a renewal costs one push. With heartbeats each 10 s and
a grace of 50 s a pool has at most six entries at a time. What passes the grace is kept apart until the pool lives or is gone.
"""

from __future__ import annotations

import heapq
from typing import Final

from loopwatch.pools.derive.view import PoolView

MASS_POOLS: Final = 3
MASS_PERCENT: Final = 55
"""Mass silence: at least 3 pools, and 55 % or more of those that were alive: 6 of 10, not 5 of 10."""
MASS_WINDOW_SECONDS: Final = 3600.0
"""Pools that passed the grace longer ago count neither as silent nor as alive: three long-dead pools must not hide news."""


class SilenceBook:
    """Every pool that exists, either alive (its silence has not passed the grace) or passed."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._since: dict[str, float] = {}
        self._counted: set[str] = set()
        self._passed: dict[str, tuple[float, float]] = {}

    @property
    def passed(self) -> dict[str, tuple[float, float]]:
        """Pools past the grace, the first to pass first: (monotonic moment of passing, silent since)."""
        return self._passed

    def see(self, view: PoolView) -> None:
        """A view has changed: the pool is alive (again) where the moment has moved from which it is silent."""
        name = view.name
        if view.pool is None:
            self.forget(name)
            return
        if view.was_alive and view.ever_reported:
            self._counted.add(name)
        else:
            self._counted.discard(name)
        passed = self._passed.get(name)
        if passed is not None:
            if passed[1] == view.silent_since:
                return
            del self._passed[name]
        if self._since.get(name) != view.silent_since:
            self._since[name] = view.silent_since
            heapq.heappush(self._heap, (view.silent_since, name))

    def forget(self, name: str) -> None:
        """The pool is gone."""
        self._since.pop(name, None)
        self._passed.pop(name, None)
        self._counted.discard(name)

    def first(self) -> tuple[float, str] | None:
        """The pool that is silent for longest among those alive, and since when; None where there is none."""
        while self._heap:
            silent_since, name = self._heap[0]
            if self._since.get(name) == silent_since and name not in self._passed:
                return silent_since, name
            heapq.heappop(self._heap)
        return None

    def move_passed(self, grace_seconds: float, *, sight_at: float, at: float) -> list[str]:
        """Enter as passed, at monotonic `at`, whoever is silent for longer than the grace on the clock of sight; their names.

        Silence is rounded as the sample is, so that whoever is entered is due by the sample too.
        """
        names = []
        while (first := self.first()) is not None and round(sight_at - first[0], 3) > grace_seconds:
            silent_since, name = heapq.heappop(self._heap)
            self._passed[name] = (at, silent_since)
            names.append(name)
        return names

    def mass_silence(self, at: float) -> bool:
        """Whether pools fell silent together within the last hour."""
        silent = sum(1 for name, (passed_at, _) in self._passed.items() if name in self._counted and at - passed_at < MASS_WINDOW_SECONDS)
        gone_long = sum(1 for name, (passed_at, _) in self._passed.items() if name in self._counted) - silent
        were_alive = len(self._counted) - gone_long
        return silent >= MASS_POOLS and 100 * silent >= MASS_PERCENT * were_alive
