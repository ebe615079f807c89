"""What is exposed of the Machines on each pool, of what the pool can hold, and of Machines that no pool holds.

What comes from the MachinePool alone is exposed wherever pools are watched; what needs the Machines, by controllers that watch them
(`--machines`), and by those only while the copy of the Machines is whole and fresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label
from loopwatch.metrics.values import Samples, Since
from loopwatch.pools.derive.machines import STATES, PoolMachines
from loopwatch.pools.derive.offer import TAINT_EFFECTS, Number, Offer
from loopwatch.pools.families.pool import MACHINE_POOL

_CONTROLLER: Final = (Component.CONTROLLER,)
_CLASS: Final = Label("machine_class", "the classes in the pool's status")


class PlacementFacts(msgspec.Struct, frozen=True):
    """One pool that exists; `machines` is None where Machines are not watched, or nothing certain is known of them."""

    offer: Offer
    machines: PoolMachines | None


def _by_class(numbers: Mapping[str, Number]) -> Samples:
    return {(machine_class,): number for machine_class, number in numbers.items()}


def _allocatable_computed(facts: PlacementFacts) -> Samples:
    if facts.machines is None:
        return None
    used = facts.machines.classes
    return _by_class({name: max(number - used.get(name, 0), 0) for name, number in facts.offer.capacity.items()})


def _machines(facts: PlacementFacts) -> Samples:
    if facts.machines is None:
        return None
    return {(state,): count for state, count in zip(STATES, facts.machines.states, strict=True)}


def _stranded(facts: PlacementFacts) -> Samples:
    if facts.machines is None:
        return None
    return facts.machines.staying if facts.offer.unready else 0


def _oldest_pending(facts: PlacementFacts) -> Samples:
    if facts.machines is None or facts.machines.waiting_since is None:
        return None
    return Since(facts.machines.waiting_since)


PLACEMENT: Final = Group(
    "placement",
    (MACHINE_POOL,),
    (
        Family[PlacementFacts](
            "loopwatch_machinepool_capacity",
            Kind.GAUGE,
            "How many Machines of the class the pool can hold, from its status (class/machine.<class>); absent where it can't be read.",
            lambda facts: _by_class(facts.offer.capacity),
            Authority.LEADER,
            labels=(_CLASS,),
        ),
        Family[PlacementFacts](
            "loopwatch_machinepool_allocatable",
            Kind.GAUGE,
            "How many more of the class it can hold, from its status. IronCore v0.5.0 takes one off for any number of Machines.",
            lambda facts: _by_class(facts.offer.allocatable),
            Authority.LEADER,
            labels=(_CLASS,),
        ),
        Family[PlacementFacts](
            "loopwatch_machinepool_allocatable_computed",
            Kind.GAUGE,
            "Its capacity less the Machines of the class that are bound to the pool, in any state; never below 0.",
            _allocatable_computed,
            Authority.LEADER,
            labels=(_CLASS,),
            exposed_by=_CONTROLLER,
        ),
        Family[PlacementFacts](
            "loopwatch_machinepool_maintenance",
            Kind.GAUGE,
            "1 while the pool carries the taint maintenance.ironcore.dev.",
            lambda facts: int(facts.offer.maintenance),
            Authority.LEADER,
        ),
        Family[PlacementFacts](
            "loopwatch_machinepool_taints",
            Kind.GAUGE,
            "The pool's taints, by their effect.",
            lambda facts: {(effect,): count for effect, count in zip(TAINT_EFFECTS, facts.offer.taints, strict=True)},
            Authority.LEADER,
            labels=(Label("effect", ", ".join(TAINT_EFFECTS)),),
        ),
        Family[PlacementFacts](
            "loopwatch_machinepool_machines",
            Kind.GAUGE,
            "Machines bound to the pool, by status.state: as the machinepoollet wrote it last, so a dead pool's still say Running.",
            _machines,
            Authority.LEADER,
            labels=(Label("state", ", ".join(STATES)),),
            exposed_by=_CONTROLLER,
        ),
        Family[PlacementFacts](
            "loopwatch_machinepool_stranded_machines",
            Kind.GAUGE,
            "Machines that are not being deleted, on a pool whose Ready is False or Unknown; 0 on any other.",
            _stranded,
            Authority.LEADER,
            exposed_by=_CONTROLLER,
        ),
        Family[PlacementFacts](
            "loopwatch_machinepool_oldest_pending_machine_age_seconds",
            Kind.GAUGE,
            "Seconds since this process first saw the Machine Pending on the pool that waits longest; those being deleted don't wait.",
            _oldest_pending,
            Authority.LEADER,
            exposed_by=_CONTROLLER,
        ),
    ),
)


class MachinesFacts(msgspec.Struct, frozen=True):
    """Machines that no pool holds; `on_missing_pool` is None until it is known which pools exist."""

    on_missing_pool: int | None
    unbound_waiting: Mapping[str, int]


MACHINES: Final = Group(
    "machines",
    (),
    (
        Family[MachinesFacts](
            "loopwatch_machines_on_missing_pool",
            Kind.GAUGE,
            "Machines whose machinePoolRef names a pool that does not exist.",
            lambda facts: facts.on_missing_pool,
            Authority.LEADER,
            exposed_by=_CONTROLLER,
        ),
        Family[MachinesFacts](
            "loopwatch_machines_unbound_pending",
            Kind.GAUGE,
            "Machines in state Pending that have no pool yet and are not being deleted; a class that has none is absent.",
            lambda facts: _by_class(facts.unbound_waiting),
            Authority.LEADER,
            labels=(Label("machine_class", "the classes that such Machines name"),),
            exposed_by=_CONTROLLER,
        ),
    ),
)
