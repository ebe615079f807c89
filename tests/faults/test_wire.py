"""The network of the fault suite keeps what it says: order, partitions of both kinds, the dead, the stalled, and who left too early."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from loopwatch.kube.resources import MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Fault, Hang
from tests.faults.wire import Network, Weather, WireTransport
from tests.support.processes import Process, World

POOL = ObjectKey("", "pool-a")
PATIENT = Timeout(connect=10, read=10, total=10)
WATCHING = Timeout(connect=10, read=90, total=None)


class Wired:
    """A server with one pool, and one client on host `a`."""

    def __init__(self, world: World) -> None:
        self.world = world
        server = Process(world, "api", 1)
        self.api = ApiServer(server.clock)
        self.network = Network(world, self.api, server, "seed", Weather(0.0, 0.1))
        self.client = Process(world, "a", 2)
        self.transport = WireTransport(self.network, self.client, "a", "a.1")
        self.api.put_object(MACHINE_POOLS, {"metadata": {"name": POOL.name}, "spec": {}})
        self.seen: list[str] = []

    def taint(self, key: str) -> None:
        """The client patches the pool, and notes how it ended."""
        body = json.dumps({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}).encode()
        headers = {"Content-Type": "application/merge-patch+json"}
        self.client.start(self._send(Request("PATCH", MACHINE_POOLS.object_path(POOL), headers=headers, body=body)))

    def put_taint(self, key: str) -> None:
        """Somebody else writes the pool."""
        self.api.put_object(MACHINE_POOLS, {"metadata": {"name": POOL.name}, "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}})

    def watch(self) -> None:
        """The client watches, and notes the taint of each event."""
        self.client.start(self._watch())

    def taints(self) -> list[str]:
        """As stored."""
        found = self.api.object(MACHINE_POOLS, POOL)
        assert found is not None
        return [taint["key"] for taint in found["spec"].get("taints", [])]

    def passes(self, seconds: float) -> None:
        """Time."""
        self.world.run(self.world.now + seconds)

    async def _send(self, request: Request) -> None:
        try:
            async with self.transport.send(request, PATIENT) as response:
                await response.read()
                self.seen.append(str(response.status))
        except TransportError as error:
            self.seen.append("timeout" if isinstance(error, TransportTimeout) else str(error))

    async def _watch(self) -> None:
        query = (("watch", "1"), ("resourceVersion", str(self.api.revision)))
        try:
            async with self.transport.send(Request("GET", MACHINE_POOLS.collection_path(), query), WATCHING) as response:
                async for chunk in response.chunks():
                    events: list[Any] = [json.loads(line) for line in chunk.splitlines()]
                    self.seen.append(" ".join(event["object"]["spec"]["taints"][0]["key"] for event in events))
        except TransportError as error:
            self.seen.append(str(error))


@pytest.fixture
def wired() -> Iterator[Wired]:
    with World() as world:
        yield Wired(world)


def test_an_answer_takes_two_journeys(wired: Wired) -> None:
    wired.taint("one")
    wired.passes(0.0004)
    assert (wired.seen, wired.taints()) == ([], [])
    wired.passes(0.02)
    assert (wired.seen, wired.taints()) == (["200"], ["one"])


def test_a_dropping_partition_delivers_late_and_in_order(wired: Wired) -> None:
    wired.watch()
    wired.passes(1)
    link = wired.network.link("a", "machinepools")
    link.break_off("drop")
    for number in range(5):
        wired.put_taint(str(number))
    wired.passes(20)
    assert wired.seen == []
    link.heal()
    wired.passes(1)
    assert " ".join(wired.seen) == "0 1 2 3 4"


def test_a_request_that_was_held_back_until_its_client_gave_up_never_arrives(wired: Wired) -> None:
    wired.network.link("a", "machinepools").break_off("drop")
    wired.taint("late")
    wired.passes(11)
    assert wired.seen == ["timeout"]
    wired.network.link("a", "machinepools").heal()
    wired.passes(11)
    assert wired.taints() == []


def test_a_refusing_partition_breaks_what_is_open_and_refuses_what_comes(wired: Wired) -> None:
    wired.watch()
    wired.passes(1)
    wired.network.link("a", "machinepools").break_off("refuse")
    wired.taint("refused")
    wired.passes(1)
    assert sorted(wired.seen) == ["connection refused", "connection reset by peer"]
    assert wired.taints() == []


def test_a_partition_from_one_resource_leaves_the_others(wired: Wired) -> None:
    wired.network.link("a", "leases").break_off("refuse")
    wired.taint("through")
    wired.passes(1)
    assert wired.seen == ["200"]


def test_what_a_process_sent_before_it_was_killed_arrives_all_the_same(wired: Wired) -> None:
    wired.taint("last")
    wired.passes(0.0001)
    wired.client.kill()
    wired.network.reset("a.1")
    wired.passes(1)
    assert (wired.seen, wired.taints()) == ([], ["last"])


def test_a_process_that_stood_still_reads_at_once_what_came_meanwhile(wired: Wired) -> None:
    wired.watch()
    wired.passes(1)
    wired.client.stall(30)
    for number in range(3):
        wired.put_taint(str(number))
        wired.passes(1)
    wired.passes(20)
    assert wired.seen == []
    wired.passes(20)
    assert wired.seen == ["0 1 2"]


def test_a_request_that_hangs_ends_with_its_client(wired: Wired) -> None:
    number = wired.api.faults.add(Fault(effect=Hang(resume=True), verb="patch"))
    wired.taint("hung")
    wired.passes(11)
    wired.api.faults.remove(number)
    wired.passes(1)
    assert (wired.seen, wired.taints()) == (["timeout"], [])
