"""What the controller's lifecycle exposes of itself: its setting, its sight, and the marks that wait."""

from __future__ import annotations

from typing import Final

import msgspec

from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label
from loopwatch.metrics.values import Since

GRACE: Final = "loopwatch_machinepool_lifecycle_grace_period_seconds"
BLIND: Final = "loopwatch_machinepool_lifecycle_blind_seconds"


class LifecycleFacts(msgspec.Struct, frozen=True):
    """`lost_at`: for each resource the monotonic moment at which its last answer stops to count as sight (in the future while it does)."""

    grace_seconds: float
    largest_lease_seconds: int
    lost_at: tuple[tuple[str, float], ...]
    marked_elsewhere: bool = False


_CONTROLLER: Final = (Component.CONTROLLER,)

LIFECYCLE: Final = Group(
    "lifecycle",
    (),
    (
        Family[LifecycleFacts](
            GRACE,
            Kind.GAUGE,
            "The grace period: a pool silent for longer is marked Unknown (--machine-pool-lifecycle-grace-period).",
            lambda facts: facts.grace_seconds,
            Authority.LEADER,
            exposed_by=_CONTROLLER,
        ),
        Family[LifecycleFacts](
            BLIND,
            Kind.GAUGE,
            "Seconds since the API of this resource stopped answering reads; 0 in sight. Nothing is marked while either is blind.",
            lambda facts: {(resource,): Since(at) for resource, at in facts.lost_at},
            Authority.LEADER,
            labels=(Label("resource", "leases, machinepools"),),
            exposed_by=_CONTROLLER,
        ),
        Family[LifecycleFacts](
            "loopwatch_machinepool_lifecycle_grace_too_short",
            Kind.GAUGE,
            "1 where the grace period is not above the largest lease duration seen: a few missed heartbeats would mark a living pool.",
            lambda facts: int(facts.grace_seconds <= facts.largest_lease_seconds),
            Authority.LEADER,
            exposed_by=_CONTROLLER,
        ),
        Family[LifecycleFacts](
            "loopwatch_machinepool_lifecycle_elsewhere",
            Kind.GAUGE,
            "1 from the moment at which this process saw another manager (managedFields) than our own write Unknown, until it ends.",
            lambda facts: int(facts.marked_elsewhere),
            Authority.LEADER,
            exposed_by=_CONTROLLER,
        ),
    ),
)


class MarkingFacts(msgspec.Struct, frozen=True):
    """What the lifecycle's book and its queue of writes say."""

    mass_silence: bool
    queued: int


MARKING: Final = Group(
    "marking",
    (),
    (
        Family[MarkingFacts](
            "loopwatch_machinepool_lifecycle_mass_silence",
            Kind.GAUGE,
            "1 while 3 or more pools, and 55 % or more of those alive in the last hour, passed the grace within it: a common cause.",
            lambda facts: int(facts.mass_silence),
            Authority.LEADER,
            exposed_by=_CONTROLLER,
        ),
        Family[MarkingFacts](
            "loopwatch_machinepool_lifecycle_mark_queue",
            Kind.GAUGE,
            "Pools whose silence was confirmed, and whose Unknown waits to be written.",
            lambda facts: facts.queued,
            Authority.OWN,
            exposed_by=_CONTROLLER,
        ),
    ),
)
