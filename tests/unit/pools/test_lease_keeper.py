"""The two writers against answers that no well-behaved API server gives, one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from loopwatch import catalogue
from loopwatch.iri.probe import ProbeResult
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import Request, Timeout
from loopwatch.metrics.family import Component
from loopwatch.metrics.store import Store
from loopwatch.pools.act.lease import LeaseKeeper
from loopwatch.pools.act.ready import ReadyPublisher
from loopwatch.pools.derive import duty as duties
from loopwatch.pools.derive import ready
from loopwatch.pools.derive.duty import State
from loopwatch.pools.families.pool import POOL as POOL_GROUP
from loopwatch.pools.model import decode_lease
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.standing import Standing
from loopwatch.pools.tally import Tally
from loopwatch.settings.model import Mode
from tests.support import pools
from tests.support.logs import Lines
from tests.support.stepped import SteppedClock, stepped

POOL, US = "pool-a", "pool-a_us"
LEASE_KEY = ObjectKey(LEASE_NAMESPACE, POOL)
INTERVAL = 10.0


@dataclass
class Reply:
    """A whole answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    async def read(self) -> bytes:
        """The body."""
        return self.body

    def chunks(self) -> AsyncIterator[bytes]:
        """Nothing streams here."""
        raise AssertionError("no watch belongs here")


class Scripted:
    """A transport that answers by a function, and remembers what it was asked."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []

    @contextlib.asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncIterator[Reply]:
        """Answer at once."""
        assert timeout.total is not None
        assert timeout.total <= INTERVAL
        self.asked.append((request.method, json.loads(request.body) if request.body else None))
        yield self.answer(request)

    async def renew_credentials(self) -> bool:
        """There are no others."""
        return False

    async def close(self) -> None:
        """Nothing to close."""


class Parts:
    """The two writers and what they share, for a sidecar in `report` that has seen its pool."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.clock = SteppedClock()
        self.store = Store(*catalogue.groups(Component.SIDECAR))
        now = self.clock.monotonic()
        self.observer = PoolsObserver(self.store, POOL_GROUP, self.clock)
        self.tally = Tally(self.store, POOL)
        duty = duties.begin(Mode.REPORT, US, INTERVAL, ask_machinepoollet=False, at=now)
        self.standing = Standing(POOL, duty, ready.begin(now, 60.0), self.observer, self.tally, self.clock)
        self.transport = Scripted(answer)
        self.keeper = LeaseKeeper(
            self.transport, self.standing, self.tally, self.clock, pool=POOL, interval_seconds=INTERVAL, lease_duration_seconds=40
        )
        self.publisher = ReadyPublisher(self.transport, self.standing, self.tally, self.clock, pool=POOL, interval_seconds=INTERVAL)

    def see_pool(self, *conditions: dict[str, Any]) -> None:
        """The watch lists the pool."""
        at = self.clock.monotonic()
        self.observer.machine_pools.replaced({ObjectKey("", POOL): pools.pool(POOL, *conditions)}, frozenset(), at)
        self.standing.pools_changed(listed=True)

    def see_lease(self, **lease: Any) -> None:
        """The watch lists the lease."""
        self.observer.leases.replaced({LEASE_KEY: pools.lease(POOL, **lease)}, frozenset(), self.clock.monotonic())
        self.standing.leases_changed(listed=True)

    def see_change(self, lease: dict[str, Any]) -> None:
        """The watch brings another state of the lease."""
        self.observer.leases.changed(LEASE_KEY, decode_lease(json.dumps(lease).encode()), self.clock.monotonic())
        self.standing.leases_changed(listed=False)

    async def beat(self) -> None:
        """One beat with the whole interval to itself."""
        await self.keeper.beat(self.clock.monotonic() + INTERVAL)

    def methods(self) -> list[str]:
        """What was sent."""
        return [method for method, _ in self.transport.asked]

    def lease_writes(self, result: str) -> float | None:
        """The counter."""
        return self.store.value("loopwatch_heartbeat_lease_writes_total", {"machinepool": POOL, "result": result}, self.observer.moment())

    def ready_writes(self, result: str) -> float | None:
        """The counter."""
        return self.store.value("loopwatch_heartbeat_ready_writes_total", {"machinepool": POOL, "result": result}, self.observer.moment())


