"""What is known of one pool: the objects as last seen, and the moments at which what matters about them changed.

Progress is exactly this (upstream's lifecycle controller, v0.5.0): renewTime differs, in either direction, or comes, or goes; or Ready
differs in presence, status or observedGeneration. Not holder, reason, message or any time of a condition. A change to Unknown with reason
MachinePoolStatusUnknown is never progress, whoever wrote it. Pure functions from one frozen view to the next; timestamps in objects are
compared for difference, never ordered.
"""

from __future__ import annotations

from typing import Final

import msgspec

from loopwatch.pools.derive import beats
from loopwatch.pools.derive.beats import Beats, lease_seconds
from loopwatch.pools.derive.instants import same_instant
from loopwatch.pools.model import READY_STATUSES, STATUS_UNKNOWN, Condition, Lease, MachinePool, ready_status

TURNS_WINDOW_LEASES: Final = 3
"""Two holders that take turns twice within this many lease durations are both alive: a restart takes over once (case 15)."""


class HolderChange(msgspec.Struct, frozen=True):
    """One hand-over of a lease, by monotonic clock."""

    at: float
    previous: str
    current: str


class PoolView(msgspec.Struct, frozen=True):
    """One pool, as this process has observed it.

    Moments are monotonic seconds, but `silent_since` and those of `beats`, which are read on the clock of sight (derive.sight). `pool`
    is None for a lease whose pool does not exist; `readable` is False while either object can't be decoded: such a pool is shown as far
    as it is known, and never marked. `lease_known` is False before any answer said whether there is a lease. `was_alive` is False for a
    pool that was Unknown when it was first seen, until it makes progress.
    """

    name: str
    first_seen_at: float
    silent_since: float
    beats: Beats
    pool: MachinePool | None = None
    lease: Lease | None = None
    lease_known: bool = False
    pool_readable: bool = True
    lease_readable: bool = True
    ready_changed_at: float = 0.0
    transitions: tuple[int, ...] = (0,) * len(READY_STATUSES)
    lease_changed_at: float = 0.0
    holder_changes: int = 0
    last_change: HolderChange | None = None
    conflict_until: float | None = None
    gap_spent: bool = False
    ever_reported: bool = False
    was_alive: bool = False
    marks: int = 0
    orphaned: bool = False

    @property
    def readable(self) -> bool:
        """True where both objects could be decoded (or one is absent)."""
        return self.pool_readable and self.lease_readable

    @property
    def exists(self) -> bool:
        """True where there is such a pool, be it one that can't be decoded."""
        return self.pool is not None or not self.pool_readable

    @property
    def marked_unknown(self) -> bool:
        """True where Ready is Unknown already: there is nothing to write."""
        ready = self.pool.ready if self.pool else None
        return ready_status(ready) == "unknown"


def first_sight(name: str, *, at: float, sight_at: float, lease_known: bool = False) -> PoolView:
    """A pool never seen before: its silence starts at 0, whatever its objects' timestamps say. `lease_known`: it has none."""
    return PoolView(
        name=name,
        lease_known=lease_known,
        first_seen_at=at,
        silent_since=sight_at,
        beats=Beats(sight_at),
        ready_changed_at=at,
        lease_changed_at=at,
    )


def without_pool(view: PoolView, *, at: float, sight_at: float) -> PoolView:
    """The pool is gone (or was made again under its name): nothing of the old one counts, but what is known of the lease stays."""
    return msgspec.structs.replace(
        first_sight(view.name, at=at, sight_at=sight_at),
        beats=beats.of_new_pool(view.beats, sight_at),
        lease=view.lease,
        lease_known=view.lease_known,
        lease_readable=view.lease_readable,
        lease_changed_at=view.lease_changed_at,
        holder_changes=view.holder_changes,
        last_change=view.last_change,
        conflict_until=view.conflict_until,
        ever_reported=view.lease is not None,
    )


