"""The rows of the demo's page, from the store of its controller and the duty of its sidecars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopwatch.demo.world import World
from loopwatch.metrics.values import Moment
from loopwatch.pools.families.pool import SILENCE
from loopwatch.web.page import PoolRow

_READY_AGE: Final = "loopwatch_machinepool_ready_age_seconds"
_LEASE_AGE: Final = "loopwatch_machinepool_lease_age_seconds"


def rows(world: World) -> Iterator[PoolRow]:
    """One row a pool or orphaned Lease, by name; every number is the store's."""
    observer, now = world.controller.observer, world.controller.observer.moment()
    for name, view in sorted(observer.views.items()):
        ready = view.pool.ready if view.pool else None
        parts = world.pools.get(name)
        yield PoolRow(
            pool=name,
            ready=ready.status if ready else "",
            reason=ready.reason if ready else "",
            message=ready.message if ready else "",
            ready_age_seconds=_value(world, _READY_AGE, name, now),
            lease_age_seconds=_value(world, _LEASE_AGE, name, now),
            silence_seconds=_value(world, SILENCE, name, now),
            holder=view.lease.holder if view.lease else "",
            heartbeat_state=parts.sidecar.standing.duty.state.value if parts else "",
        )


def _value(world: World, family: str, pool: str, now: Moment) -> float | None:
    return world.controller.store.value(family, {"machinepool": pool}, now)
