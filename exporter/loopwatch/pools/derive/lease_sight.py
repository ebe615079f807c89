"""A pool's lease as one sidecar sees it: what it last said, how long it stood still in sight, and who was seen to renew it.

In sight means that the lease's watch brought something, or a GET of it was answered, within the last interval. Time out of sight does
not count: a lease that could not be looked at was not still. Nobody is believed to live for what a timestamp says; only a difference
between two sights is a renewal. Pure: it is told what was seen and when (monotonic seconds), and asked.

With an interval of 10 s: sights at 1, 11 and 21 s that show the same renewTime and holder make 20 s of stillness at 21 s; sights at 1 and
31 s make 10 s at 31 s, since from 11 s on nobody looked.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from loopwatch.pools.derive.instants import same_instant
from loopwatch.pools.model import HOLDER_ANNOTATION, Lease

NEVER: Final = float("-inf")


class Holder(enum.Enum):
    """What holds a lease, as seen from one sidecar."""

    NOBODY = "nobody"
    OURSELVES = "ourselves"
    SIDECAR = "sidecar"
    MACHINEPOOLLET = "machinepoollet"


class LeaseSight(msgspec.Struct, frozen=True):
    """`lease` is None where there is none, which is only meant where `known`.

    Stillness was counted up to `counted_to` and made `still_seconds`. `machinepoollet_renewed` is never forgotten; `sidecar_renewed`
    is, once the lease is ours.
    """

    identity: str
    interval_seconds: float
    known: bool = False
    lease: Lease | None = None
    contact_at: float = NEVER
    counted_to: float = NEVER
    still_seconds: float = 0.0
    machinepoollet_renewed: bool = False
    sidecar_renewed: bool = False

    @property
    def holder(self) -> Holder:
        """Who holds the lease that was last seen."""
        return holder_of(self.lease, self.identity)

    @property
    def in_sight_until(self) -> float:
        """The moment from which the last sight no longer counts; NEVER where there was none."""
        return self.contact_at + self.interval_seconds


def holder_of(lease: Lease | None, identity: str) -> Holder:
    """A sidecar writes its holderIdentity into an annotation when it takes a lease; a holder not named there is a machinepoollet."""
    if lease is None:
        return Holder.NOBODY
    if lease.holder == identity:
        return Holder.OURSELVES
    named = (lease.metadata.annotations or {}).get(HOLDER_ANNOTATION, "")
    return Holder.SIDECAR if lease.holder and lease.holder == named else Holder.MACHINEPOOLLET


def still_for(sight: LeaseSight, at: float) -> float:
    """Seconds in sight for which renewTime and holder have not changed, up to `at`."""
    if not sight.known:
        return 0.0
    return sight.still_seconds + max(min(at, sight.in_sight_until) - sight.counted_to, 0.0)


def see(sight: LeaseSight, lease: Lease | None, at: float) -> LeaseSight:
    """The lease as a watch or an answer showed it at `at`; None where it is known not to exist."""
    at = max(at, sight.counted_to)
    before = sight.lease
    renewed = sight.known and not same_instant(before.renew_time if before else None, lease.renew_time if lease else None)
    handed_over = sight.known and (before.holder if before else "") != (lease.holder if lease else "")
    moved = renewed or handed_over or (before is None) != (lease is None)
    holder = holder_of(lease, sight.identity)
    # An emptied holder is nobody's renewal: somebody let go.
    lives = renewed or (handed_over and lease is not None and lease.holder != "")
    return msgspec.structs.replace(
        sight,
        known=True,
        lease=lease,
        contact_at=at,
        counted_to=at,
        still_seconds=0.0 if moved else still_for(sight, at),
        machinepoollet_renewed=sight.machinepoollet_renewed or (lives and holder is Holder.MACHINEPOOLLET),
        sidecar_renewed=holder is not Holder.OURSELVES and (sight.sidecar_renewed or (lives and holder is Holder.SIDECAR)),
    )


def recount(sight: LeaseSight, at: float) -> LeaseSight:
    """Stillness counts from `at` only: what stood still before says nothing about a process that has only just started."""
    return msgspec.structs.replace(sight, still_seconds=0.0, counted_to=max(at, sight.counted_to))
