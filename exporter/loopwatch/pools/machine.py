"""Of a Machine: the pool, the class, the state, whether it is being deleted. There may be 100,000, so this is all that is kept of each.

Field names are the API's (compute.ironcore.dev/v1alpha1). A Machine's conditions are not read: v0.5.0 rewrites their times at each
reconcile, so "since" is by observation everywhere.
"""

from __future__ import annotations

import sys
from typing import Final

import msgspec

from loopwatch.pools.model import Struct

PENDING: Final = "Pending"
MACHINE_STATES: Final = (PENDING, "Running", "Shutdown", "Terminated", "Terminating")


class Machine(Struct, frozen=True):
    """What is kept. `pool` is empty where no pool is chosen yet; `uid` where nobody waits for this Machine to start."""

    pool: str
    machine_class: str
    state: str
    deleting: bool
    uid: str = ""

    @property
    def waits(self) -> bool:
        """True where somebody waits for it to start: Pending, and not being deleted."""
        return self.state == PENDING and not self.deleting


class _Reference(Struct, frozen=True):
    name: str | None = None


class _Metadata(Struct, frozen=True):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(Struct, frozen=True):
    machine_class_ref: _Reference | None = None
    machine_pool_ref: _Reference | None = None


class _Status(Struct, frozen=True):
    state: str | None = None


class _Object(Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


_NO_SPEC: Final = _Spec()
_decode: Final = msgspec.json.Decoder(_Object).decode


def decode_machine(raw: bytes | msgspec.Raw) -> Machine:
    """A Machine from its JSON; msgspec.DecodeError. A state that nobody has written yet is Pending, as IronCore's API defaults it."""
    found = _decode(raw)
    spec = found.spec or _NO_SPEC
    state = (found.status.state if found.status else None) or PENDING
    deleting = found.metadata.deletion_timestamp is not None
    return Machine(
        pool=_shared(spec.machine_pool_ref),
        machine_class=_shared(spec.machine_class_ref),
        state=sys.intern(state),
        deleting=deleting,
        uid=found.metadata.uid if state == PENDING and not deleting else "",
    )


def _shared(reference: _Reference | None) -> str:
    """The name referred to; one text in memory for all who name it."""
    return sys.intern((reference and reference.name) or "")
