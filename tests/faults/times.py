"""The times of one scenario: the product's defaults, or all of them ten times as short.

Both are played. What the settings don't reach (a request's 10 s, an interval's poll of 1 s) keeps its proportion only with the defaults;
the short ones are those of `make soak-real`.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopwatch.election.derive import Times as Election
from loopwatch.kube.reflector import ReflectorTimes

GRACE_SECONDS = 50.0


@dataclass(frozen=True)
class Times:
    """`scale` 1.0 is grace 50 s, heartbeat 10 s, lease 40 s; 0.1 is 5 s, 1 s, 4 s."""

    scale: float = 1.0

    @property
    def grace(self) -> float:
        """--machine-pool-lifecycle-grace-period, in seconds."""
        return GRACE_SECONDS * self.scale

    @property
    def interval(self) -> float:
        """--heartbeat-interval."""
        return 10.0 * self.scale

    @property
    def lease(self) -> int:
        """--heartbeat-lease-duration."""
        return round(40.0 * self.scale)

    @property
    def status_timeout(self) -> float:
        """--heartbeat-status-timeout."""
        return 5.0 * self.scale

    @property
    def runtime_start_grace(self) -> float:
        """--runtime-start-grace."""
        return 60.0 * self.scale

    @property
    def election(self) -> Election:
        """The three --leader-elect times; a Lease's duration is whole seconds."""
        return Election() if self.scale == 1.0 else Election(round(20 * self.scale), 12.0 * self.scale, 3.0 * self.scale)

    @property
    def reflector(self) -> ReflectorTimes:
        """A reflector's times, as much shorter as all else."""
        usual = ReflectorTimes()
        return ReflectorTimes(**{name: getattr(usual, name) * self.scale for name in usual.__slots__})
