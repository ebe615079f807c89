"""The stand-in as one program: what happens when it starts, runs, is stopped, continued and ended.

`run` is the process: it raises MachinepoolletExited where upstream's would exit by itself, and cancelling it is SIGTERM and SIGKILL alike,
since upstream's leaves lease and condition as they are either way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from loopwatch.clock import Clock
from loopwatch.iri.probe import ProbeResult, RuntimeProbe
from loopwatch.kube.transport import Transport, TransportError
from loopwatch.sandbox.machinepoollet.cache import Cache
from loopwatch.sandbox.machinepoollet.calls import APPLY_PATCH, MERGE_PATCH, CallRefused, Calls, Gate, Process
from loopwatch.sandbox.machinepoollet.documents import Document
from loopwatch.sandbox.machinepoollet.healthz import MachineEvents, served
from loopwatch.sandbox.machinepoollet.heartbeat import LEASES_PATH, Heartbeat, HeartbeatTimes, ReadyState
from loopwatch.sandbox.machinepoollet.pool_status import POOLS_PATH, PoolCaches, PoolStatus

MACHINE_CLASSES_PATH = "/apis/compute.ironcore.dev/v1alpha1/machineclasses"
MACHINES_PATH = "/apis/compute.ironcore.dev/v1alpha1/machines"
FIELD_OWNER = "machinepoollet.ironcore.dev/field-owner"
LINES_KEPT = 1000
UPSTREAMS_TIMES = HeartbeatTimes()

_NOT_FOUND = 404
_UNSUPPORTED_MEDIA_TYPE = 415


class VersionedRuntime(RuntimeProbe, Protocol):
    """A runtime that can be asked for its version too, as upstream does when it starts."""

    async def version(self, timeout_seconds: float | None) -> ProbeResult:
        """Call Version once; None waits without a deadline."""
        ...


class MachinepoolletExited(Exception):
    """The process has ended by itself, with exit code 1; the text is its last line."""


@dataclass(frozen=True, slots=True)
class MachinepoolletSettings:
    """Upstream's flags and defaults. `healthz_port` None serves no HTTP, 0 takes a free port."""

    pool_name: str
    provider_id: str = "sandbox://machinepoollet"
    heartbeat: HeartbeatTimes = UPSTREAMS_TIMES
    mcm_sync_timeout_seconds: float = 10.0
    relist_threshold_seconds: float = 180.0
    cache_sync_timeout_seconds: float = 120.0
    healthz_port: int | None = None
    before_v0_5_0: bool = False
    """No heartbeat at all: no lease, no Ready condition, only the pool and healthz."""


