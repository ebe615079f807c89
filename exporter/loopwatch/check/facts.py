"""What the probes saw, as plain data: `judge` reads nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loopwatch.iri.probe import ProbeResult
from loopwatch.pools.model import Lease, MachinePool
from loopwatch.rbac.model import Right


@dataclass(frozen=True, slots=True)
class Trouble:
    """An answer that is no success, or none: `status` is 0 then."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class RightAnswer:
    """What the API server says of one right; None where it could not be asked. `namespace` is empty for one in the whole cluster."""

    right: Right
    allowed: bool | None
    namespace: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Objects:
    """One complete look at pools and Leases. `undecodable` are (plural, name). A trouble says why one of the two is missing."""

    pools: Mapping[str, MachinePool] = field(default_factory=dict)
    leases: Mapping[str, Lease] = field(default_factory=dict)
    undecodable: tuple[tuple[str, str], ...] = ()
    pools_trouble: Trouble | None = None
    leases_trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class ManagerLease:
    """The Lease by which ironcore-controller-manager elects; `moved` where it was renewed while we looked."""

    holder: str
    moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything. `api_version` is empty where the API server did not answer, which `api_error` explains; nothing else was asked then.

    `skew_seconds`: how much the API server's clock is ahead of ours; None where it did not say. `namespace_exists` None: it may not be
    asked. `runtime` None: nobody was asked, because none is there (`runtime_wanted`) or none was wanted.
    """

    api_version: str = ""
    api_error: str = ""
    skew_seconds: float | None = None
    group_trouble: Trouble | None = None
    group_versions: tuple[str, ...] = ()
    namespace_exists: bool | None = None
    rights: tuple[RightAnswer, ...] = ()
    before: Objects = Objects()
    after: Objects = Objects()
    watched_seconds: float = 0.0
    manager_lease: ManagerLease | None = None
    runtime: ProbeResult | None = None
    runtime_wanted: bool = False
