"""Every group of metric families that any process of loopwatch exposes, in the order of docs/metrics.md.

The documents, the checks of rules and boards, and the tests over all tables read this one list. A group that is missing here is missing
in all of them, so a test compares it with what the rooms declare.
"""

from __future__ import annotations

from typing import Any, Final

from loopwatch.election.families import LEADER_ELECTION
from loopwatch.kube.families import REFLECTOR
from loopwatch.metrics.family import Component, Group
from loopwatch.metrics.process import PROCESS
from loopwatch.pools.families.events import EVENTS
from loopwatch.pools.families.heartbeat import HEARTBEAT
from loopwatch.pools.families.lifecycle import LIFECYCLE, MARKING
from loopwatch.pools.families.machines import MACHINES, PLACEMENT
from loopwatch.pools.families.pool import POOL

GROUPS: Final[tuple[Group[Any], ...]] = (
    POOL,
    PLACEMENT,
    MACHINES,
    LIFECYCLE,
    MARKING,
    EVENTS,
    HEARTBEAT,
    LEADER_ELECTION,
    REFLECTOR,
    PROCESS,
)


def groups(component: Component) -> tuple[Group[Any], ...]:
    """What one component exposes: each group with its rows for it, without those that have none."""
    exposed = (group.exposed_by(component) for group in GROUPS)
    return tuple(group for group in exposed if group.families)