def ok(body: Any) -> Reply:
    return Reply(200, json.dumps(body).encode())


def refused(status: int, **details: str) -> Reply:
    return Reply(status, json.dumps({"kind": "Status", "code": status, "reason": "Scripted", "details": details}).encode())


def ours(version: str = "2") -> dict[str, Any]:
    """Our lease as an answer shows it."""
    lease = pools.raw_lease(POOL, holder=US)
    lease["metadata"] |= {"resourceVersion": version, "annotations": {"loopwatch/holder": US}}
    return lease


@stepped
async def test_a_steady_beat_is_one_patch_with_the_version_of_the_last_answer() -> None:
    parts = Parts(lambda _: ok(ours()))
    parts.see_pool()
    parts.see_lease(holder=US, **{"loopwatch/holder": US})
    await parts.beat()
    await parts.beat()
    assert parts.methods() == ["PATCH", "PATCH"]
    bodies = [body for _, body in parts.transport.asked]
    assert [body["metadata"]["resourceVersion"] for body in bodies] == ["1", "2"]
    assert [body["spec"].keys() for body in bodies] == [{"renewTime"}, {"renewTime"}]


@pytest.mark.parametrize("body", [b"<html>a proxy's page</html>", b"", b'{"metadata": 5}'])
@stepped
async def test_an_answer_that_is_no_lease_is_an_error_and_leaves_a_doubt(body: bytes) -> None:
    parts = Parts(lambda request: Reply(200, body) if request.method == "PATCH" else ok(ours("5")))
    parts.see_pool()
    parts.see_lease(holder=US)
    await parts.beat()
    assert parts.methods()[:3] == ["PATCH", "GET", "PATCH"]
    assert parts.lease_writes("ok") == 0
    assert parts.lease_writes("error") == parts.methods().count("PATCH")


@stepped
async def test_a_watch_that_brings_news_ends_a_doubt_as_well_as_a_read_does() -> None:
    def answer(_: Request) -> Reply:
        if len(parts.transport.asked) > 1:
            return ok(ours("9"))
        asyncio.get_running_loop().call_later(0.01, parts.see_change, ours("5"))
        return refused(500)

    parts = Parts(answer)
    parts.see_pool()
    parts.see_lease(holder=US)
    await parts.beat()
    assert parts.methods() == ["PATCH", "PATCH"], "no GET between them"
    assert parts.transport.asked[1][1]["metadata"]["resourceVersion"] == "5"


@stepped
async def test_a_404_that_is_not_about_the_lease_creates_nothing() -> None:
    parts = Parts(lambda _: Reply(404, b"404 page not found"))
    parts.see_pool()
    parts.see_lease(holder=US)
    await parts.beat()
    assert "POST" not in parts.methods()


@stepped
async def test_a_404_about_the_lease_creates_it_within_the_same_tick() -> None:
    replies = {"PATCH": refused(404, name=POOL, kind="leases"), "POST": ok(ours("7"))}
    parts = Parts(lambda request: replies[request.method])
    parts.see_pool()
    parts.see_lease(holder=US)
    began = parts.clock.monotonic()
    await parts.beat()
    assert parts.methods() == ["PATCH", "POST"]
    assert parts.clock.monotonic() == began


@stepped
async def test_conflicts_without_end_are_few_attempts_and_end_at_the_tick() -> None:
    parts = Parts(lambda request: ok(ours()) if request.method == "GET" else refused(409))
    parts.see_pool()
    parts.see_lease(holder=US)
    began, lines = parts.clock.monotonic(), Lines()
    with lines.caught():
        await parts.beat()
    assert parts.clock.monotonic() <= began + INTERVAL
    assert parts.methods().count("PATCH") <= 12
    assert len([line for line in lines.texts("warning") if "409" in line]) == 1


@stepped
async def test_a_read_that_fails_does_not_keep_a_write_from_being_tried() -> None:
    writes = [refused(500), ok(ours())]
    parts = Parts(lambda request: refused(403) if request.method == "GET" else writes.pop(0))
    parts.see_pool()
    parts.see_lease(holder=US)
    await parts.beat()
    assert parts.methods() == ["PATCH", "GET", "PATCH"]


