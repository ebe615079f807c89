"""One pool and everybody who has to do with it, as processes: runtime, machinepoollet, sidecar, controller, and the test's stop-watch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.programs import START_SECONDS, Loopwatch, Machinepoollet, MachineRuntime
from tests.e2e.watching import POOLS, Watcher, became, ready
from tests.real_servers.apiserver import ApiServer
from tests.real_servers.client import WatchEvent

POOL = "pool-a"
STEP_SECONDS = 0.05


def until(claim: str, true: Callable[[], bool], within_seconds: float) -> float:
    """Poll until it holds; the moment it did (time.monotonic), or AssertionError."""
    deadline = time.monotonic() + within_seconds
    while not true():
        assert time.monotonic() < deadline, f"not {claim} within {within_seconds:g} s"
        time.sleep(STEP_SECONDS)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class World:
    """`pools` and `leases` see every change from before the pool was made."""

    server: ApiServer
    runtime: MachineRuntime
    machinepoollet: Machinepoollet
    start: Callable[..., Loopwatch]
    pools: Watcher
    leases: Watcher

    def create_pool(self) -> None:
        """Make the pool."""
        manifest = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "metadata": {"name": POOL}}
        self.server.client.create(POOLS, manifest | {"spec": {"providerID": f"test://{POOL}"}})

    def start_controller(self) -> Loopwatch:
        """A controller with its default times, ready."""
        controller = self.start("controller")
        controller.wait_until_ready()
        return controller

    def start_sidecar(self, mode: str) -> Loopwatch:
        """A sidecar of the pool with its default times."""
        return self.start(
            "sidecar",
            f"--machine-pool-name={POOL}",
            f"--mode={mode}",
            f"--machine-runtime-endpoint=unix:{self.runtime.socket}",
            f"--machinepoollet-healthz={self.machinepoollet.healthz}",
        )

    def start_reporting(self) -> Loopwatch:
        """A sidecar that reports from the first tick, once it holds the Lease and the pool is Ready (two tasks, in either order)."""
        began = time.monotonic()
        sidecar = self.start_sidecar("report")
        self.becomes("True", START_SECONDS, after=began)
        self.leases.wait_for("held", lambda event: event.type in ("ADDED", "MODIFIED"), START_SECONDS, after=began)
        return sidecar

    def becomes(self, status: str, within_seconds: float, *, after: float = 0.0) -> WatchEvent:
        """Wait until the pool's Ready is written with this status."""
        return self.pools.wait_for(f"Ready={status}", became(POOL, status), within_seconds, after=after)

    def statuses(self, *, after: float = 0.0) -> list[str]:
        """Every status that Ready had since then, in order, repetitions left out."""
        seen: list[str] = []
        for event in self.pools.events:
            status = ready(event.object)[0]
            if event.at > after and (not seen or seen[-1] != status):
                seen.append(status)
        return seen

    def renewals(self, *, after: float = 0.0) -> list[float]:
        """The moments at which the Lease was seen to change."""
        return [event.at for event in self.leases.events if event.at > after]


def longest_gap(moments: list[float]) -> float:
    """The longest time between one and the next, in seconds."""
    return max((later - earlier for earlier, later in itertools.pairwise(moments)), default=0.0)
