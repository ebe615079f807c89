"""What one renewal of a Lease costs from the watch's bytes to the decision, and what a scrape costs: CPU, without a network.

Prints a table and one JSON line. Machines are noisy: compare the ratio to the yardstick of the same run (bare JSON decoding of the same
bytes), not the milliseconds of two runs. Run it with `make bench`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial

import msgspec

from loopwatch import catalogue
from loopwatch.clock import SystemClock
from loopwatch.controller import Clusters, Controller
from loopwatch.kube.delivery import Delivery, Listing
from loopwatch.kube.errors import Call
from loopwatch.kube.reflection import ReflectorStats
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS
from loopwatch.metrics.family import Component
from loopwatch.pools.model import decode_lease, decode_machine_pool
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.transport import SandboxTransport
from loopwatch.settings.model import ControllerSettings

POOLS = 10_000
ROUNDS = 3


def pool(number: int) -> bytes:
    """A reporting MachinePool as the API shows it."""
    condition = {"type": "Ready", "status": "True", "reason": "HeartbeatReceived", "message": "ok", "observedGeneration": 1}
    metadata = {"name": f"pool-{number:05}", "uid": str(number), "resourceVersion": str(number + 1), "generation": 1}
    return msgspec.json.encode({"metadata": metadata, "spec": {"providerID": f"p://{number}"}, "status": {"conditions": [condition]}})


def lease(number: int, round_number: int) -> bytes:
    """A Lease after so many renewals, as a machinepoollet leaves it."""
    metadata = {
        "name": f"pool-{number:05}",
        "namespace": LEASE_NAMESPACE,
        "uid": "6f1c1f4e-6a3c-4f5c-8d63-3f1f3a0c0a11",
        "resourceVersion": str(100_000 + round_number * POOLS + number),
        "creationTimestamp": "2026-05-01T13:18:48Z",
    }
    second = f"{round_number // 60 % 60:02}:{round_number % 60:02}"
    spec = {"holderIdentity": f"pool-{number:05}_x", "leaseDurationSeconds": 40, "renewTime": f"2026-05-01T13:{second}.065888Z"}
    return msgspec.json.encode({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec})


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _decode_all(lines: list[bytes]) -> list[object]:
    """The yardstick."""
    return [json.loads(line) for line in lines]


async def main() -> None:
    """Measure, print."""
    clock = SystemClock()
    controller = Controller(ControllerSettings(leader_elect=False), Clusters.one(SandboxTransport(ApiServer(clock), client="bench")), clock)
    pools = Delivery(controller.observer.machine_pools, decode_machine_pool, Call("list", MACHINE_POOLS), ReflectorStats(), clock)
    leases = Delivery(controller.observer.leases, decode_lease, Call("list", LEASES), ReflectorStats(), clock)
    for delivery, objects in ((pools, map(pool, range(POOLS))), (leases, (lease(number, 0) for number in range(POOLS)))):
        listing = Listing({}, {}, [])  # type: ignore[var-annotated]  # of either kind
        await delivery.add_page(listing, [msgspec.Raw(each) for each in objects])
        delivery.replace(listing, "1", clock.monotonic())
    lines = [[b'{"type":"MODIFIED","object":' + lease(number, turn + 1) + b"}" for number in range(POOLS)] for turn in range(ROUNDS)]
    bare = min(timed(partial(_decode_all, batch)) for batch in lines)
    events = min(timed(partial(leases.deliver, batch, clock.monotonic())) for batch in lines)
    scrapes = [timed(lambda: controller.store.render(controller.observer.moment())) for _ in range(ROUNDS)]
    series = controller.store.render(controller.observer.moment()).count(b"\n")
    result = {
        "pools": POOLS,
        "families": sum(len(group.families) for group in catalogue.groups(Component.CONTROLLER)),
        "events_per_cpu_second": round(POOLS / events),
        "event_to_json_loads_ratio": round(events / bare, 2),
        "lines_a_scrape": series,
        "first_scrape_ms": round(scrapes[0] * 1e3, 1),
        "next_scrape_ms": round(min(scrapes[1:]) * 1e3, 1),
    }
    for name, value in result.items():
        print(f"{name:<28}{value:>12}")
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main())
