"""Waking a loop that waits for a moment, and the grid of moments that a loop keeps to.

Timers of an event loop may fire a hair early (uvloop's are whole milliseconds), and a loop that asks for the tick after now would then
turn twice within that hair. So whatever waits here goes on waiting until its moment has really come.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from loopwatch.clock import Clock

SHORTEST_SECONDS: Final = 0.001
"""An event loop's timers are no finer: a shorter wait may end where it began."""


async def sleep_until(clock: Clock, moment: float) -> None:
    """Sleep until monotonic `moment` has come."""
    while (left := moment - clock.monotonic()) > 0:
        await clock.sleep(max(left, SHORTEST_SECONDS))


class Bell:
    """One loop waits, anybody rings. A ring while nobody waits is kept until somebody does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the loop."""
        self._rung.set()

    async def wait(self, until: float) -> None:
        """Return at the next ring, or at monotonic `until`, whichever comes first."""
        left = until - self._clock.monotonic()
        if left > 0:
            left = max(left, SHORTEST_SECONDS)
        try:
            async with asyncio.timeout(None if math.isinf(left) else max(left, 0.0)):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()


class Ticks:
    """A fixed grid from its beginning: late ticks are dropped, never made up for, and nothing drifts."""

    def __init__(self, began_at: float, interval_seconds: float) -> None:
        self._began_at = began_at
        self._interval_seconds = interval_seconds

    def after(self, at: float) -> float:
        """The first tick that is later than `at`."""
        passed = math.floor((at - self._began_at) / self._interval_seconds) + 1
        tick = self._began_at + passed * self._interval_seconds
        return tick if tick > at else tick + self._interval_seconds
