"""Counts Machines by pool as they come, change and go: an event costs the same whether there are ten or 100,000 of them.

A book kept without I/O and without a clock: it is told what was seen, and when. Machines that name a pool which does not exist (yet, or any
more) are counted for that name all the same, so that a pool that is made again finds its Machines. The counts always equal a recount.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from loopwatch.pools.machine import MACHINE_STATES, Machine

Key = tuple[str, str]
"""Namespace and name."""
AnyKey = TypeVar("AnyKey", bound=Key)
OTHER: Final = "Other"
STATES: Final = (*MACHINE_STATES, OTHER)
UNBOUND: Final = ""
"""Where Machines without a pool are counted."""


class PoolMachines(msgspec.Struct, frozen=True):
    """The Machines of one pool: how many in each of STATES, of each class, not being deleted; since when the first of those waits."""

    states: tuple[int, ...] = (0,) * len(STATES)
    classes: Mapping[str, int] = {}
    staying: int = 0
    waiting_since: float | None = None


NO_MACHINES: Final = PoolMachines()


class _Tally:
    """One pool's counts while they move. `waiting` is in the order of observation, so that its first entry waits longest."""

    __slots__ = ("classes", "states", "staying", "waiting")

    def __init__(self) -> None:
        self.states = [0] * len(STATES)
        self.classes: Counter[str] = Counter()
        self.staying = 0
        self.waiting: OrderedDict[Key, float] = OrderedDict()

    def count(self, machine: Machine, by: int) -> None:
        self.states[_state_number(machine.state)] += by
        self.staying += 0 if machine.deleting else by
        self.classes[machine.machine_class] += by
        if not self.classes[machine.machine_class]:
            del self.classes[machine.machine_class]

    @property
    def empty(self) -> bool:
        return not self.classes

    def frozen(self) -> PoolMachines:
        first = next(iter(self.waiting.values()), None)
        return PoolMachines(tuple(self.states), dict(self.classes), self.staying, first)


class MachineBook:
    """All Machines, and the pools that exist."""

    def __init__(self) -> None:
        self._machines: dict[Key, Machine] = {}
        self._tallies: dict[str, _Tally] = {}
        self._pools: set[str] = set()
        self._unbound_waiting: Counter[str] = Counter()
        self._on_missing_pool = 0

    @property
    def on_missing_pool(self) -> int:
        """Machines whose pool does not exist."""
        return self._on_missing_pool

    @property
    def unbound_waiting(self) -> Mapping[str, int]:
        """Machines without a pool that wait to start, by class; no zeros."""
        return dict(self._unbound_waiting)

    def of(self, pool: str) -> PoolMachines:
        """One pool's Machines."""
        tally = self._tallies.get(pool)
        return tally.frozen() if tally else NO_MACHINES

    def pool_exists(self, name: str) -> None:
        """A pool is there; told again it changes nothing."""
        if name not in self._pools:
            self._pools.add(name)
            self._on_missing_pool -= self._bound_to(name)

    def pool_gone(self, name: str) -> None:
        """A pool is there no more."""
        if name in self._pools:
            self._pools.remove(name)
            self._on_missing_pool += self._bound_to(name)

    def see(self, key: Key, machine: Machine, at: float) -> tuple[str, ...]:
        """A Machine as read or watched at `at`; the pools (or UNBOUND) whose counts moved. The same again moves none."""
        before = self._machines.get(key)
        if before == machine:
            return ()
        self._machines[key] = machine
        if before is None:
            self._enter(key, machine, at)
            return (machine.pool,)
        if _place(before) == _place(machine):
            tally = self._tallies[machine.pool]
            tally.count(before, -1)
            tally.count(machine, 1)
            return (machine.pool,)
        self._leave(key, before)
        self._enter(key, machine, at)
        return (machine.pool,) if before.pool == machine.pool else (before.pool, machine.pool)

    def forget(self, key: Key) -> tuple[str, ...]:
        """A Machine is gone, or can't be decoded: what was known of it no longer holds."""
        before = self._machines.pop(key, None)
        if before is None:
            return ()
        self._leave(key, before)
        return (before.pool,)

    def replace(self, machines: Mapping[AnyKey, Machine], at: float) -> set[str]:
        """These are all the Machines there are."""
        moved: set[str] = set()
        for key in [key for key in self._machines if key not in machines]:
            moved.update(self.forget(key))
        for key, machine in machines.items():
            moved.update(self.see(key, machine, at))
        return moved

    def _enter(self, key: Key, machine: Machine, at: float) -> None:
        tally = self._tallies.get(machine.pool)
        if tally is None:
            tally = self._tallies[machine.pool] = _Tally()
        tally.count(machine, 1)
        if machine.pool != UNBOUND and machine.pool not in self._pools:
            self._on_missing_pool += 1
        if machine.waits and machine.pool == UNBOUND:
            self._unbound_waiting[machine.machine_class] += 1
        elif machine.waits:
            tally.waiting[key] = at

    def _leave(self, key: Key, machine: Machine) -> None:
        tally = self._tallies[machine.pool]
        tally.count(machine, -1)
        tally.waiting.pop(key, None)
        if tally.empty:
            del self._tallies[machine.pool]
        if machine.pool != UNBOUND and machine.pool not in self._pools:
            self._on_missing_pool -= 1
        if machine.waits and machine.pool == UNBOUND:
            self._unbound_waiting[machine.machine_class] -= 1
            if not self._unbound_waiting[machine.machine_class]:
                del self._unbound_waiting[machine.machine_class]

    def _bound_to(self, name: str) -> int:
        tally = self._tallies.get(name)
        return sum(tally.states) if tally else 0


def _place(machine: Machine) -> tuple[str, str, str, bool]:
    """What decides where a Machine is counted, and whether it waits on: all but its state's number."""
    return machine.pool, machine.machine_class, machine.uid, machine.waits


def _state_number(state: str) -> int:
    return _NUMBERS.get(state, len(MACHINE_STATES))


_NUMBERS: Final = {state: number for number, state in enumerate(MACHINE_STATES)}
