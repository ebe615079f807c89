"""The stand-in's one writer of the pool's status: woken by each event of its pool, and by the heartbeat when the probe's outcome changed.

It writes from its cache and without a resourceVersion: what another wrote into the conditions list between is lost. Each round sends two
patches, empty where nothing is to be changed; those change no resourceVersion.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from loopwatch.kube.transport import TransportError
from loopwatch.sandbox.machinepoollet.cache import Cache
from loopwatch.sandbox.machinepoollet.calls import MERGE_PATCH, CallRefused, Process
from loopwatch.sandbox.machinepoollet.documents import (
    READY,
    Document,
    allocatable,
    capacity,
    conditions_differ,
    difference,
    ready_condition,
    with_condition,
)
from loopwatch.sandbox.machinepoollet.heartbeat import ReadyState

POOLS_PATH = "/apis/compute.ironcore.dev/v1alpha1/machinepools"
DAEMON_PORT = 20250

_FIRST_RETRY_SECONDS = 0.005
_LONGEST_RETRY_SECONDS = 1000.0


class PoolCaches(NamedTuple):
    """What a round reads: a missing right to list any of them delays Ready too."""

    pools: Cache
    machine_classes: Cache
    machines: Cache


class PoolStatus:
    """Keeps one pool's status; looks at it whenever `woken` is set."""

    def __init__(
        self, process: Process, caches: PoolCaches, quantities: dict[str, int], ready_state: ReadyState, woken: asyncio.Event
    ) -> None:
        self._process = process
        self._caches = caches
        self._quantities = quantities
        self._ready_state = ready_state
        self._woken = woken

    async def run(self) -> None:
        """Reconcile whenever woken, until cancelled; after an error again and again, at first within milliseconds."""
        retry_seconds: float | None = None
        while True:
            await self._woken_or_after(retry_seconds)
            await self._process.gate.passed()
            try:
                await self._reconcile()
            except (CallRefused, TransportError) as error:
                self._process.log(f"Reconciler error: {error}")
                retry_seconds = min((retry_seconds or _FIRST_RETRY_SECONDS / 2) * 2, _LONGEST_RETRY_SECONDS)
            else:
                retry_seconds = None

    async def _woken_or_after(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        finally:
            self._woken.clear()

    async def _reconcile(self) -> None:
        pool = await self._caches.pools.get(self._process.pool_name)
        if pool is None or pool["metadata"].get("deletionTimestamp"):
            return
        path = f"{POOLS_PATH}/{self._process.pool_name}"
        await self._process.calls.send("PATCH", path, {}, MERGE_PATCH)
        current: Document = pool.get("status") or {}
        changes = difference(current, await self._wanted(pool["metadata"].get("generation") or 0, current))
        await self._process.calls.send("PATCH", f"{path}/status", {"status": changes} if changes else {}, MERGE_PATCH)

    async def _wanted(self, generation: int, current: Document) -> Document:
        names = [item["metadata"]["name"] for item in await self._caches.machine_classes.items()]
        capacities = capacity(names, self._quantities)
        wanted = current | {
            "state": "Ready",
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"machinepoolletEndpoint": {"port": DAEMON_PORT}},
            "availableMachineClasses": [{"name": name} for name in sorted(names) if name in self._quantities],
            "capacity": capacities,
            "allocatable": allocatable(capacities, await self._used_classes()),
        }
        probe_error = self._ready_state.probe_error
        if probe_error is not None:
            conditions = current.get("conditions") or []
            desired = ready_condition(generation, probe_error)
            existing = next((condition for condition in conditions if condition.get("type") == READY), None)
            if conditions_differ(existing, desired):
                wanted["conditions"] = with_condition(conditions, desired, self._process.clock.utcnow())
        return {key: value for key, value in wanted.items() if value or key not in _OMITTED_WHEN_EMPTY}

    async def _used_classes(self) -> set[str]:
        used = set()
        for machine in await self._caches.machines.items():
            spec = machine.get("spec") or {}
            if (spec.get("machinePoolRef") or {}).get("name") == self._process.pool_name:
                used.add((spec.get("machineClassRef") or {}).get("name") or "")
        return used


_OMITTED_WHEN_EMPTY = frozenset({"addresses", "availableMachineClasses", "capacity", "allocatable"})
