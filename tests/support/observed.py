"""An observer of a controller whose clock is moved by hand, fed with objects as the reflectors would, and read as a scrape does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from loopwatch.kube.resources import LEASE_NAMESPACE, ObjectKey
from loopwatch.metrics.family import Component, Group
from loopwatch.metrics.store import Store
from loopwatch.pools import observe
from loopwatch.pools.families.lifecycle import LIFECYCLE
from loopwatch.pools.families.machines import MACHINES, PLACEMENT
from loopwatch.pools.families.pool import POOL
from loopwatch.pools.machine import decode_machine
from loopwatch.pools.model import Lease, MachinePool
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.placement import Placement
from tests.support.handclock import HandClock

STEP_SECONDS = 5.0


class Seen:
    """An observer of a controller with a grace of 50 s."""

    groups: tuple[Group[Any], ...] = (POOL, LIFECYCLE)

    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = Store(*(group.exposed_by(Component.CONTROLLER) for group in self.groups))
        self.observer = PoolsObserver(self.store, POOL, self.clock, grace_seconds=50)

    def answer(self) -> None:
        """Both APIs answer a read now."""
        for resource in (observe.LEASES, observe.MACHINE_POOLS):
            self.observer.answered(resource, self.clock.monotonic())

    def passes(self, seconds: float) -> None:
        """Time passes in sight."""
        self.answer()
        while seconds > 0:
            self.clock.step(min(seconds, STEP_SECONDS))
            self.answer()
            seconds -= STEP_SECONDS

    def pools(self, *objects: MachinePool, broken: Iterable[str] = ()) -> None:
        """A complete list."""
        keys = {ObjectKey("", each.metadata.name): each for each in objects}
        self.observer.machine_pools.replaced(keys, frozenset(ObjectKey("", name) for name in broken), self.clock.monotonic())

    def pool_event(self, each: MachinePool) -> None:
        """A pool is ADDED or MODIFIED."""
        self.observer.machine_pools.changed(ObjectKey("", each.metadata.name), each, self.clock.monotonic())

    def pool_deleted(self, name: str) -> None:
        """A pool is DELETED."""
        self.observer.machine_pools.deleted(ObjectKey("", name), self.clock.monotonic())

    def leases(self, *objects: Lease, broken: Iterable[str] = ()) -> None:
        """A complete list."""
        keys = {ObjectKey(LEASE_NAMESPACE, each.metadata.name): each for each in objects}
        there = frozenset(ObjectKey(LEASE_NAMESPACE, name) for name in broken)
        self.observer.leases.replaced(keys, there, self.clock.monotonic())

    def renew(self, each: Lease) -> None:
        """A Lease is ADDED or MODIFIED."""
        self.observer.leases.changed(ObjectKey(LEASE_NAMESPACE, each.metadata.name), each, self.clock.monotonic())

    def lease_deleted(self, name: str) -> None:
        """A Lease is DELETED."""
        self.observer.leases.deleted(ObjectKey(LEASE_NAMESPACE, name), self.clock.monotonic())

    def lines(self, *prefixes: str) -> list[str]:
        """The series whose names start so, without their common beginning."""
        page = self.store.render(self.observer.moment()).decode().splitlines()
        names = tuple(f"loopwatch_machinepool_{prefix}" for prefix in prefixes)
        return [line.removeprefix("loopwatch_machinepool_") for line in page if line.startswith(names)]

    def value(self, family: str, **labels: str) -> float | None:
        """One number, as a scrape shows it now."""
        return self.store.value(f"loopwatch_machinepool_{family}", labels, self.observer.moment())


class SeenWithMachines(Seen):
    """The same, with Machines counted."""

    groups = (POOL, LIFECYCLE, PLACEMENT, MACHINES)

    def __init__(self, *, counts_machines: bool = True) -> None:
        super().__init__()
        self.placement = Placement(self.store, self.observer, counts_machines=counts_machines)

    def machines(self, *objects: Mapping[str, Any], broken: Iterable[str] = ()) -> None:
        """A complete list of Machines as the API shows them (tests.support.pools.raw_machine)."""
        keys = {_key(each): decode_machine(msgspec.json.encode(each)) for each in objects}
        self.placement.replaced(keys, frozenset(ObjectKey("default", name) for name in broken), self.clock.monotonic())

    def machine_event(self, each: Mapping[str, Any]) -> None:
        """A Machine is ADDED or MODIFIED."""
        self.placement.changed(_key(each), decode_machine(msgspec.json.encode(each)), self.clock.monotonic())

    def machine_deleted(self, name: str) -> None:
        """A Machine is DELETED."""
        self.placement.deleted(ObjectKey("default", name), self.clock.monotonic())

    def cluster(self, family: str, **labels: str) -> float | None:
        """One number of a family that belongs to no pool."""
        return self.store.value(f"loopwatch_machines_{family}", labels, self.observer.moment())

    def by_label(self, family: str, label: str, pool: str = "pool-a") -> dict[str, float]:
        """A family's samples of one pool by the value of its own label, in the order of the page."""
        found = {}
        for line in self.lines(f"{family}{{"):
            series, number = line.rsplit(" ", 1)
            if f'machinepool="{pool}"' in series:
                found[series.split(f'{label}="')[1].split('"')[0]] = float(number)
        return found


def _key(machine: Mapping[str, Any]) -> ObjectKey:
    return ObjectKey(machine["metadata"].get("namespace", "default"), machine["metadata"]["name"])
