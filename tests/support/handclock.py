"""A clock that a synchronous test moves by hand."""

from __future__ import annotations

import datetime as dt

from tests.support.stepped import START


class HandClock:
    """Starts at 1000 s; `step` moves both clocks."""

    def __init__(self) -> None:
        self._passed = 0.0

    def step(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    def monotonic(self) -> float:
        """1000 plus what passed."""
        return 1000.0 + self._passed

    def utcnow(self) -> dt.datetime:
        """START plus what passed."""
        return START + dt.timedelta(seconds=self._passed)

    async def sleep(self, seconds: float) -> None:
        """Nothing that a synchronous test drives may wait."""
        raise AssertionError(f"waited {seconds} s on a clock that is moved by hand")

    def random(self) -> float:
        """Half way."""
        return 0.5
