"""`loopwatch sidecar`: reports for one MachinePool beside its machinepoollet, and exposes what it sees.

Wiring only: it builds the parts, hands them to each other and keeps them running. What they do is told where they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from loopwatch import catalogue, leadership
from loopwatch.clock import Clock, SystemClock
from loopwatch.iri import endpoint
from loopwatch.iri.probe import RuntimeProbe
from loopwatch.kube import connection as connections
from loopwatch.kube import families as reflector_families
from loopwatch.kube.read import Reader
from loopwatch.kube.reflector import Reflector, ReflectorTimes
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS
from loopwatch.kube.transport import Transport
from loopwatch.log import get_logger
from loopwatch.machinepoollet import MachinepoolletHealthz
from loopwatch.metrics import process
from loopwatch.metrics.family import Component
from loopwatch.metrics.store import Store
from loopwatch.pools.act.lease import LeaseKeeper
from loopwatch.pools.act.ready import ReadyPublisher
from loopwatch.pools.derive import duty as duties
from loopwatch.pools.derive import ready
from loopwatch.pools.families.pool import POOL
from loopwatch.pools.heartbeat import Heartbeat, MachinepoolletAnswers
from loopwatch.pools.model import Lease, MachinePool, decode_lease, decode_machine_pool
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.placement import Placement
from loopwatch.pools.sinks import AnnouncingSink
from loopwatch.pools.standing import Standing
from loopwatch.pools.tally import Tally
from loopwatch.settings.model import MetricsAuth, SidecarSettings
from loopwatch.signals import until_stopped
from loopwatch.web.auth import Judges
from loopwatch.web.health import Health, Loops, Readiness
from loopwatch.web.protection import Protection, judge_for, load_certificate
from loopwatch.web.server import Server

POOLS_LISTED: Final = "machinepools listed"
LEASES_LISTED: Final = "leases listed, or said why they can't be"


class Sidecar:
    """One sidecar of one pool. `run` ends only when cancelled; no fault of the API, the runtime or the machinepoollet ends it.

    `machinepoollet_answers` None: nobody is asked (`--machinepoollet-healthz off`). `make_uuid` gives what makes the holder unique.
    """

    def __init__(
        self,
        settings: SidecarSettings,
        transport: Transport,
        probe: RuntimeProbe,
        machinepoollet_answers: MachinepoolletAnswers | None,
        clock: Clock,
        *,
        make_uuid: Callable[[], uuid.UUID] = uuid.uuid4,
        times: ReflectorTimes | None = None,
    ) -> None:
        name, interval = settings.machine_pool_name, settings.heartbeat_interval_seconds
        now = clock.monotonic()
        self._clock = clock
        self.identity = f"{name}_{make_uuid()}"
        self.store = Store(*catalogue.groups(Component.SIDECAR))
        self.health = Health(Loops(clock), Readiness(POOLS_LISTED, LEASES_LISTED))
        self.observer = PoolsObserver(self.store, POOL, clock)
        self.placement = Placement(self.store, self.observer, counts_machines=False)
        tally = Tally(self.store, name)
        duty = duties.begin(settings.mode, self.identity, interval, ask_machinepoollet=machinepoollet_answers is not None, at=now)
        report = ready.begin(now, settings.runtime_start_grace_seconds)
        self.standing = Standing(name, duty, report, self.observer, tally, clock)
        self.heartbeat = Heartbeat(
            self.standing,
            LeaseKeeper(
                transport,
                self.standing,
                tally,
                clock,
                pool=name,
                interval_seconds=interval,
                lease_duration_seconds=settings.heartbeat_lease_duration_seconds,
            ),
            ReadyPublisher(transport, self.standing, tally, clock, pool=name, interval_seconds=interval),
            probe,
            machinepoollet_answers,
            clock,
            self._register_loop,
            interval_seconds=interval,
            status_timeout_seconds=settings.heartbeat_status_timeout_seconds,
        )
        reader = Reader(transport, clock)
        only_ours = f"metadata.name={name}"
        times = times or ReflectorTimes()
        self.pools: Reflector[MachinePool] = Reflector(
            reader,
            MACHINE_POOLS,
            AnnouncingSink(self.observer.machine_pools, self._pools_changed),
            decode_machine_pool,
            clock,
            field_selector=only_ours,
            times=times,
        )
        self.leases: Reflector[Lease] = Reflector(
            reader,
            LEASES,
            AnnouncingSink(self.observer.leases, self._leases_changed),
            decode_lease,
            clock,
            namespace=LEASE_NAMESPACE,
            field_selector=only_ours,
            times=times,
        )
        reflector_families.install(self.store, (self.pools, self.leases))

    async def run(self) -> None:
        """Watch, probe, report."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pools.run(), name="watch machinepools")
            tasks.create_task(self.leases.run(), name="watch leases")
            tasks.create_task(self.heartbeat.run(), name="heartbeat")

    def _pools_changed(self, *, listed: bool) -> None:
        self.standing.pools_changed(listed=listed)
        if self.observer.pools_listed:
            self.health.readiness.met(POOLS_LISTED)

    def _leases_changed(self, *, listed: bool) -> None:
        self.standing.leases_changed(listed=listed)
        self.health.readiness.met(LEASES_LISTED)

    def _register_loop(self, name: str, longest_seconds: float) -> Callable[[], None]:
        loop = self.health.loops.register(name, longest_seconds)

        def turn() -> None:
            loop.turn()
            if self.leases.stats.last_error:  # the reflector has said why
                self.health.readiness.met(LEASES_LISTED)

        return turn