class Machinepoollet:
    """One machinepoollet, to be run once. `holder_identity` is `<pool>_<uuid4>`, as its lease shows it."""

    def __init__(self, settings: MachinepoolletSettings, runtime: VersionedRuntime, transport: Transport, clock: Clock) -> None:
        self.log: deque[str] = deque(maxlen=LINES_KEPT)
        self.healthz_url: str | None = None
        self._settings = settings
        self._runtime = runtime
        self._clock = clock
        self._gate = Gate()
        self._calls = Calls(transport, self._gate)
        self._running = False
        self._quantities: dict[str, int] = {}
        process = Process(settings.pool_name, self._calls, clock, self._gate, self.log.append)
        woken = asyncio.Event()
        self._caches = _pool_caches(process, woken)
        self._leases = Cache(process, LEASES_PATH)
        ready_state = ReadyState(woken.set)
        self._heartbeat = Heartbeat(process, settings.heartbeat, runtime, self._leases, ready_state)
        self._status = PoolStatus(process, self._caches, self._quantities, ready_state, woken)
        self._events = MachineEvents(self._list_machines, clock, settings.relist_threshold_seconds)

    @property
    def holder_identity(self) -> str:
        """What its lease names as the holder."""
        return self._heartbeat.holder_identity

    def pause(self) -> None:
        """SIGSTOP: nothing goes on, healthz does not answer."""
        self._gate.close()

    def resume(self) -> None:
        """SIGCONT."""
        self._gate.open()

    async def healthz(self) -> int:
        """The status of `GET /healthz`; no answer while paused, ConnectionRefusedError while it does not run."""
        if not self._running:
            raise ConnectionRefusedError("the machinepoollet does not run")
        await self._gate.passed()
        return 200 if self._events.healthy else 500

    async def run(self) -> None:
        """Be the process, until cancelled."""
        version = await self._runtime.version(None)
        await self._gate.passed()
        if not version.succeeded:
            raise MachinepoolletExited(f"error getting machine runtime version: {version.message}")
        async with AsyncExitStack() as stack:
            self._running = True
            stack.callback(self._ended)
            if self._settings.healthz_port is not None:
                self.healthz_url = await stack.enter_async_context(served(self.healthz, self._settings.healthz_port))
            await self._apply_pool()
            await self._learn_machine_classes()
            try:
                await self._run_loops()
            except* MachinepoolletExited as ended:
                raise ended.exceptions[0] from None

    async def _run_loops(self) -> None:
        async with asyncio.TaskGroup() as group:
            for cache in self._caches:
                self._start_cache(group, cache)
            group.create_task(self._events.run())
            group.create_task(self._status.run())
            if not self._settings.before_v0_5_0:
                self._start_cache(group, self._leases)
                group.create_task(self._heartbeat.run())

    def _start_cache(self, group: asyncio.TaskGroup, cache: Cache) -> None:
        group.create_task(cache.run())
        group.create_task(self._exit_unless_synced(cache))

    async def _exit_unless_synced(self, cache: Cache) -> None:
        await self._clock.sleep(self._settings.cache_sync_timeout_seconds)
        if not cache.synced:
            raise MachinepoolletExited("timed out waiting for cache to be synced")

    async def _apply_pool(self) -> None:
        name = self._settings.pool_name
        pool: Document = {
            "apiVersion": "compute.ironcore.dev/v1alpha1",
            "kind": "MachinePool",
            "metadata": {"name": name},
            "spec": {"providerID": self._settings.provider_id},
        }
        try:
            await self._apply(f"{POOLS_PATH}/{name}", pool)
        except (CallRefused, TransportError) as error:
            raise MachinepoolletExited(f"error applying machine pool: {error}") from error

    async def _apply(self, path: str, pool: Document) -> None:
        try:
            await self._calls.send("PATCH", path, pool, APPLY_PATCH, (("fieldManager", FIELD_OWNER), ("force", "true")))
        except CallRefused as refusal:
            if refusal.status != _UNSUPPORTED_MEDIA_TYPE:
                raise
            await self._apply_without_server_side_apply(path, pool)

    async def _apply_without_server_side_apply(self, path: str, pool: Document) -> None:
        """The sandbox's API server has no server-side apply; on an object of one writer this comes to the same."""
        try:
            await self._calls.send("PATCH", path, {"spec": pool["spec"]}, MERGE_PATCH)
        except CallRefused as refusal:
            if refusal.status != _NOT_FOUND:
                raise
            await self._calls.send("POST", POOLS_PATH, pool)

    async def _learn_machine_classes(self) -> None:
        deadline = self._clock.monotonic() + self._settings.mcm_sync_timeout_seconds
        result = await self._runtime.status(self._settings.mcm_sync_timeout_seconds)
        await self._gate.passed()
        if not result.succeeded:  # the next try would be an hour later: upstream waits for it in vain
            await self._clock.sleep(deadline - self._clock.monotonic())
            raise MachinepoolletExited("error waiting for machine class mapper to sync: context deadline exceeded")
        self._quantities.update(result.machine_classes)

    async def _list_machines(self) -> bool:
        await self._gate.passed()
        return (await self._runtime.version(None)).succeeded

    def _ended(self) -> None:
        self._running = False
        self.healthz_url = None


def _pool_caches(process: Process, woken: asyncio.Event) -> PoolCaches:
    """The copies that the pool's status is made from; any event of the pool, of a class and of the pool's machines is looked at."""

    def wake(_object: Document) -> None:
        woken.set()

    def wake_for_own(machine: Document) -> None:
        if ((machine.get("spec") or {}).get("machinePoolRef") or {}).get("name") == process.pool_name:
            woken.set()

    return PoolCaches(
        Cache(process, POOLS_PATH, (("fieldSelector", f"metadata.name={process.pool_name}"),), wake),
        Cache(process, MACHINE_CLASSES_PATH, (), wake),
        Cache(process, MACHINES_PATH, (), wake_for_own),
    )
