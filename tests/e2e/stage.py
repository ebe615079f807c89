"""The stage of the scenarios: one real API server, loopwatch's processes' insides on it in real time, and stand-ins for IronCore's.

Times are scaled: grace 5 s, heartbeat 1 s, Lease 4 s, probe 0.5 s. Everybody has a connection of his own. The stage keeps a list of the
stand-ins that were started and of the families that were asked for, so that the table of scenarios can't claim others.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

from loopwatch.clock import SystemClock
from loopwatch.controller import Controller
from loopwatch.kube.connection import ConnectionSettings, connect
from loopwatch.kube.transport import Request, Response, Timeout, Transport
from loopwatch.machinepoollet import MachinepoolletHealthz
from loopwatch.sandbox.machinepoollet import HeartbeatTimes, Machinepoollet, MachinepoolletExited, MachinepoolletSettings
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import Ok
from loopwatch.settings.model import Mode
from loopwatch.sidecar import Sidecar
from tests.acceptance.api import Kubectl
from tests.acceptance.world import World
from tests.e2e import machinepoollet_rights
from tests.e2e.scenarios import StandIn
from tests.e2e.upstream import MANAGER, LifecycleController, Scheduler
from tests.real_servers.apiserver import LOOPBACK, ApiServer, free_port

GRACE: Final = 5.0
BEAT: Final = 1.0
LEASE: Final = 4.0
PROBE: Final = 0.5
SOON: Final = 2.5
"""Two beats and half a second of this machine's: what comes with the next heartbeat or two is there by then."""
OVERDUE: Final = GRACE * 0.2 + 2.0
"""What a mark may take beyond the grace: the confirming read, the write, and this machine."""
MACHINE_CLASS: Final = "small"
CAPACITY: Final = 4
POOL: Final = "pool-a"
"""Its machinepoollet has a heartbeat."""
OLD_POOL: Final = "pool-b"
"""Its machinepoollet is from before v0.5.0 and has none: a sidecar reports."""

Process = Controller | Sidecar


class Named(Transport):
    """A connection whose writes carry a manager's name, as the real program's User-Agent would make them."""

    def __init__(self, inner: Transport, manager: str) -> None:
        self._inner, self._manager = inner, manager

    def send(self, request: Request, timeout: Timeout) -> AbstractAsyncContextManager[Response]:
        """Send once."""
        if request.method in {"POST", "PATCH"} and "fieldManager" not in dict(request.query):
            request = dataclasses.replace(request, query=(*request.query, ("fieldManager", self._manager)))
        return self._inner.send(request, timeout)

    async def renew_credentials(self) -> bool:
        """As the connection does."""
        return await self._inner.renew_credentials()

    async def close(self) -> None:
        """The stage closes the connection itself."""


class Eyes(Kubectl):
    """Kubectl that also keeps every state of each Lease, with the moment of its arrival."""

    def __init__(self, transport: Transport, clock: SystemClock) -> None:
        super().__init__(transport, clock)
        self.beats: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}

    def _saw_lease(self, event: str, lease: dict[str, Any]) -> None:
        super()._saw_lease(event, lease)
        self.beats.setdefault(lease["metadata"]["name"], []).append((self._clock.monotonic(), lease["spec"]))

    def renewals(self, name: str, *, after: float = 0.0) -> list[float]:
        """When renewTime was seen to change."""
        beats = self.beats.get(name, [])
        return [
            at
            for number, (at, spec) in enumerate(beats)
            if at > after and (not number or spec.get("renewTime") != beats[number - 1][1].get("renewTime"))
        ]

    def holders(self, name: str) -> list[str]:
        """Who held the Lease, in order, repetitions left out."""
        held = [str(spec.get("holderIdentity")) for _, spec in self.beats.get(name, ())]
        return [holder for number, holder in enumerate(held) if number == 0 or holder != held[number - 1]]


class Life:
    """One program that runs; `kill` is SIGTERM and SIGKILL alike: neither writes anything in upstream's programs."""

    def __init__(self, work: Awaitable[None]) -> None:
        self._task = asyncio.ensure_future(work)
        self._exited = False

    async def kill(self) -> None:
        """End it; what it failed with is raised."""
        if self._exited:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def exits(self, within_seconds: float) -> str:
        """Wait until the machinepoollet ends by itself; its last line."""
        await asyncio.wait([self._task], timeout=within_seconds)
        assert self._task.done(), f"it still ran after {within_seconds:g} s"
        ended = self._task.exception()
        assert isinstance(ended, MachinepoolletExited), f"it ended with {ended!r}"
        self._exited = True
        return str(ended)


