"""Who runs in a scenario: controllers, sidecars and machinepoollets, each a process that can stand still, die and come back.

A host is a place: it keeps its name and its network over the processes that run there one after the other.
"""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from loopwatch.controller import Clusters, Controller
from loopwatch.election.derive import Election
from loopwatch.iri.probe import ProbeResult, deadline_exceeded, failed
from loopwatch.kube.resources import ObjectKey
from loopwatch.sandbox.machinepoollet.heartbeat import HeartbeatTimes
from loopwatch.sandbox.machinepoollet.process import Machinepoollet, MachinepoolletSettings
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour
from loopwatch.settings.model import ControllerSettings, Mode, SidecarSettings
from loopwatch.sidecar import Sidecar
from tests.faults.journal import Journal
from tests.faults.times import Times
from tests.faults.wire import Cut, Network, WireTransport
from tests.support.processes import Process, ProcessClock, World

CRASH_BACKOFF_INTERVALS = 1.0
ELECTION = ObjectKey("default", "loopwatch-controller")
"""The election's Lease."""


class Ground:
    """What every host stands on. `made` is told of each process of the product before it runs, `ended` of one that ended by itself."""

    def __init__(self, world: World, network: Network, journal: Journal, times: Times, seed: str) -> None:
        self.world, self.network, self.journal, self.times, self.seed = world, network, journal, times, seed
        self.ended: Callable[[Host, BaseException | None], None] = lambda _host, _error: None
        self.made: Callable[[Host], None] = lambda _host: None


class Host(ABC):
    """`process` is the one that runs, or ran last; `client` is how the API server knows it."""

    def __init__(self, ground: Ground, name: str) -> None:
        self.ground, self.name = ground, name
        self.incarnation = 0
        self.process: Process | None = None
        self.started_at = 0.0
        self.ending = False
        self._task: asyncio.Task[Any] | None = None

    @property
    def client(self) -> str:
        """The User-Agent of the process."""
        return f"{self.name}.{self.incarnation}"

    @property
    def uuid(self) -> uuid.UUID:
        """What makes the identity of the process unique; the same each time that the seed is played."""
        return uuid.UUID(int=hash_of(f"{self.ground.seed} {self.client}"), version=4)

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
        world = self.ground.world
        self.process = Process(world, self.client, seed=hash_of(f"{self.ground.seed} {self.client}"))
        self.ground.journal.names[self.process.loop] = self.client
        self.started_at = world.now
        self._task = self.process.start(self._run(self.process, self.client))
        self.ground.journal.note(self.client, "starts")

    def kill(self) -> None:
        """SIGKILL: its tasks never run again, its kernel closes its connections."""
        if self.up and self.process is not None:
            self.process.kill()
            self.ground.network.reset(self.client)
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

    async def _run(self, process: Process, client: str) -> None:
        transport = WireTransport(self.ground.network, process, self.name, client)
        try:
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
    def _work(self, process: Process, transport: WireTransport) -> Coroutine[Any, Any, None]:
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

    async def _work(self, process: Process, transport: WireTransport) -> None:
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


class PodRuntime(MemoryRuntime):
    """A runtime whose behaviour is set by whoever is not in any process."""

    def set_down(self, *, down: bool) -> None:
        """Be gone, or there again."""
        self._down = failed("Unavailable", "connect failed: No such file or directory") if down else None

    def set_behaviour(self, behaviour: AnyBehaviour) -> None:
        """Do so from the next call on."""
        self._behaviour = behaviour


