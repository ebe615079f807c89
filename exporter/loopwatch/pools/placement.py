"""Machines and pools put together: what each pool can hold, what it does hold, and whose pool is missing.

Takes the Machines' reflector in, hears of each change of a pool from the observer, and puts facts into the store as they move. Machines
are a third resource beside pools and Leases, and none of the lifecycle's business: whatever happens to their watch, sight and silence of
pools know nothing of it. A copy that was not confirmed for long is not shown: what is not known is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from loopwatch.kube.resources import ObjectKey
from loopwatch.metrics.store import Store
from loopwatch.pools.derive.machines import MachineBook
from loopwatch.pools.derive.offer import Offer, offer_of
from loopwatch.pools.families.machines import MACHINES, PLACEMENT, MachinesFacts, PlacementFacts
from loopwatch.pools.machine import Machine
from loopwatch.pools.model import MachinePool
from loopwatch.pools.observe import PoolsObserver

_NEVER_SEEN: Final = object()


def _same(before: object, pool: MachinePool) -> bool:
    """True where a relist brought the pool as it was."""
    return isinstance(before, MachinePool) and before.status == pool.status and before.spec == pool.spec


class Placement:
    """Of every pool that the observer sees; the sink of the Machines' reflector, where `counts_machines`."""

    def __init__(self, store: Store, observer: PoolsObserver, *, counts_machines: bool) -> None:
        self._store, self._observer, self._counts_machines = store, observer, counts_machines
        self._book = MachineBook()
        self._pools: dict[str, MachinePool | None] = {}
        self._offers: dict[str, Offer] = {}
        self._listed = False
        self._fresh = True
        observer.subscribe(self._pool_changed)
        observer.subscribe_lists(self._put_machines)

    def show_machines(self, *, fresh: bool) -> None:
        """Show the Machines that are known, or nothing of them where it is too long ago that the API said so."""
        if fresh is not self._fresh:
            self._fresh = fresh
            self._put(self._pools)
            self._put_machines()

    def replaced(self, objects: Mapping[ObjectKey, Machine], undecodable: frozenset[ObjectKey], at: float) -> None:
        """A complete list; of those that can't be decoded nothing is known."""
        del undecodable
        moved = self._book.replace(objects, at)
        if not self._listed:
            self._listed = True
            moved |= self._pools.keys()
        self._put(moved)
        self._put_machines()
        self.show_machines(fresh=True)

    def changed(self, key: ObjectKey, obj: Machine, at: float) -> None:
        """ADDED or MODIFIED."""
        self._moved(self._book.see(key, obj, at))

    def deleted(self, key: ObjectKey, at: float) -> None:
        """DELETED."""
        del at
        self._moved(self._book.forget(key))

    def undecodable(self, key: ObjectKey, at: float) -> None:
        """An event whose object is not what the API says it is."""
        self.deleted(key, at)

    def _pool_changed(self, name: str) -> None:
        """Called at each renewal of a Lease too: what has not to do with the pool's object ends here."""
        view = self._observer.views.get(name)
        if view is None or not view.exists:
            if name in self._pools:
                self._lose_pool(name)
            return
        before = self._pools.get(name, _NEVER_SEEN)
        if before is view.pool:
            return
        self._pools[name] = view.pool
        if before is _NEVER_SEEN:
            self._book.pool_exists(name)
            self._put_machines()
        if view.pool is not None and not _same(before, view.pool):
            self._offers[name] = offer_of(view.pool)
            self._put((name,))

    def _lose_pool(self, name: str) -> None:
        del self._pools[name]
        self._offers.pop(name, None)
        self._book.pool_gone(name)
        self._store.drop(PLACEMENT, (name,))
        self._put_machines()

    def _moved(self, pools: tuple[str, ...]) -> None:
        self._put(pools)
        if any(name not in self._pools for name in pools):
            self._put_machines()

    def _put(self, pools: Iterable[str]) -> None:
        known = self._listed and self._fresh
        for name in pools:
            offer = self._offers.get(name)
            if offer is not None:
                machines = self._book.of(name) if known else None
                self._store.put(PLACEMENT, (name,), PlacementFacts(offer, machines))

    def _put_machines(self) -> None:
        if not self._counts_machines:
            return
        if not (self._listed and self._fresh):
            self._store.drop(MACHINES, ())
            return
        missing = self._book.on_missing_pool if self._observer.pools_listed else None
        self._store.put(MACHINES, (), MachinesFacts(missing, self._book.unbound_waiting))
