"""What is exposed of each MachinePool and its Lease: one table, facts in, samples out.

The facts are a `PoolView`; a family whose fact is not known gives no sample. Names are fixed (CHANGELOG.md says when one changes).
"""

from __future__ import annotations

from typing import Final

from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label
from loopwatch.metrics.values import IN_SIGHT, CountOverdue, Overdue, Samples, Since, Until
from loopwatch.pools.derive.beats import ASSUMED_LEASE_SECONDS
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.model import HEARTBEAT_RECEIVED, POOL_STATES, READY_STATUSES, RUNTIME_UNREACHABLE, STATUS_UNKNOWN, ready_status

MACHINE_POOL: Final = Label("machinepool", "one per MachinePool or Lease in ironcore-machinepool-lease")
SILENCE: Final = "loopwatch_machinepool_silence_seconds"
REASONS: Final = (HEARTBEAT_RECEIVED, RUNTIME_UNREACHABLE, STATUS_UNKNOWN)
OTHER: Final = "Other"


def _info(view: PoolView) -> Samples:
    if view.pool is None:
        return None
    return {(view.pool.spec.provider_id if view.pool.spec else "",): 1}


def _ready(view: PoolView) -> Samples:
    return ready_status(view.pool.ready) if view.pool else None


def _ready_reason(view: PoolView) -> Samples:
    ready = view.pool.ready if view.pool else None
    if ready is None:
        return None
    return {(ready.reason if ready.reason in REASONS else OTHER,): 1}


def _ready_transitions(view: PoolView) -> Samples:
    return {(status,): count for status, count in zip(READY_STATUSES, view.transitions, strict=True)} if view.pool else None


def _ready_age(view: PoolView) -> Samples:
    return Since(view.ready_changed_at) if view.pool else None


def _generation(view: PoolView) -> Samples:
    return view.pool.metadata.generation if view.pool else None


def _observed_generation(view: PoolView) -> Samples:
    ready = view.pool.ready if view.pool else None
    return ready.observed_generation if ready else None


def _lease_age(view: PoolView) -> Samples:
    return Since(view.lease_changed_at) if view.lease else None


def _lease_duration(view: PoolView) -> Samples:
    return view.lease.duration_seconds if view.lease else None


def _holder_changes(view: PoolView) -> Samples:
    return view.holder_changes if view.lease else None


def _holder_conflict(view: PoolView) -> Samples:
    if view.lease is None:
        return None
    return 0 if view.conflict_until is None else Until(view.conflict_until)


def _lease_orphaned(view: PoolView) -> Samples:
    if view.lease is None:
        return None
    return int(view.orphaned)


def _silence(view: PoolView) -> Samples:
    return Since(view.silent_since, IN_SIGHT) if view.pool and view.readable else None


def _ready_without_lease(view: PoolView) -> Samples:
    if view.pool is None or not view.readable or not view.lease_known:
        return None
    if ready_status(view.pool.ready) != "true":
        return 0
    beats = view.beats
    return Overdue(beats.silent_since, ASSUMED_LEASE_SECONDS if beats.seconds is None else beats.seconds, IN_SIGHT)


def _unready_but_renewed(view: PoolView) -> Samples:
    if view.pool is None or not view.readable or not view.lease_known:
        return None
    beats = view.beats
    if ready_status(view.pool.ready) == "true" or beats.renewed_at is None or beats.seconds is None:
        return 0
    return Until(beats.renewed_at + beats.seconds, IN_SIGHT)


def _never_reported(view: PoolView) -> Samples:
    return int(not view.ever_reported) if view.pool and view.readable and view.lease_known else None


def _late_heartbeats(view: PoolView) -> Samples:
    if view.pool is None:
        return None
    beats, after = view.beats, view.beats.late_after
    return beats.late if after is None else CountOverdue(beats.late, beats.silent_since, after, IN_SIGHT)


def _marks(view: PoolView) -> Samples:
    return view.marks if view.pool else None


def _state(view: PoolView) -> Samples:
    state = view.pool.status.state if view.pool and view.pool.status else None
    if not state:
        return None
    return state if state in POOL_STATES else OTHER


