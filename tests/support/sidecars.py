"""Sidecars at work on the sandbox's API server, a runtime in memory and a machinepoollet that is a switch: minutes in milliseconds."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import uuid
from collections.abc import AsyncIterator
from typing import Any

from loopwatch.clock import Clock
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.metrics.values import Moment
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Effect, Fault
from loopwatch.sandbox.recorder import Record
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.transport import SandboxTransport
from loopwatch.settings.model import Mode, SidecarSettings
from loopwatch.sidecar import Sidecar
from tests.support.stepped import SteppedClock

POOL = "pool-a"
LEASE_KEY = ObjectKey(LEASE_NAMESPACE, POOL)
INTERVAL = 10.0


class Machinepoollet:
    """The process beside a sidecar, as far as its healthz goes."""

    def __init__(self) -> None:
        self.up = True
        self.hangs = False
        self.asked_at: list[float] = []

    async def answers(self) -> bool:
        """Asked once."""
        self.asked_at.append(asyncio.get_running_loop().time())
        if self.hangs:
            await asyncio.Event().wait()
        return self.up


class Beside:
    """One sidecar, with the runtime and the machinepoollet that are its own."""

    def __init__(
        self, world: World, client: str, settings: SidecarSettings, clock: Clock, number: int, runtime: MemoryRuntime | None = None
    ) -> None:
        self.client = client
        self.machinepoollet = Machinepoollet()
        self.runtime = runtime or MemoryRuntime(clock)
        self.uuid = uuid.UUID(int=number, version=4)
        answers = None if settings.machinepoollet_healthz is None else self.machinepoollet.answers
        transport = SandboxTransport(world.api, client=client)
        self.sidecar = Sidecar(settings, transport, self.runtime, answers, clock, make_uuid=lambda: self.uuid)
        self._world = world
        self._task: asyncio.Task[None] | None = None

    @property
    def identity(self) -> str:
        """Its holderIdentity."""
        return f"{POOL}_{self.uuid}"

    @property
    def state(self) -> str:
        """What its state set shows."""
        states = ("waiting", "reporting", "standby", "observing", "stopped")
        shown = [state for state in states if self.value("loopwatch_heartbeat_state", state=state) == 1]
        assert len(shown) == 1
        return shown[0]

    def value(self, family: str, **labels: str) -> float | None:
        """One number of its page, as a scrape shows it now."""
        now = self._world.clock.monotonic()
        return self.sidecar.store.value(family, {"machinepool": POOL, **labels}, Moment(now, now))

    def page(self) -> str:
        """Its whole page."""
        now = self._world.clock.monotonic()
        return self.sidecar.store.render(Moment(now, now)).decode()

    def start(self) -> None:
        """Begin to run."""
        self._task = asyncio.create_task(self.sidecar.run())

    async def die(self) -> None:
        """Be gone at once, as by SIGKILL: nothing is written any more."""
        if self._task is None:
            return
        task, self._task = self._task, None
        assert not task.done(), f"ended by itself: {task}"
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def requests(self, verb: str, resource: str, subresource: str | None = None, since: float = 0.0) -> list[Record]:
        """What it sent."""
        return self._world.api.requests.matching(client=self.client, verb=verb, resource=resource, subresource=subresource, since=since)

    def writes(self, since: float = 0.0) -> list[Record]:
        """Everything it wrote."""
        return [
            record
            for verb in ("create", "patch", "update", "delete")
            for record in self._world.api.requests.matching(client=self.client, verb=verb, since=since)
        ]


class World:
    """One API server and the sidecars on it."""

    def __init__(self, clock: SteppedClock, *, namespace: bool = True) -> None:
        self.clock = clock
        self.api = ApiServer(clock)
        self.began = clock.monotonic()
        self._sidecars: list[Beside] = []
        if namespace:
            self.api.create_namespace(LEASE_NAMESPACE)

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self.clock.monotonic() - self.began

    def sidecar(self, mode: Mode = Mode.AUTO, *, runtime: MemoryRuntime | None = None, **settings: Any) -> Beside:
        """A sidecar that has not started yet; its settings are the defaults but for what is given."""
        number = len(self._sidecars) + 1
        chosen = SidecarSettings(machine_pool_name=POOL, mode=mode, **settings)
        made = Beside(self, f"sidecar-{number}", chosen, self.clock, number, runtime)
        self._sidecars.append(made)
        return made

    def started(self, mode: Mode = Mode.AUTO, **settings: Any) -> Beside:
        """A sidecar that runs."""
        made = self.sidecar(mode, **settings)
        made.start()
        return made

    def create_pool(self, *conditions: dict[str, Any], **metadata: Any) -> None:
        """The MachinePool, with these conditions."""
        body: dict[str, Any] = {"metadata": {"name": POOL, **metadata}, "spec": {"providerID": "provider://a"}}
        if conditions:
            body["status"] = {"state": "Ready", "conditions": list(conditions)}
        self.api.put_object(MACHINE_POOLS, body)

    def delete_pool(self) -> None:
        """The MachinePool is gone."""
        self.api.delete_object(MACHINE_POOLS, POOL)

    def put_lease(self, holder: str, *, annotation: str | None = None, duration: int = 40) -> None:
        """Somebody creates or renews the lease, now by the world's clock."""
        renew_time = self.clock.utcnow().isoformat(timespec="microseconds").replace("+00:00", "Z")
        body = {
            "metadata": {
                "name": POOL,
                "namespace": LEASE_NAMESPACE,
                **({"annotations": {"loopwatch/holder": annotation}} if annotation else {}),
            },
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": renew_time},
        }
        self.api.put_object(LEASES, body)

    async def machinepoollet_beats(self, holder: str = f"{POOL}_poollet", every_seconds: float = INTERVAL) -> None:
        """A machinepoollet that renews by itself, until cancelled."""
        while True:
            lease = self.lease()
            annotation = (lease["metadata"].get("annotations") or {}).get("loopwatch/holder") if lease else None
            self.put_lease(holder, annotation=annotation)
            await self.clock.sleep(every_seconds)

    def lease(self) -> dict[str, Any] | None:
        """The lease as it is."""
        return self.api.object(LEASES, LEASE_KEY)

    def holder(self) -> str:
        """Who holds it; empty where there is no lease."""
        lease = self.lease()
        return str(lease["spec"].get("holderIdentity", "")) if lease else ""

    def renewed_seconds_ago(self) -> float:
        """By the wall clock that the sidecars write with; meant only where nobody moved that clock."""
        lease = self.lease()
        assert lease is not None
        return (self.clock.utcnow() - datetime.datetime.fromisoformat(lease["spec"]["renewTime"])).total_seconds()

    def pool(self) -> dict[str, Any]:
        """The MachinePool as it is."""
        found = self.api.object(MACHINE_POOLS, POOL)
        assert found is not None
        return found

    def conditions(self) -> list[dict[str, Any]]:
        """The pool's conditions."""
        return list(self.pool().get("status", {}).get("conditions", []))

    def ready(self) -> dict[str, Any]:
        """The pool's Ready condition; empty where there is none."""
        return next((entry for entry in self.conditions() if entry["type"] == "Ready"), {})

    def set_conditions(self, *conditions: dict[str, Any]) -> None:
        """Somebody else writes the list."""
        pool = self.pool()
        pool.setdefault("status", {})["conditions"] = list(conditions)
        self.api.put_object(MACHINE_POOLS, pool)

    def change_spec(self) -> None:
        """metadata.generation rises."""
        pool = self.pool()
        pool["spec"].setdefault("taints", []).append({"key": "maintenance", "effect": "NoSchedule"})
        self.api.put_object(MACHINE_POOLS, pool)

    def fault(self, effect: Effect, **match: Any) -> int:
        """Put a fault in force."""
        return self.api.faults.add(Fault(effect=effect, **match))

    @contextlib.asynccontextmanager
    async def suffering(self, effect: Effect, **match: Any) -> AsyncIterator[None]:
        """A fault for as long as the context is open."""
        number = self.fault(effect, **match)
        try:
            yield
        finally:
            self.api.faults.remove(number)

    async def passes(self, seconds: float) -> None:
        """Let time pass."""
        await self.clock.sleep(seconds)

    async def until(self, moment: float) -> None:
        """Let time pass up to a moment of this world."""
        await self.clock.sleep(moment - self.now)

    async def end(self) -> None:
        """Everything stops."""
        for each in self._sidecars:
            await each.die()


@contextlib.asynccontextmanager
async def world(*, pool: bool = True, namespace: bool = True) -> AsyncIterator[World]:
    """A world for one test, with the pool unless told otherwise."""
    made = World(SteppedClock(), namespace=namespace)
    if pool:
        made.create_pool()
    try:
        yield made
    finally:
        await made.end()


def ready_of(status: str, reason: str, message: str = "said by somebody else", generation: int = 1) -> dict[str, Any]:
    """A Ready condition that another writer published."""
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastUpdateTime": "2026-05-01T11:00:00Z",
        "lastTransitionTime": "2026-05-01T11:00:00Z",
    }


UNKNOWN = ready_of("Unknown", "MachinePoolStatusUnknown", "machinepoollet stopped posting machine pool status.")
"""What the lifecycle controller writes on a silent pool."""


def sent(records: list[Record], began: float) -> list[float]:
    """When each request was sent, in seconds since `began`."""
    return [round(record.at - began, 3) for record in records]
