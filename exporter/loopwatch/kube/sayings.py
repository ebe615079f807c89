"""One line a minute: what goes on failing is said again, but not each time.

A heartbeat that is refused every ten seconds, or a watch that is refused at each back-off, would else bury the line that matters.
"""

from __future__ import annotations

from loopwatch.clock import Clock

EVERY_SECONDS = 60.0


class Sayings:
    """Remembers when each thing was said last; the things are a bounded set (kinds of errors), never texts."""

    def __init__(self, clock: Clock, every_seconds: float = EVERY_SECONDS) -> None:
        self._clock = clock
        self._every_seconds = every_seconds
        self._said_at: dict[str, float] = {}

    def due(self, what: str) -> bool:
        """Whether to say `what` now; True marks it as said."""
        now = self._clock.monotonic()
        said_at = self._said_at.get(what)
        if said_at is not None and now - said_at < self._every_seconds:
            return False
        self._said_at[what] = now
        return True

    def forget(self) -> bool:
        """All is well again; whether anything had been said. What fails next is said at once."""
        said = bool(self._said_at)
        self._said_at.clear()
        return said