class Both(NamedTuple):
    """POOL with `new` and `observing`, OLD_POOL with `old` and `reporting`; `lives` are those of the machinepoollets."""

    observing: Sidecar
    reporting: Sidecar
    new: Machinepoollet
    old: Machinepoollet
    lives: tuple[Life, Life]


class Stage:
    """See `staged`."""

    def __init__(self, server: ApiServer, stack: contextlib.AsyncExitStack, kubectl: Eyes, world: World) -> None:
        self.server, self.kubectl, self.world, self.clock = server, kubectl, world, world.clock
        self.stand_ins: set[StandIn] = set()
        self.families: set[str] = set()
        self._stack = stack
        self._healthz: dict[str, int] = {}

    def runtime(self) -> MemoryRuntime:
        """A machine runtime that answers."""
        self.stand_ins.add(StandIn.RUNTIME)
        return MemoryRuntime(self.clock, Ok({MACHINE_CLASS: CAPACITY}))

    async def connect(self, component: str, kubeconfig: Path | None = None) -> Transport:
        """A connection of one's own, as the administrator or as whom the kubeconfig says."""
        wanted = ConnectionSettings(component=component, kubeconfig=kubeconfig or self.server.kubeconfig)
        connection = await connect(wanted, self.clock)
        self._stack.push_async_callback(connection.close)
        return connection

    def live(self, work: Awaitable[None]) -> Life:
        """Run it until it is killed, or the scenario ends."""
        life = Life(work)
        self._stack.push_async_callback(life.kill)
        return life

    async def controller(self, **settings: Any) -> Controller:
        """Loopwatch's controller at work, alone, until the scenario ends."""
        return (await self.mortal_controller(**settings))[0]

    async def mortal_controller(self, **settings: Any) -> tuple[Controller, Life]:
        """The same, to be killed."""
        transport = await self.connect("controller")
        world = dataclasses.replace(self.world, transport=lambda _client: transport)
        started: asyncio.Future[Controller] = asyncio.get_running_loop().create_future()
        life = self.live(_held(world.controller(**settings), started))
        return await started, life

    async def sidecar(self, pool: str, runtime: MemoryRuntime, **settings: Any) -> Sidecar:
        """Loopwatch's sidecar of the pool, beside its machinepoollet's healthz, until the scenario ends."""
        transport = await self.connect("sidecar")
        world = dataclasses.replace(self.world, transport=lambda _client: transport)
        healthz = await self._stack.enter_async_context(MachinepoolletHealthz(f"http://{LOOPBACK}:{self._port(pool)}/healthz"))
        beats = {
            "heartbeat_interval_seconds": BEAT,
            "heartbeat_lease_duration_seconds": int(LEASE),
            "heartbeat_status_timeout_seconds": PROBE,
        }
        started: asyncio.Future[Sidecar] = asyncio.get_running_loop().create_future()
        self.live(_held(world.sidecar(pool, runtime, machinepoollet=healthz.answers, **(beats | settings)), started))
        return await started

    async def machinepoollet(
        self, pool: str, runtime: MemoryRuntime, *, kubeconfig: Path | None = None, healthz: bool = True, **settings: Any
    ) -> tuple[Machinepoollet, Life]:
        """Upstream's machinepoollet. A second one of the same pool runs elsewhere: `healthz` False."""
        self.stand_ins.add(StandIn.MACHINEPOOLLET)
        chosen = MachinepoolletSettings(
            pool, heartbeat=HeartbeatTimes(BEAT, LEASE, PROBE), healthz_port=self._port(pool) if healthz else None, **settings
        )
        transport = Named(await self.connect("machinepoollet", kubeconfig), "machinepoollet")
        machinepoollet = Machinepoollet(chosen, runtime, transport, self.clock)
        return machinepoollet, self.live(machinepoollet.run())

    async def machinepoollet_kubeconfig(self, *, with_leases: bool) -> Path:
        """An identity with upstream's rights, on a server with RBAC."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="loopwatch-")))
        return await asyncio.to_thread(machinepoollet_rights.create, self.server, folder, with_leases=with_leases)

    async def both_kinds(self, runtime: MemoryRuntime, **settings: Any) -> Both:
        """Two pools, True: a new machinepoollet that reports beside an observing sidecar, an old one for which a sidecar reports."""
        new, new_life = await self.machinepoollet(POOL, runtime, **settings)
        old, old_life = await self.machinepoollet(OLD_POOL, runtime, before_v0_5_0=True, **settings)
        await self.becomes(POOL, "True")
        observing = await self.sidecar(POOL, runtime)
        reporting = await self.sidecar(OLD_POOL, runtime, mode=Mode.REPORT)
        await self.becomes(OLD_POOL, "True")
        await self.kubectl.when(lambda: bool(self.kubectl.renewals(OLD_POOL)), SOON)
        await self.shows(observing, "heartbeat_state", 1, state="observing", machinepool=POOL)
        await self.shows(reporting, "heartbeat_state", 1, state="reporting", machinepool=OLD_POOL)
        return Both(observing, reporting, new, old, (new_life, old_life))

    async def lifecycle(self) -> Life:
        """Upstream's lifecycle controller."""
        self.stand_ins.add(StandIn.LIFECYCLE)
        transport = Named(await self.connect("lifecycle"), MANAGER)
        return self.live(LifecycleController(transport, self.clock, GRACE).run())

    async def scheduler(self) -> Life:
        """Upstream's scheduler and its eviction."""
        self.stand_ins.add(StandIn.SCHEDULER)
        return self.live(Scheduler(Named(await self.connect("scheduler"), MANAGER), self.clock).run())

    def by_hand(self) -> Eyes:
        """Kubectl, used to take a part in the scenario."""
        self.stand_ins.add(StandIn.HAND)
        return self.kubectl

    def value(self, process: Process, family: str, *, machinepool: str | None = POOL, **labels: str) -> float | None:
        """What a scrape of the process shows now, of this pool; None for a family without that label."""
        name = f"loopwatch_{family}"
        self.families.add(name)
        whole = labels if machinepool is None else {"machinepool": machinepool, **labels}
        process.store.refresh()
        return process.store.value(name, whole, process.observer.moment())

    async def shows(
        self,
        process: Process,
        family: str,
        wanted: float | None,
        within: float = SOON,
        *,
        machinepool: str | None = POOL,
        **labels: str,
    ) -> float:
        """Wait until a scrape would show this; the moment it did."""

        def value() -> float | None:
            return self.value(process, family, machinepool=machinepool, **labels)

        claim = f"{family}{labels} of {machinepool} is {wanted}"
        return await self.until(claim, lambda: value() == wanted, within, lambda: f"it is {value()}")

    async def until(self, claim: str, true: Callable[[], bool], within: float = SOON, otherwise: Callable[[], str] = lambda: "") -> float:
        """Look again and again; the moment it held, or AssertionError."""
        deadline = self.clock.monotonic() + within
        while not true():
            assert self.clock.monotonic() < deadline, f"not {claim} within {within:g} s; {otherwise()}"
            await self.clock.sleep(0.01)
        return self.clock.monotonic()

    async def becomes(self, pool: str, status: str, within: float = SOON, *, after: float = 0.0) -> float:
        """Wait until Ready was seen with this status after that moment; the moment it was seen."""

        def seen() -> list[float]:
            return [each.at for each in self.kubectl.history.get(pool, ()) if each.ready == status and each.at > after]

        await self.until(f"{pool} {status}", lambda: bool(seen()), within, lambda: f"it was {self.kubectl.transitions(pool)}")
        return seen()[0]

    async def passes(self, seconds: float) -> None:
        """Let real time pass: what is claimed is that nothing happens meanwhile, or that something goes on."""
        await self.clock.sleep(seconds)

    def _port(self, pool: str) -> int:
        return self._healthz.setdefault(pool, free_port())


async def _held(context: AbstractAsyncContextManager[Any], started: asyncio.Future[Any]) -> None:
    """Be in the context until cancelled."""
    async with context as process:
        started.set_result(process)
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def staged(server: ApiServer) -> AsyncIterator[Stage]:
    """An empty cluster with one MachineClass, watched; what the scenario starts ends with it."""
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        connection = await connect(ConnectionSettings(component="kubectl", kubeconfig=server.kubeconfig), clock)
        stack.push_async_callback(connection.close)
        kubectl = Eyes(connection, clock)
        await kubectl.ensure_namespaces()
        await kubectl.clear()
        await kubectl.create_machine_class(MACHINE_CLASS)
        stack.push_async_callback(kubectl.clear)
        looking = Life(kubectl.look_on())
        stack.push_async_callback(looking.kill)
        await kubectl.eyes_open()
        world = World(clock, kubectl, lambda _client: connection, lambda _client: None, None)
        assert world.grace_seconds == GRACE
        yield Stage(server, stack, kubectl, world)