def see_pool(view: PoolView, pool: MachinePool, *, at: float, sight_at: float) -> PoolView:
    """The pool as read or watched. The same object again (a relist) changes nothing but what is stored."""
    ready = pool.ready
    changes: dict[str, object] = {"pool": pool, "pool_readable": True, "orphaned": False}
    if ready is not None:
        changes["ever_reported"] = True
    if view.pool is None or view.pool.metadata.uid != pool.metadata.uid:
        changes["was_alive"] = ready_status(ready) != "unknown"
        return msgspec.structs.replace(without_pool(view, at=at, sight_at=sight_at), **changes)
    before = view.pool.ready
    if ready_status(before) != ready_status(ready):
        changes["ready_changed_at"] = at
        changes["transitions"] = _counted(view.transitions, READY_STATUSES.index(ready_status(ready)))
    if is_ready_progress(before, ready):
        changes |= {"silent_since": sight_at, "gap_spent": False, "was_alive": True}
    return msgspec.structs.replace(view, **changes)


def see_lease(view: PoolView, lease: Lease | None, *, at: float, sight_at: float) -> PoolView:
    """The lease as read or watched; None where it is known not to exist, whose coming and going are changes like any other."""
    before = view.lease
    changes: dict[str, object] = {"lease": lease, "lease_known": True, "lease_readable": True}
    if lease is not None:
        changes["ever_reported"] = True
    renewed = not same_instant(before.renew_time if before else None, lease.renew_time if lease else None)
    holder_before, holder = (before.holder if before else ""), (lease.holder if lease else "")
    known = view.lease_known and view.lease_readable
    changes["beats"] = beats.see(view.beats, lease, renewed=renewed, known=known, sight_at=sight_at)
    if renewed or holder != holder_before or (before is None) != (lease is None):
        changes["lease_changed_at"] = at
    if renewed and view.lease_known:
        changes |= {"silent_since": sight_at, "gap_spent": False, "was_alive": True}
    if lease is not None and holder_before and holder and holder != holder_before:
        changes |= _handed_over(view, HolderChange(at, holder_before, holder), lease_seconds(lease))
    return msgspec.structs.replace(view, **changes)


def lose_lease(view: PoolView, *, sight_at: float) -> PoolView:
    """There is a Lease, and it can't be decoded."""
    return msgspec.structs.replace(view, lease_readable=False, beats=beats.lose(view.beats, sight_at))


def is_ready_progress(before: Condition | None, after: Condition | None) -> bool:
    """True where this change of Ready shows that somebody reports."""
    if after is not None and after.status not in {"True", "False"} and after.reason == STATUS_UNKNOWN:
        return False
    if before is None or after is None:
        return before is not after
    return (before.status, before.observed_generation) != (after.status, after.observed_generation)


def after_gap(view: PoolView, *, grace_seconds: float, sight_at: float) -> PoolView:
    """What a gap in sight leaves a pool: at least its published lease duration, at most the grace, once within a stretch of silence.

    A heartbeat may have come and gone unseen in the gap. With grace 50 s and lease 40 s a pool that was silent for 45 s is put back to
    10 s: it has 40 s to be seen again. The second gap within the same silence leaves it as it is, or gaps that recur would hide a dead
    pool for ever.
    """
    after = beats.after_gap(view.beats, sight_at)
    if view.gap_spent:
        return view if after is view.beats else msgspec.structs.replace(view, beats=after)
    left = min(lease_seconds(view.lease), grace_seconds)
    earliest = sight_at - (grace_seconds - left)
    return msgspec.structs.replace(view, beats=after, gap_spent=True, silent_since=max(view.silent_since, earliest))


def _handed_over(view: PoolView, change: HolderChange, seconds: float) -> dict[str, object]:
    last, window = view.last_change, TURNS_WINDOW_LEASES * seconds
    turned = last is not None and (last.previous, last.current) == (change.current, change.previous) and change.at - last.at < window
    changes: dict[str, object] = {"holder_changes": view.holder_changes + 1, "last_change": change}
    if turned and last is not None:
        changes["conflict_until"] = last.at + window
    return changes


def _counted(counts: tuple[int, ...], index: int) -> tuple[int, ...]:
    return (*counts[:index], counts[index] + 1, *counts[index + 1 :])
