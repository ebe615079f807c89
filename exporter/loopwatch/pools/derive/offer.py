"""What a pool says it can hold, and what keeps Machines away from it: read from one MachinePool, once each time it changes.

Quantities are read exactly (loopwatch.quantities). What can't be read is left out: a number that nobody published is no number, and the
rest of the pool is as good as it was.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import msgspec

from loopwatch import quantities
from loopwatch.pools.model import MachinePool, Quantities, ready_status

CLASS_PREFIX: Final = "class/machine."
"""Of a resource name: how many Machines of the class that follows. The class is a DNS subdomain, dots included."""
MAINTENANCE_TAINT: Final = "maintenance.ironcore.dev"
"""The key that IronCore's pool-lifecycle-controller taints a pool with, while its host is taken out of service."""
TAINT_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule", "Other")

Number = int | float


class Offer(msgspec.Struct, frozen=True):
    """Capacities by class, as published; `taints` by TAINT_EFFECTS; `unready` where Ready is False or Unknown, not where it is absent."""

    capacity: Mapping[str, Number] = {}
    allocatable: Mapping[str, Number] = {}
    maintenance: bool = False
    taints: tuple[int, ...] = (0,) * len(TAINT_EFFECTS)
    unready: bool = False


def offer_of(pool: MachinePool) -> Offer:
    """The offer of a pool as last seen."""
    taints = (pool.spec.taints if pool.spec else None) or ()
    effects = [taint.effect if taint.effect in TAINT_EFFECTS else "Other" for taint in taints]
    return Offer(
        capacity=_by_class(pool.status.capacity if pool.status else None),
        allocatable=_by_class(pool.status.allocatable if pool.status else None),
        maintenance=any(taint.key == MAINTENANCE_TAINT for taint in taints),
        taints=tuple(effects.count(effect) for effect in TAINT_EFFECTS),
        unready=ready_status(pool.ready) in {"false", "unknown"},
    )


def _by_class(published: Quantities | None) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for name, quantity in (published or {}).items():
        machine_class = name.removeprefix(CLASS_PREFIX)
        number = _number(quantity) if machine_class != name and machine_class else None
        if number is not None:
            numbers[machine_class] = number
    return numbers


@functools.lru_cache(maxsize=4096)
def _number(quantity: float | str | None) -> Number | None:
    """The quantity, None where it is none. Many pools publish the same few."""
    if quantity is None:
        return None
    try:
        exact = quantities.parse(quantity)
    except ValueError:
        return None
    return int(exact) if exact.denominator == 1 else float(exact)
