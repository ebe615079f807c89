"""What a scenario stands on: its time, its processes, their ways to the API server, and the API server's faults.

There are two: the sandbox in virtual time (`sandbox`), and a real kube-apiserver behind a proxy in real time (`real`). Hosts, hands,
troubles and invariants are the same on both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeVar

from loopwatch.clock import Clock
from loopwatch.kube.resources import ObjectKey, Resource
from loopwatch.kube.transport import Request, Transport
from loopwatch.sandbox.faults import Fault
from tests.faults.journal import Journal
from tests.faults.times import Times
from tests.faults.truth import Write

T = TypeVar("T")
Cut = Literal["drop", "refuse"]
"""`drop`: what is sent vanishes, or arrives late when the partition is healed; `refuse`: connections are reset, new ones refused."""
End = Callable[[], object]
Document = dict[str, Any]
ELECTION = ObjectKey("default", "loopwatch-controller")
"""The election's Lease."""
RESOURCES = ("leases", "machinepools", "machines", "machineclasses", "election", "other")
"""What a partition can be of: plurals of the API; the Leases of other namespaces than the heartbeats' are `election`."""


class WallClock(Clock, Protocol):
    """A process's clock, whose wall clock can be moved."""

    def jump_wall(self, seconds: float) -> None:
        """Move the wall clock alone."""
        ...


class Task(Protocol):
    """The work of a process."""

    def done(self) -> bool:
        """It has ended."""
        ...


class Process(Protocol):
    """One process; see tests.support.processes."""

    stalled_until: float
    killed: bool

    @property
    def clock(self) -> WallClock:
        """Its clock."""
        ...

    @property
    def runs(self) -> bool:
        """Neither stalled nor dead."""
        ...

    def start(self, work: Coroutine[Any, Any, Any]) -> Task:
        """Run a task in this process."""
        ...

    def stall(self, seconds: float) -> None:
        """Stand still from now on."""
        ...

    def kill(self) -> None:
        """SIGKILL."""
        ...

    def terminate(self) -> None:
        """SIGTERM."""
        ...


class Conflict(Exception):
    """Somebody else has written the object meanwhile."""


class Api(Protocol):
    """An administrator's way past every fault."""

    def read(self, resource: Resource, key: ObjectKey) -> Document | None:
        """A copy of an object; None where there is none."""
        ...

    def create(self, resource: Resource, body: Document) -> None:
        """Create an object that does not exist."""
        ...

    def patch(self, resource: Resource, key: ObjectKey, body: Document, subresource: str = "") -> None:
        """A merge patch. Conflict where it names another resourceVersion than is stored."""
        ...

    def delete(self, resource: Resource, key: ObjectKey) -> None:
        """Delete an object; one that is gone already is as good."""
        ...

    def inject(self, resource: Resource, body: Document) -> None:
        """Store an object past every check."""
        ...


class Ground(ABC):
    """Of one scenario. Whoever looks on sets the `on_…`, `made` and `ended`.

    `on_send`: a process (client) sends a request. `on_answer`: it has read an answer, with this status; and a moment at which the server
    had not yet looked at what it answered with. `on_write`: a pool's or a heartbeat Lease's write was accepted, in their order. `made`: a
    process of the product is about to run. `ended`: one ended by itself, and why.
    """

    def __init__(self, journal: Journal, times: Times, seed: str) -> None:
        self.journal, self.times, self.seed = journal, times, seed
        self.on_send: Callable[[str, Request], None] = lambda _client, _request: None
        self.on_answer: Callable[[str, Request, int, float], None] = lambda _client, _request, _status, _handled_at: None
        self.on_write: Callable[[Write], None] = lambda _write: None
        self.made: Callable[[Any], None] = lambda _host: None
        self.ended: Callable[[Any, BaseException | None], None] = lambda _host, _error: None

    @property
    @abstractmethod
    def now(self) -> float:
        """Monotonic seconds."""

    @property
    @abstractmethod
    def api(self) -> Api:
        """The administrator's."""

    @abstractmethod
    def at(self, when: float, what: Callable[[], object]) -> None:
        """Have `what` happen at a moment, in nobody's process."""

    @abstractmethod
    def new_process(self, client: str) -> Process:
        """A process that has nothing to do yet."""

    @abstractmethod
    def transport(self, process: Process, host: str, client: str) -> AbstractAsyncContextManager[Transport]:
        """A process's way to the API server, open while the context is."""

    @abstractmethod
    def reset(self, client: str) -> None:
        """A process died: its kernel closes its connections."""

    @abstractmethod
    def ask(self, process: Process, question: Callable[[], T]) -> T | None:
        """An answer from within a process; None where it gives none now."""

    @abstractmethod
    def new_clock(self, name: str) -> Clock:
        """A clock for something that is no process."""

    @abstractmethod
    def add_fault(self, fault: Fault) -> End:
        """Put a fault of the API server in force."""

    @abstractmethod
    def partition(self, hosts: Sequence[str], resources: Sequence[str], cut: Cut) -> End:
        """Cut these hosts off from these resources."""

    @abstractmethod
    def stall_server(self, hosts: Sequence[str], seconds: float) -> End:
        """The API server stands still for so long; `hosts` are all there are."""

    @abstractmethod
    def compact(self) -> None:
        """The API server forgets its history."""

    @abstractmethod
    def holders(self, at: float) -> set[str]:
        """Whom the election's Lease named at this moment, which has just been; more than one where nobody knows to the moment."""
