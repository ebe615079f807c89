"""The rights of the controller: it reads every pool, Lease and Machine, and writes the status of pools, Events, and its own Lease."""

from __future__ import annotations

from typing import Final

from loopwatch.kube.resources import EVENTS, LEASES, MACHINE_POOLS, MACHINES, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from loopwatch.rbac.model import Named, Right, Room, Scope, When
from loopwatch.settings.model import Subject

_ACTS: Final = (When("no-act", ("false",)),)
_CONTENDS: Final = (*_ACTS, When("leader-elect", ("true",)))
_TELLS: Final = (*_ACTS, When("events", ("true",)))
_COUNTS_MACHINES: Final = (When("machines", ("true",)),)
_PROTECTED: Final = (When("metrics-auth", ("kubernetes",)),)

CONTROLLER: Final = (
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="list",
        resource=MACHINE_POOLS,
        why="every pool, sight of their API, and the read that confirms many marks at once",
        without="Nothing is marked: loopwatch_machinepool_lifecycle_blind_seconds rises for machinepools, and /readyz stays 503.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="watch",
        resource=MACHINE_POOLS,
        why="a change of Ready is progress at once",
        without="Ready is seen as the last list showed it; the read before each write keeps a living pool from being marked.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="get",
        resource=MACHINE_POOLS,
        when=_ACTS,
        why="the fresh read that confirms a pool's silence before it is marked",
        without="No silent pool is marked, unless more than 20 are due at once, which a list confirms.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="patch",
        resource=MACHINE_POOLS,
        subresource="status",
        when=_ACTS,
        why="writes Ready=Unknown",
        without="No silent pool is marked.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="list",
        resource=LEASES,
        scope=Scope.LEASES,
        why="every heartbeat, sight of their API, and the read that confirms many marks at once",
        without="Nothing is marked: loopwatch_machinepool_lifecycle_blind_seconds rises for leases, and /readyz stays 503.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="watch",
        resource=LEASES,
        scope=Scope.LEASES,
        why="each heartbeat is seen as it comes",
        without="Heartbeats are seen by lists alone, so silence looks longer than it is; the read before each write spares a living pool.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="get",
        resource=LEASES,
        scope=Scope.LEASES,
        when=_ACTS,
        why="the fresh read that confirms a pool's silence before it is marked",
        without="No silent pool is marked, unless more than 20 are due at once, which a list confirms.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="list",
        resource=MACHINES,
        when=_COUNTS_MACHINES,
        why="Machines by state, and those on pools that are not Ready",
        without="The series about Machines are absent.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="watch",
        resource=MACHINES,
        when=_COUNTS_MACHINES,
        why="the same, kept current",
        without="The series about Machines stand still.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="create",
        resource=EVENTS,
        scope=Scope.EVENTS,
        when=_TELLS,
        why="Events about a pool, which has no namespace: they lie in default",
        without="No Events are written; nothing else changes.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.POOLS,
        verb="patch",
        resource=EVENTS,
        scope=Scope.EVENTS,
        when=_TELLS,
        why="an Event that comes again is counted, not repeated",
        without="An Event that comes again is not counted; nothing else changes.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.ELECTION,
        verb="get",
        resource=LEASES,
        scope=Scope.ELECTION,
        named=Named.ELECTION_LEASE,
        when=_CONTENDS,
        why="who leads, and what became of a write whose answer was lost",
        without="The process never leads, so it marks nothing.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.ELECTION,
        verb="create",
        resource=LEASES,
        scope=Scope.ELECTION,
        when=_CONTENDS,
        why="the first leader makes the Lease; a rule can't name what does not exist yet",
        without="Where there is no Lease yet nobody ever leads, so nothing is marked.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.ELECTION,
        verb="patch",
        resource=LEASES,
        scope=Scope.ELECTION,
        named=Named.ELECTION_LEASE,
        when=_CONTENDS,
        why="takes, renews and releases the lead",
        without="Whoever made the Lease leads until its first renewal is due, and nobody after: nothing is marked.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.LISTEN,
        verb="create",
        resource=TOKEN_REVIEWS,
        when=_PROTECTED,
        why="whose token a scrape brings",
        without="With --metrics-auth kubernetes every scrape is answered 503.",
    ),
    Right(
        subject=Subject.CONTROLLER,
        room=Room.LISTEN,
        verb="create",
        resource=SUBJECT_ACCESS_REVIEWS,
        when=_PROTECTED,
        why="whether that one may get /metrics",
        without="With --metrics-auth kubernetes every scrape is answered 503.",
    ),
)