@stepped
async def test_a_server_that_drops_the_condition_is_not_written_to_in_a_storm() -> None:
    parts = Parts(lambda _: ok(pools.raw_pool(POOL)))
    parts.see_pool()
    parts.standing.probed(ProbeResult("OK"), 0.01)
    end = parts.clock.monotonic() + 60
    while parts.clock.monotonic() < end:
        due_at = parts.publisher.due_at()
        if due_at <= parts.clock.monotonic():
            await parts.publisher.publish()
        else:
            await parts.clock.sleep(min(due_at, end) - parts.clock.monotonic())
    assert 3 <= parts.methods().count("PATCH") <= 15


@stepped
async def test_a_pool_that_vanishes_under_the_publisher_stops_the_reports() -> None:
    parts = Parts(lambda _: refused(404, name=POOL, kind="machinepools"))
    parts.see_pool()
    parts.standing.probed(ProbeResult("OK"), 0.01)
    await parts.publisher.publish()
    assert parts.methods() == ["GET"]
    assert parts.standing.duty.state is not State.REPORTING
    assert parts.publisher.due_at() == ready.NOT_AT_ALL


@stepped
async def test_conditions_and_fields_that_nobody_here_knows_are_written_back_as_read() -> None:
    odd = {"type": "Odd", "status": "Maybe", "extra": {"kept": [1, 2]}, "lastTransitionTime": None}
    before = {**pools.ready_condition("False"), "extra": "of another version"}
    parts = Parts(lambda _: ok(pools.raw_pool(POOL, odd, before)))
    parts.see_pool(before)
    parts.standing.probed(ProbeResult("OK"), 0.01)
    await parts.publisher.publish()
    method, body = parts.transport.asked[-1]
    assert method == "PATCH"
    assert body["metadata"] == {"resourceVersion": "1"}
    written = body["status"]["conditions"]
    assert written[0] == odd
    assert written[1]["status"] == "True"
    assert body.keys() == {"metadata", "status"}
    assert body["status"].keys() == {"conditions"}


@stepped
async def test_nothing_is_sent_once_the_duty_ended_between_read_and_write() -> None:
    def answer(request: Request) -> Reply:
        if request.method == "GET":
            parts.standing.machinepoollet(answered=False)
            parts.standing.machinepoollet(answered=False)
        return ok(pools.raw_pool(POOL))

    parts = Parts(answer)
    parts.see_pool()
    parts.standing.probed(ProbeResult("OK"), 0.01)
    await parts.publisher.publish()
    assert parts.methods() == ["GET"]
    assert parts.ready_writes("ok") == 0


@stepped
async def test_no_attempt_follows_once_the_duty_ended() -> None:
    def answer(_: Request) -> Reply:
        parts.standing.machinepoollet(answered=False)
        parts.standing.machinepoollet(answered=False)
        return refused(500)

    parts = Parts(answer)
    parts.see_pool()
    parts.see_lease(holder=US)
    await parts.beat()
    assert parts.methods() == ["PATCH"]


@stepped
async def test_a_watch_that_an_answer_has_overtaken_is_not_believed() -> None:
    parts = Parts(lambda _: ok(ours("12")))
    parts.see_pool()
    parts.see_lease(holder=US)
    await parts.beat()
    past = pools.raw_lease(POOL, holder="pool-a_poollet", renew_time=pools.renewal(1))
    past["metadata"]["resourceVersion"] = "11"
    parts.see_change(past)
    assert parts.standing.lease is not None
    assert parts.standing.lease.holder == US
    past["metadata"]["resourceVersion"] = "13"
    parts.see_change(past)
    assert parts.standing.lease.holder == "pool-a_poollet"


@stepped
async def test_a_read_that_the_watch_has_overtaken_is_not_believed() -> None:
    parts = Parts(lambda _: ok(ours()))
    parts.see_pool()
    asked = parts.standing.news_of_lease
    parts.see_lease(holder=US)
    parts.standing.lease_read(None, asked_at_news=asked)
    assert parts.standing.lease is not None
    asked_pool = parts.standing.news_of_pool
    parts.see_pool()
    parts.standing.pool_read(None, asked_at_news=asked_pool)
    assert parts.standing.pool is not None


def test_the_paths_are_those_of_the_api() -> None:
    assert LEASES.object_path(LEASE_KEY) == "/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases/pool-a"
    assert MACHINE_POOLS.object_path(ObjectKey("", POOL), "status") == "/apis/compute.ironcore.dev/v1alpha1/machinepools/pool-a/status"
