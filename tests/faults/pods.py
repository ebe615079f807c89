"""What lies beside each other on a pool's machine: the runtime, the machinepoollet, the sidecars, and the ways between them."""

from __future__ import annotations

import asyncio
from typing import Literal

from loopwatch.iri.probe import ProbeResult, deadline_exceeded, failed
from loopwatch.kube.transport import Transport
from loopwatch.sandbox.machinepoollet.heartbeat import HeartbeatTimes
from loopwatch.sandbox.machinepoollet.process import Machinepoollet, MachinepoolletSettings
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour
from loopwatch.settings.model import Mode, SidecarSettings
from loopwatch.sidecar import Sidecar
from tests.faults.ground import Cut, Ground, Process
from tests.faults.hosts import Host

CRASH_BACKOFF_INTERVALS = 1.0
"""How long a kubelet lets a machinepoollet lie that ended by itself."""


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
        self.runtime = PodRuntime(ground.new_clock(f"runtime {pool}"))
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
            await asyncio.sleep(host.process.stalled_until - self.ground.now)
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

    async def _work(self, process: Process, transport: Transport) -> None:
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

    async def _work(self, process: Process, transport: Transport) -> None:
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
        self.ground.at(self.ground.now + CRASH_BACKOFF_INTERVALS * self.ground.times.interval, self._restart)

    def _restart(self) -> None:
        if not self.up:
            self.start()
