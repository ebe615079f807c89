"""Who runs in a scenario: a process that can stand still, die and come back; and controllers. What runs in a pod is in `pods`.

A host is a place: it keeps its name and its network over the processes that run there one after the other.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from loopwatch.controller import Clusters, Controller
from loopwatch.election.derive import Election
from loopwatch.kube.transport import Transport
from loopwatch.settings.model import ControllerSettings
from tests.faults.ground import ELECTION, Ground, Process, Task
from tests.faults.seeding import uuid_of

T = TypeVar("T")


class Host(ABC):
    """`process` is the one that runs, or ran last; `client` is how the API server knows it."""

    def __init__(self, ground: Ground, name: str) -> None:
        self.ground, self.name = ground, name
        self.incarnation = 0
        self.process: Process | None = None
        self.started_at = 0.0
        self.ending = False
        self._task: Task | None = None

    @property
    def client(self) -> str:
        """The User-Agent of the process."""
        return f"{self.name}.{self.incarnation}"

    @property
    def uuid(self) -> uuid.UUID:
        """What makes the identity of the process unique; the same each time that the seed is played."""
        return uuid_of(f"{self.ground.seed} {self.client}")

    @property
    def up(self) -> bool:
        """A process is there, running or standing still."""
        return self.process is not None and not self.process.killed and self._task is not None and not self._task.done()

    @property
    def running(self) -> bool:
        """It is there and does not stand still."""
        return self.up and self.process is not None and self.process.runs

    def start(self) -> None:
        """A new process; nothing where one is there."""
        if self.up:
            return
        self.incarnation += 1
        self.ending = False
        self._forget()
        self.process = self.ground.new_process(self.client)
        self.started_at = self.ground.now
        self._task = self.process.start(self._run(self.process, self.client))
        self.ground.journal.note(self.client, "starts")

    def kill(self) -> None:
        """SIGKILL: its tasks never run again, its kernel closes its connections."""
        if self.up and self.process is not None:
            self.process.kill()
            self.ground.reset(self.client)
            self.ground.journal.note(self.client, "is killed")

    def terminate(self) -> None:
        """SIGTERM: its tasks are cancelled, and do what they do then."""
        if self.up and self.process is not None:
            self.ending = True
            self.process.terminate()
            self.ground.journal.note(self.client, "is told to end")

    def stall(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so many seconds."""
        if self.up and self.process is not None:
            self.process.stall(seconds)
            self.ground.journal.note(self.client, f"stands still for {seconds:.3f} s")

    def jump_wall(self, seconds: float) -> None:
        """Its wall clock moves."""
        if self.process is not None:
            self.process.clock.jump_wall(seconds)
            self.ground.journal.note(self.client, f"its wall clock jumps by {seconds:g} s")

    def ask(self, question: Callable[[], T]) -> T | None:
        """An answer from within its process; None where there is none, or it stands still."""
        return self.ground.ask(self.process, question) if self.running and self.process is not None else None

    async def _run(self, process: Process, client: str) -> None:
        try:
            async with self.ground.transport(process, self.name, client) as transport:
                await self._work(process, transport)
        except Exception as error:  # noqa: BLE001 - whatever ends a process is what the scenario asks about
            self._ended(error)
        else:
            self._ended(None)

    @abstractmethod
    def _forget(self) -> None:
        """Let go what belonged to the process before."""

    def _ended(self, error: BaseException | None) -> None:
        self.ground.ended(self, error)

    @abstractmethod
    def _work(self, process: Process, transport: Transport) -> Coroutine[Any, Any, None]:
        """What the process does until it is cancelled."""


class ControllerHost(Host):
    """`loopwatch controller`."""

    kind: type[Controller] = Controller

    def __init__(self, ground: Ground, name: str, *, mark_never_reported: bool) -> None:
        super().__init__(ground, name)
        self.controller: Controller | None = None
        self._mark_never_reported = mark_never_reported

    def _forget(self) -> None:
        self.controller = None

    async def _work(self, process: Process, transport: Transport) -> None:
        times = self.ground.times
        settings = ControllerSettings(
            machine_pool_lifecycle_grace_period_seconds=times.grace,
            mark_never_reported=self._mark_never_reported,
            leader_elect_lease_duration_seconds=times.election.lease_duration_seconds,
            leader_elect_renew_deadline_seconds=times.election.renew_deadline_seconds,
            leader_elect_retry_period_seconds=times.election.retry_period_seconds,
            leader_elect_resource_name=ELECTION.name,
            leader_elect_resource_namespace=ELECTION.namespace,
        )
        self.controller = self.kind(settings, Clusters.one(transport), process.clock, times.reflector)
        self._name_it(self.controller)
        self.ground.made(self)
        await self.controller.run()

    def _name_it(self, controller: Controller) -> None:
        """Its identity in the election, which has a random part: the seed's, before anything was done with it."""
        elector = controller.elector
        if elector is not None:
            identity = f"{self.name}_{self.uuid}"
            elector._lease.identity = identity  # type: ignore[misc]  # read-only for whom it is made for
            elector._election = Election(identity, elector._lease.times)
