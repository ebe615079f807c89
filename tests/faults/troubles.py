"""What may go wrong, as data: each kind of trouble names whom it touches, and is begun and ended by the stage that plays it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar, Literal, TypeAlias

from loopwatch.sandbox.faults import Fault, Respond
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour
from tests.faults.ground import Cut

EVERYBODY = "*"


@dataclass(frozen=True)
class ApiFault:
    """One of the sandbox's faults."""

    fault: Fault

    @property
    def aftermath_seconds(self) -> float:
        """A server that asked for a pause gets it after the fault has ended, too."""
        effect = self.fault.effect
        return float(effect.retry_after_seconds or 0) if isinstance(effect, Respond) else 0.0

    @property
    def touches(self) -> str:
        """The hosts."""
        return self.fault.client.removesuffix(".*")


@dataclass(frozen=True)
class Partition:
    """A host can't reach the API of a resource (or of all, `*`)."""

    host: str
    resource: str
    cut: Cut

    @property
    def touches(self) -> str:
        """The hosts."""
        return self.host


@dataclass(frozen=True)
class Stall:
    """A process stands still while all others run (SIGSTOP, SIGCONT)."""

    host: str

    @property
    def touches(self) -> str:
        """The hosts."""
        return self.host


@dataclass(frozen=True)
class Down:
    """A process ends, killed or told to, and another starts after that time."""

    host: str
    clean: bool

    @property
    def touches(self) -> str:
        """The hosts."""
        return self.host


@dataclass(frozen=True)
class PodDown:
    """A machine is lost: everything in the pool's pod is killed, and starts again after that time."""

    pool: str
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class ServerStall:
    """The API server stands still."""

    touches: ClassVar[str] = EVERYBODY


@dataclass(frozen=True)
class ServerDown:
    """The API server is away: connections are reset, new ones refused."""

    touches: ClassVar[str] = EVERYBODY


@dataclass(frozen=True)
class Compaction:
    """The API server forgets its history: older watches and continue tokens answer 410."""

    touches: ClassVar[str] = EVERYBODY


@dataclass(frozen=True)
class WallJump:
    """A process's wall clock moves by so many seconds, and moves back at the end."""

    host: str
    by_seconds: float
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class RuntimeTrouble:
    """The machine runtime of a pool behaves so; None: it is gone."""

    pool: str
    behaviour: AnyBehaviour | None
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class PodCut:
    """A pool's sidecars can't reach the runtime, or the machinepoollet."""

    pool: str
    to: Literal["runtime", "machinepoollet"]
    cut: Cut
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class PoolGone:
    """A pool is deleted, and made again at the end."""

    pool: str
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class LeaseGone:
    """A pool's Lease is deleted (whoever reports makes it again)."""

    pool: str
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class ForeignCondition:
    """Somebody else puts a condition of another type into a pool's list, and takes it out at the end."""

    pool: str
    type: str
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class SpecChange:
    """Somebody changes a pool's spec: its generation rises."""

    pool: str
    touches: ClassVar[str] = ""


@dataclass(frozen=True)
class BrokenObject:
    """A pool or its Lease can't be decoded until the end: a field has a type that it can't have."""

    pool: str
    of: Literal["pool", "lease"]
    touches: ClassVar[str] = ""


Trouble: TypeAlias = (
    ApiFault
    | Partition
    | Stall
    | Down
    | PodDown
    | ServerStall
    | ServerDown
    | Compaction
    | WallJump
    | RuntimeTrouble
    | PodCut
    | PoolGone
    | LeaseGone
    | ForeignCondition
    | SpecChange
    | BrokenObject
)


@dataclass(frozen=True)
class Misfortune:
    """A trouble from `at`, for `seconds`; both from the beginning of the scenario."""

    at: float
    seconds: float
    trouble: Trouble

    def __str__(self) -> str:
        """As the story tells it."""
        return f"{self.at:9.3f}  for {self.seconds:8.3f} s  {self.trouble}"


def touched(trouble: Trouble, host: str) -> bool:
    """Whether a trouble comes between this host and what it has to do."""
    return fnmatchcase(host, trouble.touches)


def aftermath_seconds(trouble: Trouble) -> float:
    """How long it is felt after its end."""
    return trouble.aftermath_seconds if isinstance(trouble, ApiFault) else 0.0
