"""Stand-ins for IronCore's lifecycle controller and scheduler v0.5.0, as far as the scenarios need them.

They share no decision or constant with loopwatch, send the bodies that the real ones were seen to send. One
difference is the API server's: a CRD refuses strategic merge patches, so the lifecycle controller's patch is a merge patch here. The
machinepoollet's stand-in is `loopwatch.sandbox.machinepoollet`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loopwatch.clock import Clock
from loopwatch.kube.transport import Transport
from loopwatch.sandbox.machinepoollet.cache import Cache
from loopwatch.sandbox.machinepoollet.calls import MERGE_PATCH, CallRefused, Calls, Gate, Process
from loopwatch.sandbox.machinepoollet.documents import READY, Document, with_condition
from loopwatch.sandbox.machinepoollet.heartbeat import LEASE_NAMESPACE, LEASES_PATH
from loopwatch.sandbox.machinepoollet.pool_status import POOLS_PATH
from loopwatch.sandbox.machinepoollet.process import MACHINES_PATH

MANAGER = "ironcore-controller-manager"
"""The name that both have in managedFields: give them a transport that says so."""
CLASS_COUNT_PREFIX = "class/machine."
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Progress:
    """What counts as a sign of life, and when it last changed (monotonic seconds)."""

    renew_time: str | None
    ready: tuple[str, int] | None
    changed_at: float


class LifecycleController:
    """Marks a pool Unknown once neither its Lease's renewTime nor its Ready has changed for a grace period. It never writes anything else.

    What it remembers is in memory alone: one that starts gives every pool a whole grace period.
    """

    def __init__(self, transport: Transport, clock: Clock, grace_seconds: float) -> None:
        self._clock, self._grace = clock, grace_seconds
        self._woken = asyncio.Event()
        self._process = _process(transport, clock)
        self._pools = Cache(self._process, POOLS_PATH, (), self._wake)
        self._leases = Cache(self._process, LEASES_PATH, (), self._wake)
        self._known: dict[str, Progress] = {}

    async def run(self) -> None:
        """Be the process, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pools.run())
            tasks.create_task(self._leases.run())
            tasks.create_task(self._work())

    def _wake(self, _object: Document) -> None:
        self._woken.set()

    async def _work(self) -> None:
        while True:
            self._woken.clear()
            pools = {pool["metadata"]["name"]: pool for pool in await self._pools.items()}
            self._known = {name: known for name, known in self._known.items() if name in pools}
            waits = [await self._reconcile(name, pool) for name, pool in pools.items()]
            await _first(self._woken, min(waits, default=self._grace))

    async def _reconcile(self, name: str, pool: Document) -> float:
        """One look at one pool; seconds until the next."""
        lease = await self._leases.get(name, LEASE_NAMESPACE)
        renew_time = ((lease or {}).get("spec") or {}).get("renewTime")
        ready, now = _ready(pool), self._clock.monotonic()
        before = self._known.get(name)
        if before is None or (before.renew_time, before.ready) != (renew_time, ready):
            self._known[name] = Progress(renew_time, ready, now)
            return self._grace
        left = before.changed_at + self._grace - now
        if left >= 0:
            return left + 0.001
        if ready is None or ready[0] != "Unknown":
            await self._mark(name, pool, before)
        return self._grace

    async def _mark(self, name: str, pool: Document, before: Progress) -> None:
        """Its own Unknown is no sign of life."""
        generation = pool["metadata"].get("generation") or 0
        unknown: Document = {
            "type": READY,
            "status": "Unknown",
            "reason": "MachinePoolStatusUnknown",
            "message": "machinepoollet stopped posting machine pool status.",
            "observedGeneration": generation,
        }
        conditions = with_condition((pool.get("status") or {}).get("conditions") or [], unknown, self._clock.utcnow())
        path = f"{POOLS_PATH}/{name}/status"
        written = await self._process.calls.send("PATCH", path, {"status": {"conditions": conditions}}, MERGE_PATCH)
        self._known[name] = Progress(before.renew_time, _ready(written), before.changed_at)


class Scheduler:
    """Binds each Machine that has no pool to the first pool that has its class and room for it, and whose taints it tolerates.

    It never looks at Ready. With it runs upstream's eviction: a Machine that does not tolerate its pool's NoExecute taint is deleted at
    once. (Upstream's Event "Evicted" is left out.)
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._woken = asyncio.Event()
        self._process = _process(transport, clock)
        self._pools = Cache(self._process, POOLS_PATH, (), self._wake)
        self._machines = Cache(self._process, MACHINES_PATH, (), self._wake)

    async def run(self) -> None:
        """Be the process, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pools.run())
            tasks.create_task(self._machines.run())
            tasks.create_task(self._work())

    def _wake(self, _object: Document) -> None:
        self._woken.set()

    async def _work(self) -> None:
        while True:
            self._woken.clear()
            pools = await self._pools.items()
            for machine in await self._machines.items():
                await self._place(machine, pools)
            await self._woken.wait()

    async def _place(self, machine: Document, pools: Iterable[Document]) -> None:
        spec = machine["spec"]
        bound_to = (spec.get("machinePoolRef") or {}).get("name")
        if bound_to is None:
            fitting = next((pool["metadata"]["name"] for pool in pools if _fits(spec, pool)), None)
            if fitting is not None:
                await self._send("PATCH", machine, {"spec": {"machinePoolRef": {"name": fitting}}})
        elif any(_repels(spec, pool, {"NoExecute"}) for pool in pools if pool["metadata"]["name"] == bound_to):
            await self._send("DELETE", machine)

    async def _send(self, method: str, machine: Document, body: Document | None = None) -> None:
        """A Machine that went away meanwhile needs nothing."""
        namespace, name = machine["metadata"]["namespace"], machine["metadata"]["name"]
        path = MACHINES_PATH.replace("/machines", f"/namespaces/{namespace}/machines/{name}")
        try:
            await self._process.calls.send(method, path, body, MERGE_PATCH)
        except CallRefused as refusal:
            if refusal.status != _NOT_FOUND:
                raise


def _fits(spec: Mapping[str, Any], pool: Document) -> bool:
    name, status = spec["machineClassRef"]["name"], pool.get("status") or {}
    has_class = name in [each["name"] for each in status.get("availableMachineClasses") or ()]
    has_room = int((status.get("allocatable") or {}).get(f"{CLASS_COUNT_PREFIX}{name}", 0)) > 0
    return has_class and has_room and not _repels(spec, pool, {"NoSchedule", "NoExecute"})


def _repels(spec: Mapping[str, Any], pool: Document, effects: set[str]) -> bool:
    taints = [taint for taint in pool["spec"].get("taints") or () if taint["effect"] in effects]
    tolerated = {toleration.get("key") for toleration in spec.get("tolerations") or ()}
    return any(taint["key"] not in tolerated for taint in taints)


def _ready(pool: Document) -> tuple[str, int] | None:
    """Status and observedGeneration of Ready: what upstream compares."""
    for condition in (pool.get("status") or {}).get("conditions") or ():
        if condition["type"] == READY:
            return condition["status"], condition.get("observedGeneration") or 0
    return None


def _process(transport: Transport, clock: Clock) -> Process:
    gate = Gate()
    return Process("", Calls(transport, gate), clock, gate, lambda _line: None)


async def _first(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