class Pod:
    """What lies beside each other on one pool's machine: the runtime, the machinepoollet, the sidecars, and the ways between them."""

    def __init__(self, ground: Ground, pool: str) -> None:
        self.ground, self.pool = ground, pool
        self.runtime = PodRuntime(ProcessClock(ground.world, seed=hash_of(f"{ground.seed} runtime {pool}")))
        self.to_runtime: Cut | None = None
        self.to_poollet: Cut | None = None
        self.poollet: PoolletHost | None = None
        self.sidecars: list[SidecarHost] = []

    async def poollet_answers(self) -> bool:
        """What a sidecar gets that asks the machinepoollet's healthz once; it may never return."""
        if self.to_poollet == "refuse":
            return False
        if self.to_poollet == "drop":
            await asyncio.Event().wait()
        host = self.poollet
        while host is not None and host.up and host.process is not None and not host.process.runs:  # noqa: ASYNC110 - it stands still until a known moment, or longer
            await asyncio.sleep(host.process.stalled_until - self.ground.world.now)
        if host is None or not host.up or host.poollet is None:
            return False
        try:
            await host.poollet.healthz()
        except ConnectionRefusedError:
            return False
        return True


class PodProbe:
    """A sidecar's way to the runtime; see iri.probe.RuntimeProbe."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod

    async def status(self, timeout_seconds: float) -> ProbeResult:
        """Call Status once."""
        if self._pod.to_runtime == "refuse":
            return failed("Unavailable", "connect failed: Connection refused")
        if self._pod.to_runtime == "drop":
            await asyncio.sleep(timeout_seconds)
            return deadline_exceeded()
        return await self._pod.runtime.status(timeout_seconds)

    async def close(self) -> None:
        """Nothing is held open."""


class SidecarHost(Host):
    """`loopwatch sidecar` in a pod."""

    kind: type[Sidecar] = Sidecar

    def __init__(self, pod: Pod, name: str, mode: Mode, *, asks_poollet: bool) -> None:
        super().__init__(pod.ground, name)
        self.pod, self.mode, self.asks_poollet = pod, mode, asks_poollet
        self.sidecar: Sidecar | None = None
        self.series_began_anew: set[str] = set()

    def _forget(self) -> None:
        self.sidecar = None

    async def _work(self, process: Process, transport: WireTransport) -> None:
        times = self.ground.times
        settings = SidecarSettings(
            machine_pool_name=self.pod.pool,
            mode=self.mode,
            heartbeat_interval_seconds=times.interval,
            heartbeat_lease_duration_seconds=times.lease,
            heartbeat_status_timeout_seconds=times.status_timeout,
            runtime_start_grace_seconds=times.runtime_start_grace,
        )
        self.sidecar = self.kind(
            settings,
            transport,
            PodProbe(self.pod),
            self.pod.poollet_answers if self.asks_poollet else None,
            process.clock,
            make_uuid=lambda: self.uuid,
            times=times.reflector,
        )
        self.ground.made(self)
        await self.sidecar.run()


class PoolletHost(Host):
    """The machinepoollet of a pod, a stand-in. Whatever ends it, its kubelet starts another."""

    def __init__(self, pod: Pod, name: str, version: Literal["v0.5.0", "v0.4.0"]) -> None:
        super().__init__(pod.ground, name)
        self.pod, self.version = pod, version
        self.poollet: Machinepoollet | None = None

    def _forget(self) -> None:
        self.poollet = None

    async def _work(self, process: Process, transport: WireTransport) -> None:
        times = self.ground.times
        settings = MachinepoolletSettings(
            self.pod.pool,
            heartbeat=HeartbeatTimes(times.interval, times.lease, times.status_timeout),
            before_v0_5_0=self.version == "v0.4.0",
        )
        self.poollet = Machinepoollet(settings, self.pod.runtime, transport, process.clock)
        self.poollet._heartbeat.holder_identity = f"{self.pod.pool}_{self.uuid}"
        await self.poollet.run()

    def _ended(self, error: BaseException | None) -> None:
        self.ground.journal.note(self.client, f"exits: {error!r}")
        world = self.ground.world
        world.at(world.now + CRASH_BACKOFF_INTERVALS * self.ground.times.interval, self._restart)

    def _restart(self) -> None:
        if not self.up:
            self.start()


def hash_of(text: str) -> int:
    """A number that is the same in every run (Python's own hash of a text is not)."""
    return uuid.uuid5(uuid.NAMESPACE_OID, text).int
