"""What a sidecar exposes of its own loops: what it may do, what it wrote, and what the machine runtime and the machinepoollet answered.

Every family is about the exposing process alone. Each result and code has a series from the start, at 0, so that the first failure shows
in a rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from loopwatch.iri.probe import CODES
from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label
from loopwatch.metrics.values import HistogramValue, Overdue, Samples
from loopwatch.pools.derive.duty import State
from loopwatch.pools.families.pool import MACHINE_POOL

RESULTS: Final = ("ok", "conflict", "forbidden", "timeout", "error")
"""How a write ended: as wished; the object had changed (409); RBAC said no (403); no answer in time; anything else."""

WRITE_BUCKETS_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""A write has half an interval, 5 s by default: a healthy API server fills the first five buckets, and what the bucket of 5 s does not
hold was given up. With 95 of 100 renewals below 50 ms and 5 at 3 s, the 0.95 quantile reads 0.05 and the 0.99 one 4.5: late, not lost."""

PROBE_BUCKETS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""A probe has 5 s by default: a runtime on the same host answers within 1 to 10 ms. One that takes 0.8 s lands in the bucket of 1 s, with
a fifth of its budget gone; more than 5 s is a timeout, and the bucket +Inf less that of 5 s counts those."""


MOST_CLASSES: Final = 500
"""Real runtimes list a few dozen machine classes."""


class HeartbeatFacts(msgspec.Struct, frozen=True):
    """Counts are by result or code. None is what is not known yet, or not asked for, and gives no series."""

    state: State
    lease_writes: Mapping[str, int]
    lease_write_durations: HistogramValue
    ready_writes: Mapping[str, int]
    ready_unpublished: int | Overdue | None
    probes: Mapping[str, int]
    probe_durations: HistogramValue
    probe_succeeded: bool | None
    machinepoollet_up: bool | None
    machine_classes: tuple[tuple[str, int], ...] | None


def _labelled(counts: Mapping[str, int]) -> Samples:
    return {(label,): count for label, count in counts.items()}


def _flag(fact: bool | None) -> Samples:  # noqa: FBT001 - a fact that is a yes or no
    return None if fact is None else int(fact)


def _machine_classes(facts: HeartbeatFacts) -> Samples:
    """The first by name where a runtime lists absurdly many: an answer of 4 MiB holds a hundred thousand names."""
    return None if facts.machine_classes is None else {(name,): quantity for name, quantity in sorted(facts.machine_classes)[:MOST_CLASSES]}


_SIDECAR: Final = (Component.SIDECAR,)
_RESULT: Final = Label("result", ", ".join(RESULTS))

HEARTBEAT: Final = Group(
    "heartbeat",
    (MACHINE_POOL,),
    (
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_state",
            Kind.STATE_SET,
            "What this sidecar does for its pool: waits, reports, stands by for another sidecar, observes, or stopped reporting.",
            lambda facts: facts.state.value,
            Authority.OWN,
            labels=(Label("state", ", ".join(State)),),
            states=tuple(state.value for state in State),
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_lease_writes_total",
            Kind.COUNTER,
            "Attempts of this sidecar to create, take or renew the pool's Lease, by how they ended.",
            lambda facts: _labelled(facts.lease_writes),
            Authority.OWN,
            labels=(_RESULT,),
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_lease_write_duration_seconds",
            Kind.HISTOGRAM,
            "How long each attempt to write the Lease took, failed ones included.",
            lambda facts: facts.lease_write_durations,
            Authority.OWN,
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_ready_writes_total",
            Kind.COUNTER,
            "Attempts of this sidecar to patch the pool's Ready condition, by how they ended. A steady pool has none.",
            lambda facts: _labelled(facts.ready_writes),
            Authority.OWN,
            labels=(_RESULT,),
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_ready_unpublished",
            Kind.GAUGE,
            "1 while this sidecar reports, and the published Ready has had another status or reason than its own for over an interval.",
            lambda facts: facts.ready_unpublished,
            Authority.OWN,
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_probes_total",
            Kind.COUNTER,
            "Status calls to the machine runtime, by the gRPC code that they ended with.",
            lambda facts: _labelled(facts.probes),
            Authority.OWN,
            labels=(Label("code", f"gRPC's {len(CODES)} codes, as Go prints them: OK, Unavailable, DeadlineExceeded, ..."),),
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_probe_duration_seconds",
            Kind.HISTOGRAM,
            "How long each Status call took, failed ones included.",
            lambda facts: facts.probe_durations,
            Authority.OWN,
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_probe_success",
            Kind.GAUGE,
            "1 where the last Status call succeeded, 0 where it failed; nothing before the first.",
            lambda facts: _flag(facts.probe_succeeded),
            Authority.OWN,
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_heartbeat_machinepoollet_up",
            Kind.GAUGE,
            "1 where the machinepoollet's process answered on its healthz at the last tick; nothing with --machinepoollet-healthz off.",
            lambda facts: _flag(facts.machinepoollet_up),
            Authority.OWN,
            exposed_by=_SIDECAR,
        ),
        Family[HeartbeatFacts](
            "loopwatch_runtime_machine_class_quantity",
            Kind.GAUGE,
            "How many machines of the class the runtime could hold, from its last successful Status answer.",
            _machine_classes,
            Authority.OWN,
            labels=(Label("machine_class", f"the classes that the runtime lists, the first {MOST_CLASSES} by name"),),
            exposed_by=_SIDECAR,
        ),
    ),
)
