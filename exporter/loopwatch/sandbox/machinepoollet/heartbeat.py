"""The stand-in's heartbeat: on each tick it probes the runtime, renews or takes the lease, and publishes what the probe brought.

In that order and in one task, as upstream: a probe that hangs until its timeout delays the renewal, and a lease that can't be read ends
all ticks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import NamedTuple

from loopwatch.clock import Clock
from loopwatch.iri.probe import RuntimeProbe
from loopwatch.kube.transport import TransportError
from loopwatch.sandbox.machinepoollet.cache import Cache
from loopwatch.sandbox.machinepoollet.calls import MERGE_PATCH, CallRefused, Gate, Process
from loopwatch.sandbox.machinepoollet.documents import Document, difference, micro_time

LEASE_NAMESPACE = "ironcore-machinepool-lease"
LEASES_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"


class HeartbeatTimes(NamedTuple):
    """Upstream's three --heartbeat flags, in seconds."""

    interval_seconds: float = 10.0
    lease_duration_seconds: float = 40.0
    status_timeout_seconds: float = 5.0


class ReadyState:
    """What the last probe brought; `changed` is called when that differs from the one before, as text."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.probe_error: str | None = None
        """None before the first probe, empty after a success."""

    def publish(self, probe_error: str) -> None:
        """Take the outcome of a probe."""
        before, self.probe_error = self.probe_error, probe_error
        if before != probe_error:
            self._changed()


class Ticker:
    """Go's time.Ticker: fires on a fixed grid, keeps one tick for a slow receiver and drops the others."""

    def __init__(self, clock: Clock, gate: Gate, interval_seconds: float) -> None:
        self._clock = clock
        self._gate = gate
        self._interval = interval_seconds
        self._began = clock.monotonic()
        self._next = 1

    async def tick(self) -> None:
        """Wait for the next tick; at once where one was kept. A process that was stopped finds one tick, however long it was."""
        await self._clock.sleep(self._began + self._next * self._interval - self._clock.monotonic())
        await self._gate.passed()
        passed = int((self._clock.monotonic() - self._began) / self._interval + 1e-9)
        self._next = max(passed, self._next) + 1


class Heartbeat:
    """One pool's heartbeat."""

    def __init__(self, process: Process, times: HeartbeatTimes, runtime: RuntimeProbe, leases: Cache, ready_state: ReadyState) -> None:
        self.holder_identity = f"{process.pool_name}_{uuid.uuid4()}"
        self._process = process
        self._times = times
        self._runtime = runtime
        self._leases = leases
        self._ready_state = ready_state

    async def run(self) -> None:
        """Beat until cancelled; the first tick comes at once, and the ticker starts after it."""
        await self._tick()
        ticker = Ticker(self._process.clock, self._process.gate, self._times.interval_seconds)
        while True:
            await ticker.tick()
            await self._tick()

    async def _tick(self) -> None:
        result = await self._runtime.status(self._times.status_timeout_seconds)
        await self._process.gate.passed()
        try:
            await self._reconcile_lease()
        except (CallRefused, TransportError) as error:
            self._process.log(f"Failed to reconcile machine pool lease: {error}")
        self._ready_state.publish(result.message)

    async def _reconcile_lease(self) -> None:
        now = micro_time(self._process.clock.utcnow())
        lease = await self._leases.get(self._process.pool_name, LEASE_NAMESPACE)
        if lease is None:
            await self._process.calls.send("POST", LEASES_PATH, self._new_lease(now))
            return
        spec: Document = lease.get("spec") or {}
        wanted: Document = spec | {"leaseDurationSeconds": int(self._times.lease_duration_seconds), "renewTime": now}
        holder = spec.get("holderIdentity")
        if holder != self.holder_identity:
            self._process.log(
                f"Taking ownership of stale machine pool lease previousHolder={holder or '<unset>'} newHolder={self.holder_identity}"
            )
            wanted |= {"holderIdentity": self.holder_identity, "acquireTime": now}
        body = {"spec": difference(spec, wanted)}
        await self._process.calls.send("PATCH", f"{LEASES_PATH}/{self._process.pool_name}", body, MERGE_PATCH)

    def _new_lease(self, now: str) -> Document:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._process.pool_name, "namespace": LEASE_NAMESPACE},
            "spec": {
                "holderIdentity": self.holder_identity,
                "leaseDurationSeconds": int(self._times.lease_duration_seconds),
                "acquireTime": now,
                "renewTime": now,
            },
        }
