"""`loopwatch controller`: watches every MachinePool and Lease, exposes what it sees, and marks silent pools Unknown.

Wiring only: it builds the parts, hands them to each other and keeps them running. What they do is told where they are.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from loopwatch import catalogue, leadership
from loopwatch.clock import Clock, SystemClock
from loopwatch.election.elector import Change, Elector, process_identity
from loopwatch.kube import connection as connections
from loopwatch.kube import families as reflector_families
from loopwatch.kube.read import Reader
from loopwatch.kube.reflector import Reflector, ReflectorTimes
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS
from loopwatch.kube.transport import Transport
from loopwatch.log import get_logger
from loopwatch.metrics import process
from loopwatch.metrics.family import Component
from loopwatch.metrics.store import Store
from loopwatch.pools import observe
from loopwatch.pools.act.events import EventWriter
from loopwatch.pools.act.mark import Marker
from loopwatch.pools.announcer import Announcer
from loopwatch.pools.confirm import Confirmation
from loopwatch.pools.derive.sight import SIGHT_FRACTION
from loopwatch.pools.families.pool import POOL, SILENCE
from loopwatch.pools.lifecycle import Lifecycle, Rules
from loopwatch.pools.machine_watch import MachineWatch
from loopwatch.pools.model import Lease, MachinePool, decode_lease, decode_machine_pool
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.placement import Placement
from loopwatch.pools.sightkeeper import QUIET_FRACTION, SightKeeper
from loopwatch.settings.model import ControllerSettings, MetricsAuth
from loopwatch.signals import until_stopped
from loopwatch.web.health import Health, Loops, Readiness
from loopwatch.web.protection import Protection, judge_for, load_certificate
from loopwatch.web.server import Server

WRITE_FRACTION: Final = 0.1
"""What a mark, or one of the reads that confirm it, may take: 5 s with the default grace of 50 s."""
POOLS_LISTED: Final = "machinepools listed"
LEASES_LISTED: Final = "leases listed"
PATIENCE: Final = 3
"""A loop of this process counts as stuck after that many of the longest turns it may take."""


class Clusters(NamedTuple):
    """The API servers of a controller: of the pools, of their Leases, and its own (election, who may scrape). They may all be one."""

    pools: Transport
    leases: Transport
    own: Transport

    @classmethod
    def one(cls, transport: Transport) -> Clusters:
        """The usual case."""
        return cls(transport, transport, transport)


class Controller:
    """One controller. `run` ends only when cancelled; a fault of an API never ends it, nor does losing the lead."""

    def __init__(self, settings: ControllerSettings, clusters: Clusters, clock: Clock, times: ReflectorTimes | None = None) -> None:
        grace = settings.machine_pool_lifecycle_grace_period_seconds
        self._settings, self._clock, self._grace = settings, clock, grace
        self.store = Store(*catalogue.groups(Component.CONTROLLER))
        self.health = Health(Loops(clock), Readiness(POOLS_LISTED, LEASES_LISTED))
        self.observer = PoolsObserver(self.store, POOL, clock, grace_seconds=grace)
        self.observer.subscribe_lists(self._listed)
        self.elector = leadership.elector(settings, clusters.own, clock, self.health.loops, self._lead_changed)
        self._readers = {observe.MACHINE_POOLS: Reader(clusters.pools, clock), observe.LEASES: Reader(clusters.leases, clock)}
        self._pool_sight = self._sight_keeper(observe.MACHINE_POOLS)
        self._lease_sight = self._sight_keeper(observe.LEASES)
        times = times or ReflectorTimes()
        self.pools: Reflector[MachinePool] = Reflector(
            self._readers[observe.MACHINE_POOLS],
            MACHINE_POOLS,
            self.observer.machine_pools,
            decode_machine_pool,
            clock,
            times=times,
            on_answer=self._pool_sight.answered,
        )
        self.leases: Reflector[Lease] = Reflector(
            self._readers[observe.LEASES],
            LEASES,
            self.observer.leases,
            decode_lease,
            clock,
            namespace=LEASE_NAMESPACE,
            times=times,
            on_answer=self._lease_sight.answered,
        )
        self.lifecycle = self._lifecycle(clusters.pools)
        leadership.expose(self.store, self.elector, acts=settings.act)
        self.announcer = self._announcer(clusters.pools) if settings.act and settings.events else None
        self.placement = Placement(self.store, self.observer, counts_machines=settings.machines)
        self.machines: MachineWatch | None = None
        if settings.machines:
            self.machines = MachineWatch(self._readers[observe.MACHINE_POOLS], self.placement, clock, times)
        watched = (self.pools, self.leases) if self.machines is None else (self.pools, self.leases, self.machines.reflector)
        reflector_families.install(self.store, watched)
        self._too_short = False

    async def run(self) -> None:
        """Watch, keep sight, elect, decide."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pools.run(), name="watch machinepools")
            tasks.create_task(self.leases.run(), name="watch leases")
            if self.machines is not None:
                tasks.create_task(self.machines.run(), name="watch machines")
            tasks.create_task(self._pool_sight.run(), name="sight of machinepools")
            tasks.create_task(self._lease_sight.run(), name="sight of leases")
            if self.announcer is not None:
                tasks.create_task(self.announcer.run(), name="write Events")
            tasks.create_task(self._lead_and_decide(), name="lead and decide")

    def leading(self) -> bool:
        """Whether this process may write at this moment."""
        return self._settings.act and (self.elector is None or self.elector.leading())

    async def _lead_and_decide(self) -> None:
        """The Lease is let go only once the writers have stopped: another process may lead at once."""
        if self.elector is None:
            await self.lifecycle.run()
            return
        deciding = asyncio.create_task(self.lifecycle.run(), name="lifecycle")
        electing = asyncio.create_task(self.elector.run(), name="election")
        try:
            await asyncio.wait((deciding, electing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (deciding, electing):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for task in (deciding, electing):
            if not task.cancelled():
                task.result()

    def _lifecycle(self, transport: Transport) -> Lifecycle:
        timeout = self._grace * WRITE_FRACTION
        confirmation = Confirmation(
            self.observer,
            self._readers[observe.MACHINE_POOLS],
            self._readers[observe.LEASES],
            self._clock,
            timeout_seconds=timeout,
            reopen_pools=self.pools.reopen,
            reopen_leases=self.leases.reopen,
        )
        loop = self.health.loops.register("lifecycle", PATIENCE * (self._grace + 2 * timeout))
        return Lifecycle(
            self.observer,
            self.store,
            confirmation,
            Marker(transport, self._clock, timeout_seconds=min(timeout, leadership.act_timeout_seconds(self._settings))),
            self._clock,
            Rules(self._grace, self._settings.mark_never_reported, self._settings.mark_rate),
            leading=self.leading,
            turned=loop.turn,
        )

    def _announcer(self, transport: Transport) -> Announcer:
        writer = EventWriter(transport, self._clock, instance=process_identity(), timeout_seconds=self._grace * WRITE_FRACTION)
        return Announcer(self.observer, self.store, writer, self._clock, leading=self.leading)

    def _lead_changed(self, change: Change) -> None:
        get_logger().info("this controller leads" if change.leading else "this controller no longer leads", because=change.reason)
        self.lifecycle.reconsider()

    def _sight_keeper(self, resource: str) -> SightKeeper:
        kind, namespace = (LEASES, LEASE_NAMESPACE) if resource == observe.LEASES else (MACHINE_POOLS, "")
        loop = self.health.loops.register(f"sight of {resource}", PATIENCE * self._grace)
        on_turn: Callable[[], None] = self._each_lease_turn if resource == observe.LEASES else self._each_pool_turn

        def each_turn() -> None:
            loop.turn()
            on_turn()

        return SightKeeper(
            kind,
            self._readers[resource],
            self._clock,
            grace_seconds=self._grace,
            namespace=namespace,
            answered=lambda at: self._answered(resource, at),
            each_turn=each_turn,
        )

    def _listed(self) -> None:
        if self.observer.pools_listed:
            self.health.readiness.met(POOLS_LISTED)
        if self.observer.leases_listed:
            self.health.readiness.met(LEASES_LISTED)

    def _answered(self, resource: str, at: float) -> None:
        if self.observer.answered(resource, at):
            self.lifecycle.reconsider()

    def _each_pool_turn(self) -> None:
        """What needs a look every few seconds: the warning about the setting, the leader without sight."""
        self._warn_of_short_grace()
        if self.elector is not None and self.observer.blind_seconds() >= self._grace:
            self._leave_the_lead_to_others(self.elector)

    def _leave_the_lead_to_others(self, elector: Elector) -> None:
        """Without sight nothing can be marked: let a replica lead that may see, and don't contend before sight is back."""
        if elector.give_up(self._settings.leader_elect_lease_duration_seconds):
            get_logger().warning("a leader without sight for a whole grace period gives the lead up", grace_seconds=self._grace)
        elector.stand_aside(self._grace * SIGHT_FRACTION)

    def _warn_of_short_grace(self) -> None:
        largest = self.observer.largest_lease_seconds
        too_short = self._grace <= largest
        if too_short and not self._too_short:
            get_logger().warning(
                "the grace period is not above the largest lease duration: a few missed heartbeats would mark a living pool Unknown;"
                " raise --machine-pool-lifecycle-grace-period",
                grace_seconds=self._grace,
                lease_seconds=largest,
            )
        self._too_short = too_short

    def _each_lease_turn(self) -> None:
        """End a lease watch that has brought nothing for two fifths of the grace though a pool lives: it may be half-open."""
        last = self.leases.stats.last_event_at
        if last is not None and self._clock.monotonic() - last > self._grace * QUIET_FRACTION and self._some_pool_lives():
            self.leases.reopen()

    def _some_pool_lives(self) -> bool:
        """A pool that was ever reported and has not passed the grace: its heartbeat is expected, also where its Lease was deleted."""
        now = self.observer.moment()
        for name, view in self.observer.views.items():
            silence = self.store.value(SILENCE, {"machinepool": name}, now) if view.ever_reported else None
            if silence is not None and silence <= self._grace:
                return True
        return False


async def run(settings: ControllerSettings, clock: Clock | None = None) -> None:
    """The process: connect, listen, run until SIGTERM or SIGINT. ConfigError and ListenError are the user's to mend."""
    clock = clock or SystemClock()
    certificate = load_certificate(settings, clock)
    async with contextlib.AsyncExitStack() as stack:
        clusters = await _clusters(settings, stack, clock)
        controller = Controller(settings, clusters, clock)
        lag = process.install(controller.store, Component.CONTROLLER, clock)
        protection = Protection(judge_for(settings, clusters.own, clock), certificate)
        server = Server(controller.store, controller.health, now=controller.observer.moment, protection=protection)
        port = await stack.enter_async_context(server.listening(settings.listen_host, settings.listen_port))
        get_logger().info("controller runs", port=port, acts=settings.act, elects=controller.elector is not None)
        await until_stopped(controller.run(), lag.run(), *protection.work())


async def _clusters(settings: ControllerSettings, stack: contextlib.AsyncExitStack, clock: Clock) -> Clusters:
    """Connect to what the settings name: the pools' cluster; the Leases', where it is another; the pod's own."""

    async def connect(kubeconfig: str | None, context: str) -> Transport:
        path = Path(kubeconfig) if kubeconfig else None
        wanted = connections.ConnectionSettings(component="controller", kubeconfig=path, context=context)
        transport = await connections.connect(wanted, clock)
        stack.push_async_callback(transport.close)
        return transport

    pools = await connect(settings.kubeconfig, settings.context or "")
    leases = await connect(settings.lease_kubeconfig, "") if settings.lease_kubeconfig else pools
    where = leadership.own_cluster("controller")
    if where is None or not (leadership.elects(settings) or settings.metrics_auth is MetricsAuth.KUBERNETES):
        return Clusters(pools, leases, pools)
    own = await connections.connect(where, clock)
    stack.push_async_callback(own.close)
    return Clusters(pools, leases, own)
