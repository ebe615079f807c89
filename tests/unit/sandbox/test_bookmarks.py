"""When bookmarks come and what they name: the real server's habits, which a client must bear (seen on kube-apiserver 1.36)."""

from __future__ import annotations

import msgspec

from loopwatch.kube.resources import LEASES, MACHINE_POOLS
from loopwatch.kube.transport import Request, Timeout
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.transport import SandboxTransport
from tests.support.stepped import SteppedClock, stepped

ENDLESS = Timeout(connect=1, read=10_000, total=None)


async def marks(api: ApiServer, clock: SteppedClock, **query: str) -> list[tuple[float, int]]:
    """Seconds and revisions of all bookmarks of one watch of pools, until it ends."""
    given = {"watch": "1", "allowWatchBookmarks": "true", "fieldSelector": "metadata.name=nobody", **query}
    began = clock.monotonic()
    seen: list[tuple[float, int]] = []
    async with SandboxTransport(api, "c").send(Request("GET", MACHINE_POOLS.collection_path(), tuple(given.items())), ENDLESS) as response:
        async for line in response.chunks():
            event = msgspec.json.decode(line)
            assert event["type"] == "BOOKMARK"
            seen.append((round(clock.monotonic() - began), int(event["object"]["metadata"]["resourceVersion"])))
    return seen


def write(api: ApiServer) -> int:
    api.put_object(MACHINE_POOLS, {"metadata": {"name": "a", "labels": {"n": str(api.revision)}}})
    return api.revision


@stepped
async def test_they_come_every_minute_and_two_seconds_before_the_end() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    start = api.revision
    last = write(api)
    assert await marks(api, clock, resourceVersion=str(start), timeoutSeconds="150") == [(60, last), (120, last), (148, last)]


@stepped
async def test_a_resource_that_saw_nothing_newer_than_the_start_has_none() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    write(api)
    for _ in range(3):
        api.put_object(LEASES, {"metadata": {"name": "l", "namespace": "default", "labels": {"n": str(api.revision)}}})
    assert await marks(api, clock, resourceVersion=str(api.revision), timeoutSeconds="600") == []


@stepped
async def test_a_consistent_read_by_anyone_lets_them_come() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    write(api)
    start = api.revision
    api.put_object(LEASES, {"metadata": {"name": "l", "namespace": "default"}})
    async with SandboxTransport(api, "other").send(Request("GET", LEASES.collection_path()), ENDLESS) as response:
        await response.read()
    assert await marks(api, clock, resourceVersion=str(start), timeoutSeconds="90") == [(60, api.revision), (88, api.revision)]


@stepped
async def test_without_a_timeout_a_watch_ends_after_half_an_hour_to_an_hour() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    began = clock.monotonic()
    assert await marks(api, clock, resourceVersion=str(api.revision)) == []
    assert 1800 <= clock.monotonic() - began <= 3600
