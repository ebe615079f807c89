"""How long a Lease has stood still, whether it did so for too long, and how often it did.

A heartbeat is a change of renewTime; here, unlike in the lifecycle's silence, a change of Ready is none. Moments are read on the clock of
sight (derive.sight), so that blindness is no silence. A silence ends with a heartbeat, with the Lease's coming or going, and where nothing
can be said of it (an object that can't be decoded); the first gap in sight within it starts it anew, later ones don't, or gaps that recur
would hide a dead reporter. Pure functions from one frozen state to the next.
"""

from __future__ import annotations

from typing import Final

import msgspec

from loopwatch.pools.model import Lease

ASSUMED_LEASE_SECONDS: Final = 40
"""What a pool without a published lease duration is given (upstream's default for --heartbeat-lease-duration)."""
LATE_FRACTION: Final = 0.75
"""Of the lease duration: 30 s of 40, three heartbeats of 10 s. Later is late; the Lease has not run out yet."""


class Beats(msgspec.Struct, frozen=True):
    """One Lease's silence. `seconds`: its duration (ASSUMED_LEASE_SECONDS where none is published), None where there is no Lease.

    `renewed_at`: the last change of renewTime that this process saw; None before one. `late`: silences that were over LATE_FRACTION of
    the duration, the present one among them where `counted`.
    """

    silent_since: float
    seconds: float | None = None
    renewed_at: float | None = None
    late: int = 0
    counted: bool = False
    gap_spent: bool = False

    @property
    def late_after(self) -> float | None:
        """Seconds of silence after which it will be counted; None where it won't: it has been, or there is no Lease."""
        return None if self.counted or self.seconds is None else self.seconds * LATE_FRACTION


def lease_seconds(lease: Lease | None) -> float:
    """The lease duration as published, else upstream's default; nonsense (below 1 s) counts as not published."""
    published = lease.duration_seconds if lease else None
    return published if published is not None and published > 0 else ASSUMED_LEASE_SECONDS


def see(beats: Beats, lease: Lease | None, *, renewed: bool, known: bool, sight_at: float) -> Beats:
    """The Lease as read or watched, with a renewTime that differs where `renewed`; `known` is False where nothing was known before."""
    seconds = lease_seconds(lease) if lease else None
    if known and not renewed:
        return beats if seconds == beats.seconds else msgspec.structs.replace(count(beats, sight_at), seconds=seconds)
    beat = known and lease is not None and lease.renew_time is not None
    return Beats(sight_at, seconds, sight_at if beat else None, count(beats, sight_at).late)


def count(beats: Beats, sight_at: float) -> Beats:
    """The state with this silence counted, where it is late by now and was not counted yet."""
    late_after = beats.late_after
    if late_after is None or not sight_at - beats.silent_since > late_after:
        return beats
    return msgspec.structs.replace(beats, late=beats.late + 1, counted=True)


def after_gap(beats: Beats, sight_at: float) -> Beats:
    """Sight is back: a heartbeat may have come and gone unseen, once within a silence."""
    if beats.gap_spent:
        return beats
    return msgspec.structs.replace(count(beats, sight_at), silent_since=sight_at, gap_spent=True)


def lose(beats: Beats, sight_at: float) -> Beats:
    """The Lease can't be decoded: whether it is renewed is not known from here on."""
    return msgspec.structs.replace(count(beats, sight_at), seconds=None)


def of_new_pool(beats: Beats, sight_at: float) -> Beats:
    """The pool is another one, or gone: what was counted goes with the old one, and silence begins anew. The Lease is the same."""
    return Beats(sight_at, beats.seconds, beats.renewed_at)
