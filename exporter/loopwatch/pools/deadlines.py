"""Which pool falls due next: a heap of moments on the clock of sight.

Entries are never taken out when a pool lives on; they are recognised as stale when they come up, so that a renewal costs one push. Heaps
stay small: with heartbeats each 10 s and a grace of 50 s, a pool has at most six entries at a time.
"""

from __future__ import annotations

import heapq


class Deadlines:
    """Names by the moment (clock of sight) from which they are silent."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._since: dict[str, float] = {}

    def set(self, name: str, silent_since: float) -> None:
        """`name` is silent since then; an earlier entry of it becomes stale."""
        if self._since.get(name) != silent_since:
            self._since[name] = silent_since
            heapq.heappush(self._heap, (silent_since, name))

    def clear(self, name: str) -> None:
        """`name` can't fall due."""
        self._since.pop(name, None)

    def first(self) -> tuple[float, str] | None:
        """The longest silence there is, or None."""
        while self._heap:
            silent_since, name = self._heap[0]
            if self._since.get(name) == silent_since:
                return silent_since, name
            heapq.heappop(self._heap)
        return None
