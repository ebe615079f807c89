"""Is this process alive, and is it ready?

Alive means that each of its own loops still turns. A request that fails, an API server that is gone, a runtime that hangs: none of these
makes a process unhealthy, since a restart would mend none of them and cost a heartbeat. Ready means that it has seen its world once.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopwatch.clock import Clock


class Loop:
    """One loop of the process; it says at each turn that it turns."""

    def __init__(self, name: str, longest_seconds: float, clock: Clock) -> None:
        self.name = name
        self.longest_seconds = longest_seconds
        self._clock = clock
        self._turned_at = clock.monotonic()

    def turn(self) -> None:
        """The loop has come round again."""
        self._turned_at = self._clock.monotonic()

    def still_for(self) -> float:
        """Seconds since the last turn."""
        return self._clock.monotonic() - self._turned_at


class Loops:
    """Every loop of the process that must keep turning."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loops: dict[str, Loop] = {}

    def register(self, name: str, longest_seconds: float) -> Loop:
        """A loop that begins now. `longest_seconds` is longer than its interval and every timeout within a turn together."""
        if name in self._loops:
            raise ValueError(f"two loops are called {name!r}")
        loop = Loop(name, longest_seconds, self._clock)
        self._loops[name] = loop
        return loop

    def ended(self, loop: Loop) -> None:
        """The loop ended as it was meant to, and is no longer waited for."""
        self._loops.pop(loop.name, None)

    def stuck(self) -> list[str]:
        """A phrase for each loop that has not turned for longer than it may; empty while all is well."""
        return [
            f"{loop.name} (no turn for {still:.0f} s, at most {loop.longest_seconds:.0f} s are allowed)"
            for loop in self._loops.values()
            if (still := loop.still_for()) > loop.longest_seconds
        ]


class Readiness:
    """Named conditions that have to be met once."""

    def __init__(self, *conditions: str) -> None:
        self._missing = dict.fromkeys(conditions)
        self._known = frozenset(conditions)

    def met(self, condition: str) -> None:
        """It is met from now on; KeyError for one that nobody announced."""
        if condition not in self._known:
            raise KeyError(condition)
        self._missing.pop(condition, None)

    def missing(self) -> list[str]:
        """What is not met yet, in the order announced."""
        return list(self._missing)


@dataclass(frozen=True, slots=True)
class Health:
    """What /healthz and /readyz answer from."""

    loops: Loops
    readiness: Readiness
