"""What was seen of pools and Leases, and when: the two reflectors' events become views, the views become samples.

Synchronous throughout: an event is observed, derived and stored before the next one is read, so whoever asks the store asks about all
that has arrived. It decides nothing and writes nothing; a broken object costs its own pool only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.resources import ObjectKey
from loopwatch.metrics.family import Group
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Moment
from loopwatch.pools.derive import elsewhere
from loopwatch.pools.derive import sight as sights
from loopwatch.pools.derive import view as views
from loopwatch.pools.derive.sight import Sight
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.families.lifecycle import LIFECYCLE, LifecycleFacts
from loopwatch.pools.model import Lease, MachinePool

LEASES: Final = "leases"
MACHINE_POOLS: Final = "machinepools"


class PoolsObserver:
    """The views of all pools in scope. With a grace period it also keeps the clock of sight (the controller); without one it has none."""

    def __init__(self, store: Store, pools: Group[PoolView], clock: Clock, *, grace_seconds: float | None = None) -> None:
        self.machine_pools = MachinePoolSink(self)
        self.leases = LeaseSink(self)
        self.pools_listed = False
        self.leases_listed = False
        self._store, self._pools, self._clock = store, pools, clock
        self._grace_seconds = grace_seconds
        self._began = clock.monotonic()
        self._sight: Sight | None = None
        if grace_seconds is not None:
            self._sight = sights.begin(grace_seconds, (LEASES, MACHINE_POOLS), self._began)
        self._views: dict[str, PoolView] = {}
        self._durations: Counter[int] = Counter()
        self._subscribers: list[Callable[[str], None]] = []
        self._list_subscribers: list[Callable[[], None]] = []
        self._marked_elsewhere = False
        self._put_lifecycle()

    @property
    def views(self) -> Mapping[str, PoolView]:
        """Every view, by the pool's name."""
        return self._views

    def pool(self, name: str) -> MachinePool | None:
        """The pool as last seen; None where it was not, or can't be decoded any more."""
        view = self._views.get(name)
        return view.pool if view and view.pool_readable else None

    def lease(self, name: str) -> Lease | None:
        """The pool's Lease as last seen."""
        view = self._views.get(name)
        return view.lease if view and view.lease_readable else None

    @property
    def largest_lease_seconds(self) -> int:
        """The largest duration that any Lease publishes now; 0 where none does."""
        return max(self._durations, default=0)

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Have `changed` called with the pool's name after each change of a view."""
        self._subscribers.append(changed)

    def subscribe_lists(self, listed: Callable[[], None]) -> None:
        """Have `listed` called after each complete list of pools or of Leases, also one that changes no view."""
        self._list_subscribers.append(listed)

    def moment(self) -> Moment:
        """Now, on both clocks."""
        at = self._clock.monotonic()
        return Moment(at, self._sight_at(at))

    def has_sight(self) -> bool:
        """True where silence is being counted at this moment."""
        return self._sight is None or self._sight.has(self._clock.monotonic())

    def blind_seconds(self) -> float:
        """Seconds since sight was lost, or since the beginning where there never was any; 0 in sight."""
        if self._sight is None:
            return 0.0
        return max(self._clock.monotonic() - max(self._sight.until, self._began), 0.0)

    def answered(self, resource: str, at: float) -> bool:
        """A read of `resource` was answered with 200. True where sight came (back) with it; a gap that ends counts for every pool."""
        if self._sight is None or self._grace_seconds is None:
            return False
        had_sight = self._sight.has(at)
        self._sight, gap_ended = sights.answered(self._sight, resource, at)
        if gap_ended:
            sight_at = self._sight_at(at)
            for view in list(self._views.values()):
                self._put(views.after_gap(view, grace_seconds=self._grace_seconds, sight_at=sight_at))
        self._put_lifecycle()
        return not had_sight and self._sight.has(at)

    def count_mark(self, name: str) -> None:
        """Count an Unknown that this process wrote on the pool."""
        view = self._views.get(name)
        if view is not None:
            self._put(msgspec.structs.replace(view, marks=view.marks + 1))

    def see_pool(self, name: str, pool: MachinePool, at: float) -> None:
        """A pool as an answer or an event showed it. The same version again (a list, a write's echo on the watch) is no news."""
        view = self._view(name, at)
        if view.pool == pool and view.pool_readable:
            return
        if elsewhere.marked_by_another(view.pool, pool) and not self._marked_elsewhere:
            self._marked_elsewhere = True
            self._put_lifecycle()
        self._put(views.see_pool(view, pool, at=at, sight_at=self._sight_at(at)))

    def see_lease(self, name: str, lease: Lease | None, at: float) -> None:
        """A Lease as an answer or an event showed it; None where it does not exist."""
        view = self._views.get(name)
        if view is None and lease is None:
            return
        if view is not None and view.lease_known and view.lease_readable and view.lease == lease:
            return
        self._count_durations(view.lease if view else None, lease)
        seen = views.see_lease(view or self._view(name, at), lease, at=at, sight_at=self._sight_at(at))
        self._put(self._settled(seen))

    def lose_pool(self, name: str, at: float) -> None:
        """The pool does not exist (any more)."""
        view = self._views.get(name)
        if view is not None and (view.pool is not None or not view.pool_readable):
            self._put(self._settled(views.without_pool(view, at=at, sight_at=self._sight_at(at))))

    def unreadable(self, name: str, at: float, *, pool: bool) -> None:
        """One of the pool's objects can't be decoded: it is never marked while that is so."""
        view = self._view(name, at)
        lost = msgspec.structs.replace(view, pool_readable=False) if pool else views.lose_lease(view, sight_at=self._sight_at(at))
        self._put(lost)

    def pools_replaced(self) -> None:
        """A list of pools is complete; with the first one it is known which Leases are orphans."""
        if not self.pools_listed:
            self.pools_listed = True
            for view in list(self._views.values()):
                self._put(self._settled(view))
        self._tell_listed()

    def leases_replaced(self) -> None:
        """A list of Leases is complete."""
        self.leases_listed = True
        self._tell_listed()

    def _tell_listed(self) -> None:
        for listed in self._list_subscribers:
            listed()

    def _settled(self, view: PoolView) -> PoolView:
        """A lease without a pool is an orphan only once the list of pools is known."""
        missing = view.pool is None and view.pool_readable and view.lease is not None and self.pools_listed
        return view if view.orphaned == missing else msgspec.structs.replace(view, orphaned=missing)

    def _view(self, name: str, at: float) -> PoolView:
        return self._views.get(name) or views.first_sight(name, at=at, sight_at=self._sight_at(at), lease_known=self.leases_listed)

    def _put(self, view: PoolView) -> None:
        if view is self._views.get(view.name):
            return
        if view.pool is None and view.lease is None and view.readable:
            self._views.pop(view.name, None)
            self._store.drop(self._pools, (view.name,))
        else:
            self._views[view.name] = view
            self._store.put(self._pools, (view.name,), view)
        for changed in self._subscribers:
            changed(view.name)

    def _sight_at(self, at: float) -> float:
        return at if self._sight is None else self._sight.seconds(at)

    def _count_durations(self, before: Lease | None, after: Lease | None) -> None:
        old, new = (before.duration_seconds if before else None), (after.duration_seconds if after else None)
        if old == new:
            return
        if old is not None:
            self._durations[old] -= 1
            if not self._durations[old]:
                del self._durations[old]
        if new is not None:
            self._durations[new] += 1
        self._put_lifecycle()

    def _put_lifecycle(self) -> None:
        if self._sight is None or self._grace_seconds is None:
            return
        lost = tuple((resource, max(self._sight.lost_at(resource), self._began)) for resource in self._sight.resources)
        self._store.put(LIFECYCLE, (), LifecycleFacts(self._grace_seconds, self.largest_lease_seconds, lost, self._marked_elsewhere))


