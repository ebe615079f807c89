"""How long to wait after a failure, so that a struggling API server is asked less and less, and never by all at once.

Doubles from `first_seconds` to `cap_seconds`; each wait is shortened by a random factor from 0.5 to 1, so that processes that failed
together come back apart. What the server asks for (Retry-After) is a floor. It refuses to wait longer than the cap of its own accord.
"""

from __future__ import annotations

from loopwatch.clock import Clock

_MOST_DOUBLINGS = 62
"""Past it the cap has long been reached, and a float is still far from its end."""


class Backoff:
    """The waits of one caller; each caller has its own."""

    def __init__(self, clock: Clock, *, first_seconds: float, cap_seconds: float) -> None:
        if not 0 < first_seconds <= cap_seconds:
            raise ValueError(f"first_seconds must be above 0 and not above cap_seconds, got {first_seconds} and {cap_seconds}")
        self._clock = clock
        self._first_seconds = first_seconds
        self._cap_seconds = cap_seconds
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many waits were given since the last reset."""
        return self._failures

    def next(self, retry_after: float | None = None) -> float:
        """Seconds to wait now, after one more failure; never below `retry_after`, which may exceed the cap."""
        whole = min(self._cap_seconds, self._first_seconds * 2.0 ** min(self._failures, _MOST_DOUBLINGS))
        self._failures += 1
        return max(whole * (0.5 + 0.5 * self._clock.random()), retry_after or 0.0)

    def reset(self) -> None:
        """Begin again at `first_seconds`: it went well."""
        self._failures = 0
