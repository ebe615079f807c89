"""The rights of a sidecar: its own pool, and the Lease of its pool."""

from __future__ import annotations

from typing import Final

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from loopwatch.rbac.model import Named, Right, Room, Scope, When
from loopwatch.settings.model import Subject

_REPORTS: Final = (When("mode", ("auto", "report")),)
_PROTECTED: Final = (When("metrics-auth", ("kubernetes",)),)

SIDECAR: Final = (
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="list",
        resource=MACHINE_POOLS,
        named=Named.POOL,
        why="its pool, as it stands: whether it exists, and what its Ready condition says",
        without="Neither Lease nor Ready is written, since nobody knows whether the pool exists; /readyz stays 503.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="watch",
        resource=MACHINE_POOLS,
        named=Named.POOL,
        why="another writer's Ready (Unknown by the lifecycle) is answered at once",
        without="An Unknown that the lifecycle wrote is not answered, and the pool's series stand still.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="get",
        resource=MACHINE_POOLS,
        named=Named.POOL,
        when=_REPORTS,
        why="the whole conditions list is read before it is written, since it is replaced as one",
        without="Ready is never published, while the Lease is renewed: loopwatch_heartbeat_ready_unpublished is 1.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="patch",
        resource=MACHINE_POOLS,
        subresource="status",
        named=Named.POOL,
        when=_REPORTS,
        why="publishes Ready",
        without="Ready is never published, while the Lease is renewed: loopwatch_heartbeat_ready_writes_total counts forbidden.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="list",
        resource=LEASES,
        scope=Scope.LEASES,
        named=Named.POOL,
        why="who renews the Lease, before anything is written",
        without="The Lease's series are absent; the heartbeat goes on, by get.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="watch",
        resource=LEASES,
        scope=Scope.LEASES,
        named=Named.POOL,
        why="a machinepoollet or another sidecar that renews is seen at once",
        without="Another holder is seen late, and the Lease's series stand still; the heartbeat goes on.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="get",
        resource=LEASES,
        scope=Scope.LEASES,
        named=Named.POOL,
        when=_REPORTS,
        why="keeps a Lease in sight that the watch is quiet about, and reads back after a conflict or a lost answer",
        without="In mode auto a Lease that stands still is never taken over: the state stays waiting.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="create",
        resource=LEASES,
        scope=Scope.LEASES,
        when=_REPORTS,
        why="the pool's first heartbeat; a rule can't name what does not exist yet",
        without="A pool without a Lease never gets one: loopwatch_heartbeat_lease_writes_total counts forbidden.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.POOLS,
        verb="patch",
        resource=LEASES,
        scope=Scope.LEASES,
        named=Named.POOL,
        when=_REPORTS,
        why="each heartbeat",
        without="The Lease is made and never renewed, so the pool falls silent: loopwatch_heartbeat_lease_writes_total counts forbidden.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.LISTEN,
        verb="create",
        resource=TOKEN_REVIEWS,
        when=_PROTECTED,
        why="whose token a scrape brings",
        without="With --metrics-auth kubernetes every scrape is answered 503.",
    ),
    Right(
        subject=Subject.SIDECAR,
        room=Room.LISTEN,
        verb="create",
        resource=SUBJECT_ACCESS_REVIEWS,
        when=_PROTECTED,
        why="whether that one may get /metrics",
        without="With --metrics-auth kubernetes every scrape is answered 503.",
    ),
)