async def run(settings: SidecarSettings, clock: Clock | None = None) -> None:
    """The process: connect, probe, beat until SIGTERM or SIGINT. ConfigError, CertificateError and EndpointError are the user's to mend."""
    clock = clock or SystemClock()
    # First what can be refused at once; gRPC (30 MiB) is imported where it is certain to be needed.
    certificate = load_certificate(settings, clock)
    chosen = endpoint.choose(settings.machine_runtime_endpoint or "", environment="")
    kubeconfig = Path(settings.kubeconfig) if settings.kubeconfig else None
    wanted = connections.ConnectionSettings(component="sidecar", kubeconfig=kubeconfig, context=settings.context or "")
    async with contextlib.AsyncExitStack() as stack:
        transport = await connections.connect(wanted, clock)
        stack.push_async_callback(transport.close)
        from loopwatch.iri.grpc_probe import GrpcRuntimeProbe

        probe = GrpcRuntimeProbe(chosen, clock)
        stack.push_async_callback(probe.close)
        answers = await stack.enter_async_context(_machinepoollet(settings.machinepoollet_healthz))
        sidecar = Sidecar(settings, transport, probe, answers, clock)
        lag = process.install(sidecar.store, Component.SIDECAR, clock)
        protection = Protection(await _judge(settings, transport, stack, clock), certificate)
        server = Server(sidecar.store, sidecar.health, now=sidecar.observer.moment, protection=protection)
        # The address never stops the heartbeat: in use, it is said and tried again.
        listening = server.keep_listening(settings.listen_host, settings.listen_port, clock, settings.heartbeat_interval_seconds)
        get_logger().info("sidecar runs", machinepool=settings.machine_pool_name, mode=settings.mode.value, holder=sidecar.identity)
        await until_stopped(sidecar.run(), listening, lag.run(), *protection.work())


async def _judge(settings: SidecarSettings, transport: Transport, stack: contextlib.AsyncExitStack, clock: Clock) -> Judges | None:
    """Who judges scrapes; scrapers' tokens are of the cluster that this pod runs in, which need not be the pools'."""
    where = leadership.own_cluster("sidecar") if settings.metrics_auth is MetricsAuth.KUBERNETES else None
    if where is not None:
        transport = await connections.connect(where, clock)
        stack.push_async_callback(transport.close)
    return judge_for(settings, transport, clock)


@contextlib.asynccontextmanager
async def _machinepoollet(url: str | None) -> AsyncIterator[MachinepoolletAnswers | None]:
    """Whom to ask; None for `off`."""
    if url is None:
        yield None
        return
    async with MachinepoolletHealthz(url) as healthz:
        yield healthz.answers