class MachinePoolSink:
    """Takes the MachinePools' reflector into the observer."""

    def __init__(self, observer: PoolsObserver) -> None:
        self._observer = observer

    def replaced(self, objects: Mapping[ObjectKey, MachinePool], undecodable: frozenset[ObjectKey], at: float) -> None:
        """A complete list: what it lacks is gone, also when the DELETE fell into a watch gap."""
        there = {key.name for key in (*objects, *undecodable)}
        for name in [name for name in self._observer.views if name not in there]:
            self._observer.lose_pool(name, at)
        for key, pool in objects.items():
            self._observer.see_pool(key.name, pool, at)
        for key in undecodable:
            self._observer.unreadable(key.name, at, pool=True)
        self._observer.pools_replaced()

    def changed(self, key: ObjectKey, obj: MachinePool, at: float) -> None:
        """ADDED or MODIFIED."""
        self._observer.see_pool(key.name, obj, at)

    def deleted(self, key: ObjectKey, at: float) -> None:
        """DELETED."""
        self._observer.lose_pool(key.name, at)

    def undecodable(self, key: ObjectKey, at: float) -> None:
        """An event whose object is not what the API says it is."""
        self._observer.unreadable(key.name, at, pool=True)


class LeaseSink:
    """Takes the Leases' reflector into the observer."""

    def __init__(self, observer: PoolsObserver) -> None:
        self._observer = observer

    def replaced(self, objects: Mapping[ObjectKey, Lease], undecodable: frozenset[ObjectKey], at: float) -> None:
        """A complete list."""
        there = {key.name for key in (*objects, *undecodable)}
        for name in [view.name for view in self._observer.views.values() if view.name not in there]:
            self._observer.see_lease(name, None, at)
        for key, lease in objects.items():
            self._observer.see_lease(key.name, lease, at)
        for key in undecodable:
            self._observer.unreadable(key.name, at, pool=False)
        self._observer.leases_replaced()

    def changed(self, key: ObjectKey, obj: Lease, at: float) -> None:
        """ADDED or MODIFIED."""
        self._observer.see_lease(key.name, obj, at)

    def deleted(self, key: ObjectKey, at: float) -> None:
        """DELETED, which upstream counts as a change like any other."""
        self._observer.see_lease(key.name, None, at)

    def undecodable(self, key: ObjectKey, at: float) -> None:
        """An event whose object is not what the API says it is."""
        self._observer.unreadable(key.name, at, pool=False)