POOL: Final = Group(
    "machinepool",
    (MACHINE_POOL,),
    (
        Family(
            "loopwatch_machinepool_info",
            Kind.INFO,
            "A MachinePool, with the identity that its provider knows it by (spec.providerID).",
            _info,
            Authority.LEADER,
            labels=(Label("provider_id", "one per pool"),),
        ),
        Family(
            "loopwatch_machinepool_ready",
            Kind.STATE_SET,
            "Status of the pool's Ready condition; absent where the list holds none.",
            _ready,
            Authority.LEADER,
            labels=(Label("status", "true, false, unknown, absent"),),
            states=READY_STATUSES,
        ),
        Family(
            "loopwatch_machinepool_ready_reason",
            Kind.GAUGE,
            "1 for the current reason of Ready; nothing while the condition is absent.",
            _ready_reason,
            Authority.LEADER,
            labels=(Label("reason", "HeartbeatReceived, RuntimeUnreachable, MachinePoolStatusUnknown, Other"),),
        ),
        Family(
            "loopwatch_machinepool_ready_transitions_total",
            Kind.COUNTER,
            "Changes of Ready's status seen on the watch, by the status it changed to; also blips too short for any scrape.",
            _ready_transitions,
            Authority.COUNTER,
            labels=(Label("to", "true, false, unknown, absent"),),
        ),
        Family(
            "loopwatch_machinepool_ready_age_seconds",
            Kind.GAUGE,
            "Seconds since this process first saw the pool, or last saw Ready's status change, by its own monotonic clock.",
            _ready_age,
            Authority.LEADER,
        ),
        Family(
            "loopwatch_machinepool_generation",
            Kind.GAUGE,
            "The pool's metadata.generation, which rises with each change of its spec.",
            _generation,
            Authority.LEADER,
        ),
        Family(
            "loopwatch_machinepool_ready_observed_generation",
            Kind.GAUGE,
            "The generation that the writer of Ready had seen; behind metadata.generation until it reports again.",
            _observed_generation,
            Authority.LEADER,
        ),
        Family(
            "loopwatch_machinepool_lease_age_seconds",
            Kind.GAUGE,
            "Seconds since this process last saw the pool's Lease change (renewTime or holder), by its own monotonic clock.",
            _lease_age,
            Authority.FRESHEST,
        ),
        Family(
            "loopwatch_machinepool_lease_duration_seconds",
            Kind.GAUGE,
            "leaseDurationSeconds as the reporter published it on the Lease.",
            _lease_duration,
            Authority.LEADER,
        ),
        Family(
            "loopwatch_machinepool_lease_holder_changes_total",
            Kind.COUNTER,
            "Hand-overs of the Lease from one holderIdentity to another: restarts of the reporter, or two of them.",
            _holder_changes,
            Authority.COUNTER,
        ),
        Family(
            "loopwatch_machinepool_lease_holder_conflict",
            Kind.GAUGE,
            "1 while two holders took turns at least twice within three lease durations: two reporters live for one pool.",
            _holder_conflict,
            Authority.LEADER,
        ),
        Family(
            "loopwatch_machinepool_lease_orphaned",
            Kind.GAUGE,
            "1 for a Lease whose MachinePool does not exist; IronCore never deletes such a Lease.",
            _lease_orphaned,
            Authority.LEADER,
        ),
        Family(
            SILENCE,
            Kind.GAUGE,
            "Seconds without progress (Lease renewed, or Ready changed), counted only in sight: what the lifecycle decides from.",
            _silence,
            Authority.LEADER,
            exposed_by=(Component.CONTROLLER,),
        ),
        Family(
            "loopwatch_machinepool_ready_without_lease",
            Kind.GAUGE,
            "1 while Ready is True and the Lease stood still, in sight, for longer than its duration (40 s where none is published).",
            _ready_without_lease,
            Authority.LEADER,
            exposed_by=(Component.CONTROLLER,),
        ),
        Family(
            "loopwatch_machinepool_unready_but_renewed",
            Kind.GAUGE,
            "1 while Ready is not True and the Lease's last renewal, seen by this process, is no older in sight than its duration.",
            _unready_but_renewed,
            Authority.LEADER,
            exposed_by=(Component.CONTROLLER,),
        ),
        Family(
            "loopwatch_machinepool_never_reported",
            Kind.GAUGE,
            "1 for a pool that had neither a Lease nor a Ready condition since this process first saw it.",
            _never_reported,
            Authority.LEADER,
        ),
        Family(
            "loopwatch_machinepool_late_heartbeats_total",
            Kind.COUNTER,
            "Silences of the Lease, in sight, over 0.75 of its duration: each once, as it gets so long, whether it ends then or never.",
            _late_heartbeats,
            Authority.COUNTER,
            exposed_by=(Component.CONTROLLER,),
        ),
        Family(
            "loopwatch_machinepool_lifecycle_marks_total",
            Kind.COUNTER,
            "Times this process wrote Ready=Unknown on the pool.",
            _marks,
            Authority.OWN,
            exposed_by=(Component.CONTROLLER,),
        ),
        Family(
            "loopwatch_machinepool_state",
            Kind.STATE_SET,
            "status.state as it stands. Nobody ever sets it back: a dead pool still says Ready here. Ask loopwatch_machinepool_ready.",
            _state,
            Authority.LEADER,
            labels=(Label("state", "Ready, Pending, Error, Offline, Other"),),
            states=(*POOL_STATES, OTHER),
        ),
    ),
)
