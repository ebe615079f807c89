"""How fast writes may leave: evenly, at most so many a second, and not at all while the API server has asked for a pause."""

from __future__ import annotations

from loopwatch.clock import Clock


class Pace:
    """Slots on a grid of 1/rate seconds; a slot that nobody took is lost, so that an idle hour allows no burst."""

    def __init__(self, clock: Clock, per_second: float) -> None:
        self._clock = clock
        self._spacing_seconds = 1.0 / per_second
        self._next_at = clock.monotonic()

    async def slot(self) -> None:
        """Wait for the next free slot, and take it."""
        while (wait := self._next_at - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)
        self._next_at = max(self._next_at, self._clock.monotonic()) + self._spacing_seconds

    def pause(self, seconds: float) -> None:
        """No slot for that long (Retry-After)."""
        self._next_at = max(self._next_at, self._clock.monotonic() + seconds)
