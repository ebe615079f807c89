"""The one door to time and chance.

Nothing else under `loopwatch` touches `time`, `datetime.now`, `asyncio.sleep` or `random` (import-linter and a test keep it so): what
depends on time is handed a `Clock`, and tests hand in one that they step. Two clocks are kept apart on purpose. `monotonic` measures
silence and deadlines; `utcnow` only stamps what others read (a Lease's renewTime, a condition's times) and is never compared.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import time
from typing import Protocol


class Clock(Protocol):
    """What a loop may know of time and chance."""

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps; only differences mean anything."""
        ...

    def utcnow(self) -> datetime.datetime:
        """The wall clock, aware and in UTC; it may jump either way at any moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; 0 or less yields to the event loop once."""
        ...

    def random(self) -> float:
        """A number in [0, 1) for jitter."""
        ...


class SystemClock:
    """The clock of a running process."""

    def monotonic(self) -> float:
        """Seconds since some moment of this machine's past (CLOCK_MONOTONIC)."""
        return time.monotonic()

    def utcnow(self) -> datetime.datetime:
        """The machine's wall clock in UTC."""
        return datetime.datetime.now(datetime.UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(max(seconds, 0.0))

    def random(self) -> float:
        """A pseudo-random number in [0, 1)."""
        return random.random()
