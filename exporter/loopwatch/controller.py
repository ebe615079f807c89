"""`loopwatch controller`: watches every MachinePool and Lease, exposes what it sees, and marks silent pools Unknown.

Wiring only: it builds the parts, hands them to each other and keeps them running. What they do is told where they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from loopwatch import catalogue
from loopwatch.clock import Clock, SystemClock
from loopwatch.election.families import LEADER_ELECTION, LeadershipFacts
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
from loopwatch.pools.act.mark import Marker
from loopwatch.pools.confirm import Confirmation
from loopwatch.pools.families.pool import POOL, SILENCE
from loopwatch.pools.lifecycle import Lifecycle, Rules
from loopwatch.pools.model import Lease, MachinePool, decode_lease, decode_machine_pool
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.sightkeeper import QUIET_FRACTION, SightKeeper
from loopwatch.settings.model import ControllerSettings
from loopwatch.signals import until_stopped
from loopwatch.web.health import Health, Loops, Readiness
from loopwatch.web.server import Server

WRITE_FRACTION: Final = 0.1
"""What a mark, or one of the reads that confirm it, may take: 5 s with the default grace of 50 s."""
PATIENCE: Final = 3
"""A loop of this process counts as stuck after that many of the longest turns it may take."""


class Controller:
    """One controller on one API server. `run` ends only when cancelled; a fault of the API never ends it."""

    def __init__(self, settings: ControllerSettings, transport: Transport, clock: Clock, times: ReflectorTimes | None = None) -> None:
        grace = settings.machine_pool_lifecycle_grace_period_seconds
        self._settings, self._clock, self._grace = settings, clock, grace
        self.store = Store(*catalogue.groups(Component.CONTROLLER))
        self.health = Health(Loops(clock), Readiness("machinepools listed", "leases listed"))
        self.observer = PoolsObserver(self.store, POOL, clock, grace_seconds=grace)
        self._reader = Reader(transport, clock)
        self._pool_sight = self._sight_keeper(observe.MACHINE_POOLS)
        self._lease_sight = self._sight_keeper(observe.LEASES)
        times = times or ReflectorTimes()
        self.pools: Reflector[MachinePool] = Reflector(
            self._reader,
            MACHINE_POOLS,
            self.observer.machine_pools,
            decode_machine_pool,
            clock,
            times=times,
            on_answer=self._pool_sight.answered,
        )
        self.leases: Reflector[Lease] = Reflector(
            self._reader,
            LEASES,
            self.observer.leases,
            decode_lease,
            clock,
            namespace=LEASE_NAMESPACE,
            times=times,
            on_answer=self._lease_sight.answered,
        )
        self.lifecycle = self._lifecycle(transport)
        self.store.put(LEADER_ELECTION, (), LeadershipFacts(leading=settings.act))
        reflector_families.install(self.store, (self.pools, self.leases))
        self._too_short = False

    async def run(self) -> None:
        """Watch, keep sight, decide."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pools.run(), name="watch machinepools")
            tasks.create_task(self.leases.run(), name="watch leases")
            tasks.create_task(self._pool_sight.run(), name="sight of machinepools")
            tasks.create_task(self._lease_sight.run(), name="sight of leases")
            tasks.create_task(self.lifecycle.run(), name="lifecycle")

    def _lifecycle(self, transport: Transport) -> Lifecycle:
        timeout = self._grace * WRITE_FRACTION
        confirmation = Confirmation(
            self.observer,
            self._reader,
            self._reader,
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
            Marker(transport, self._clock, timeout_seconds=timeout),
            self._clock,
            Rules(self._grace, self._settings.mark_never_reported, self._settings.mark_rate),
            leading=lambda: self._settings.act,
            turned=loop.turn,
        )

    def _sight_keeper(self, resource: str) -> SightKeeper:
        kind, namespace = (LEASES, LEASE_NAMESPACE) if resource == observe.LEASES else (MACHINE_POOLS, "")
        loop = self.health.loops.register(f"sight of {resource}", PATIENCE * self._grace)
        on_turn: Callable[[], None] = self._each_lease_turn if resource == observe.LEASES else self._each_pool_turn

        def each_turn() -> None:
            loop.turn()
            on_turn()

        return SightKeeper(
            kind,
            self._reader,
            self._clock,
            grace_seconds=self._grace,
            namespace=namespace,
            answered=lambda at: self._answered(resource, at),
            each_turn=each_turn,
        )

    def _answered(self, resource: str, at: float) -> None:
        if self.observer.answered(resource, at):
            self.lifecycle.reconsider()

    def _each_pool_turn(self) -> None:
        """Readiness, and the warning about the setting, are looked at where a turn comes every few seconds anyway."""
        if self.observer.pools_listed:
            self.health.readiness.met("machinepools listed")
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
        if self.observer.leases_listed:
            self.health.readiness.met("leases listed")
        last = self.leases.stats.last_event_at
        if last is not None and self._clock.monotonic() - last > self._grace * QUIET_FRACTION and self._some_pool_lives():
            self.leases.reopen()

    def _some_pool_lives(self) -> bool:
        """A pool that has a Lease and has not passed the grace: its heartbeat is expected."""
        now = self.observer.moment()
        for name, view in self.observer.views.items():
            silence = self.store.value(SILENCE, {"machinepool": name}, now) if view.lease else None
            if silence is not None and silence <= self._grace:
                return True
        return False


async def run(settings: ControllerSettings, clock: Clock | None = None) -> None:
    """The process: connect, listen, run until SIGTERM or SIGINT. ConfigError and ListenError are the user's to mend."""
    clock = clock or SystemClock()
    kubeconfig = Path(settings.kubeconfig) if settings.kubeconfig else None
    wanted = connections.ConnectionSettings(component="controller", kubeconfig=kubeconfig, context=settings.context or "")
    transport = await connections.connect(wanted, clock)
    try:
        controller = Controller(settings, transport, clock)
        lag = process.install(controller.store, Component.CONTROLLER, clock)
        server = Server(controller.store, controller.health, now=controller.observer.moment)
        async with server.listening(settings.listen_host, settings.listen_port) as port:
            get_logger().info("controller runs", port=port, acts=settings.act)
            await until_stopped(controller.run(), lag.run())
    finally:
        await transport.close()
