"""The rights of somebody who looks, and changes nothing."""

from __future__ import annotations

from typing import Final

from loopwatch.kube.resources import LEASES, MACHINE_POOLS, NAMESPACES
from loopwatch.rbac.model import Named, Right, Room, Scope, When
from loopwatch.settings.model import Subject

_PROTECTED: Final = (When("metrics-auth", ("kubernetes",)),)

READER: Final = (
    Right(
        subject=Subject.READER,
        room=Room.POOLS,
        verb="get",
        resource=MACHINE_POOLS,
        why="one pool: `kubectl get machinepool NAME`",
        without="`kubectl get machinepool NAME` is refused.",
    ),
    Right(
        subject=Subject.READER,
        room=Room.POOLS,
        verb="list",
        resource=MACHINE_POOLS,
        why="every pool: `loopwatch check`, `kubectl get machinepools`",
        without="`kubectl get machinepools` is refused, and `loopwatch check` can't say which pools report.",
    ),
    Right(
        subject=Subject.READER,
        room=Room.POOLS,
        verb="watch",
        resource=MACHINE_POOLS,
        why="changes as they come: `kubectl get machinepools --watch`",
        without="`kubectl get machinepools --watch` is refused.",
    ),
    Right(
        subject=Subject.READER,
        room=Room.POOLS,
        verb="get",
        resource=LEASES,
        scope=Scope.LEASES,
        why="one pool's heartbeat: `kubectl get lease NAME`",
        without="`kubectl get lease NAME` is refused.",
    ),
    Right(
        subject=Subject.READER,
        room=Room.POOLS,
        verb="list",
        resource=LEASES,
        scope=Scope.LEASES,
        why="who reports already, and with which lease duration: `loopwatch check`",
        without="`kubectl get leases` is refused, and `loopwatch check` can't say which pools report.",
    ),
    Right(
        subject=Subject.READER,
        room=Room.POOLS,
        verb="watch",
        resource=LEASES,
        scope=Scope.LEASES,
        why="heartbeats as they come: `kubectl get leases --watch`",
        without="`kubectl get leases --watch` is refused.",
    ),
    Right(
        subject=Subject.READER,
        room=Room.POOLS,
        verb="get",
        resource=NAMESPACES,
        named=Named.LEASE_NAMESPACE,
        why="whether the Leases' namespace exists: `loopwatch check`",
        without="`loopwatch check` can't tell a missing namespace from an empty one.",
    ),
    Right(
        subject=Subject.READER,
        room=Room.LISTEN,
        verb="get",
        paths=("/metrics",),
        when=_PROTECTED,
        why="scrapes a process that runs with --metrics-auth kubernetes",
        without="Its scrapes are answered 403.",
    ),
)
