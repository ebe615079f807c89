"""What 100,000 Machines on 1,000 pools cost a controller: memory, the list, an event, a relist, the longest pause of its event loop.

CPU and memory of one process without a network. Prints a table and one JSON line. Machines are noisy: compare the ratio to the yardstick
of the same run (bare JSON decoding of the same bytes), not the milliseconds of two runs. Run it with `make bench`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
import tracemalloc

import msgspec

from loopwatch.clock import SystemClock
from loopwatch.kube.delivery import Delivery, Listing
from loopwatch.kube.errors import Call
from loopwatch.kube.reflection import ReflectorStats
from loopwatch.kube.resources import MACHINES, ObjectKey
from loopwatch.metrics.family import Component
from loopwatch.metrics.store import Store
from loopwatch.pools.families.lifecycle import LIFECYCLE
from loopwatch.pools.families.machines import MACHINES as MACHINES_GROUP
from loopwatch.pools.families.machines import PLACEMENT
from loopwatch.pools.families.pool import POOL
from loopwatch.pools.machine import Machine, decode_machine
from loopwatch.pools.model import decode_machine_pool
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.placement import Placement

MACHINES_COUNT = 100_000
POOLS = 1_000
CLASSES = 10
EVENTS = 20_000
PAGE = 500


def pool(number: int) -> bytes:
    """A pool that says what it can hold of each class."""
    quantities = {f"class/machine.class-{name}": "20" for name in range(CLASSES)}
    status = {
        "conditions": [{"type": "Ready", "status": "True", "reason": "HeartbeatReceived", "message": "ok", "observedGeneration": 1}],
        "capacity": quantities,
        "allocatable": quantities,
    }
    return msgspec.json.encode({"metadata": {"name": f"pool-{number:04}", "uid": str(number)}, "status": status})


def machine(number: int, state: str) -> bytes:
    """A Machine of two volumes and an interface, as a machinepoollet leaves it."""
    metadata = {
        "name": f"machine-{number:06}",
        "namespace": f"tenant-{number % 200:03}",
        "uid": f"6f1c1f4e-6a3c-4f5c-8d63-{number:012}",
        "resourceVersion": str(number),
        "creationTimestamp": "2026-05-01T13:18:48Z",
        "finalizers": ["machinepoollet.ironcore.dev/machine"],
    }
    spec = {
        "machineClassRef": {"name": f"class-{number % CLASSES}"},
        "machinePoolRef": {"name": f"pool-{number % POOLS:04}"},
        "power": "On",
        "volumes": [{"name": name, "volumeRef": {"name": f"{name}-{number}"}} for name in ("root", "data")],
        "networkInterfaces": [{"name": "primary", "networkInterfaceRef": {"name": f"primary-{number}"}}],
    }
    conditions = [{"type": name, "status": "True", "reason": "Running", "message": ""} for name in ("Ready", "VolumesReady")]
    status = {"machineID": f"libvirt://{number}", "state": state, "conditions": conditions, "observedGeneration": 1}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status})


class Bench:
    """A placement and the delivery that feeds it."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        groups = (POOL, LIFECYCLE, PLACEMENT, MACHINES_GROUP)
        self.store = Store(*(group.exposed_by(Component.CONTROLLER) for group in groups))
        self.observer = PoolsObserver(self.store, POOL, self.clock, grace_seconds=50)
        self.placement = Placement(self.store, self.observer, counts_machines=True)
        there = {ObjectKey("", f"pool-{number:04}"): decode_machine_pool(pool(number)) for number in range(POOLS)}
        self.observer.machine_pools.replaced(there, frozenset(), self.clock.monotonic())
        self.delivery: Delivery[Machine] = Delivery(self.placement, decode_machine, Call("list", MACHINES), ReflectorStats(), self.clock)

    async def load(self) -> tuple[float, float]:
        """A complete list in pages: CPU seconds in all, and those of the one step that no other task can interrupt."""
        listing: Listing[Machine] = Listing({}, {}, [])
        decoding = 0.0
        for start in range(0, MACHINES_COUNT, PAGE):
            page = [msgspec.Raw(machine(number, "Running")) for number in range(start, start + PAGE)]
            began = time.process_time()
            await self.delivery.add_page(listing, page)
            decoding += time.process_time() - began
        began = time.process_time()
        self.delivery.replace(listing, "1", self.clock.monotonic())
        step = time.process_time() - began
        return decoding + step, step

    def deliver(self, lines: list[bytes]) -> float:
        """CPU seconds of a burst of events."""
        began = time.process_time()
        self.delivery.deliver(lines, self.clock.monotonic())
        return time.process_time() - began


async def main() -> None:
    """Measure, print."""
    first = await Bench().load()
    bench = Bench()
    gc.collect()
    tracemalloc.start()
    await bench.load()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    relists = [await bench.load() for _ in range(3)]
    states = ("Pending", "Running", "Terminating")
    bursts = [[b'{"type":"MODIFIED","object":' + machine(number, state) + b"}" for number in range(EVENTS)] for state in states]
    events = min(bench.deliver(lines) for lines in bursts)
    began = time.process_time()
    for line in bursts[0]:
        json.loads(line)
    bare = time.process_time() - began
    scrapes = []
    for _ in range(3):
        began = time.process_time()
        page = bench.store.render(bench.observer.moment())
        scrapes.append(time.process_time() - began)
    result = {
        "machines": MACHINES_COUNT,
        "pools": POOLS,
        "bytes_a_machine": round(held / MACHINES_COUNT),
        "list_ms": round(first[0] * 1e3),
        "longest_step_of_a_list_ms": round(first[1] * 1e3),
        "relist_ms": round(min(whole for whole, _ in relists) * 1e3),
        "longest_step_of_a_relist_ms": round(min(step for _, step in relists) * 1e3),
        "events_per_cpu_second": round(EVENTS / events),
        "event_to_json_loads_ratio": round(events / bare, 2),
        "lines_a_scrape": page.count(b"\n"),
        "next_scrape_ms": round(min(scrapes[1:]) * 1e3, 1),
    }
    for name, value in result.items():
        print(f"{name:<28}{value:>12}")
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main())
