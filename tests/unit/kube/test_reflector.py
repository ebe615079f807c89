"""The reflector keeps its sink equal to the server, at a bounded pace, whatever the server does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from loopwatch.kube.read import Reader
from loopwatch.kube.reflector import ERROR_KINDS, Reflector, ReflectorStats, ReflectorTimes
from loopwatch.kube.resources import LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import CredentialsError, TransportError
from tests.support.stepped import SteppedClock, stepped
from tests.unit.kube.fake_api import FakeApi, Fault, Mirror, status_body


class Thing(msgspec.Struct):
    """What is decoded of an object."""

    value: int = 0


decode = msgspec.json.Decoder(Thing).decode


class World:
    """A server, a sink and the reflector between them, which runs within `running()`."""

    def __init__(self, times: ReflectorTimes | None = None, **options: Any) -> None:
        self.api = FakeApi()
        self.clock = SteppedClock()
        self.sink = Mirror()
        self.answers: list[float] = []
        reader = Reader(self.api, self.clock, timeout_seconds=10)
        options = {"on_answer": self.answers.append} | options
        self.reflector = Reflector(reader, MACHINE_POOLS, self.sink, decode, self.clock, times=times, **options)
        self.stats = self.reflector.stats

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The reflector runs, and must not end by itself."""
        task = asyncio.create_task(self.reflector.run())
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def run_for(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.clock.sleep(seconds)

    def names(self) -> dict[str, int]:
        """What the sink holds."""
        return {key.name: thing.value for key, thing in self.sink.objects.items()}

    def truth(self) -> dict[str, Any]:
        """What the server holds."""
        return {key.name: obj.get("value", 0) for key, obj in self.api.objects.items()}

    def kinds(self) -> list[str]:
        """What the sink was told, in order."""
        return [call[0] for call in self.sink.calls]


@stepped
async def test_a_list_fills_the_sink_and_a_watch_keeps_it() -> None:
    world = World()
    world.api.put("a", value=1)
    assert world.stats.synced is False
    async with world.running():
        await world.run_for(0.1)
        assert world.names() == {"a": 1}
        assert (world.stats.synced, world.stats.served, world.stats.objects) == (True, True, 1)
        world.api.put("b", value=2)
        world.api.put("a", value=3)
        world.api.delete("b")
        await world.run_for(0.1)
        assert world.names() == {"a": 3}
        assert world.kinds() == ["replaced", "changed", "changed", "deleted"]
        assert world.stats.objects == 1


@stepped
async def test_the_list_is_consistent_and_the_watch_begins_where_it_ended() -> None:
    world = World(namespace="", field_selector="metadata.name=a")
    async with world.running():
        await world.run_for(0.1)
    listing, watch = (dict(request.query) for request in world.api.requests)
    assert "resourceVersion" not in listing
    assert (watch["resourceVersion"], watch["fieldSelector"], listing["fieldSelector"]) == ("100", "metadata.name=a", "metadata.name=a")


@stepped
async def test_a_clean_end_is_followed_by_a_watch_from_the_last_version_and_no_list() -> None:
    world = World()
    async with world.running():
        await world.run_for(1)
        world.api.put("a")
        await world.run_for(2000)
        assert world.api.verbs().count("list") == 1
        assert 5 <= world.stats.watches_total <= 10
        assert all(dict(request.query)["resourceVersion"] == "101" for request in world.api.requests[2:])
        assert sum(world.stats.errors_total.values()) == 0
        assert world.kinds() == ["replaced", "changed"]


@stepped
async def test_watches_are_asked_for_different_times_so_that_processes_do_not_come_back_together() -> None:
    world = World()
    async with world.running():
        await world.run_for(3000)
    asked = [int(dict(request.query)["timeoutSeconds"]) for request in world.api.requests[1:]]
    assert len(set(asked)) > len(asked) // 2
    assert all(225 <= seconds <= 376 for seconds in asked)


@stepped
async def test_bookmarks_move_the_place_without_an_event() -> None:
    world = World()
    async with world.running():
        await world.run_for(1)
        world.api.version = 900
        await world.run_for(400)
        assert dict(world.api.requests[-1].query)["resourceVersion"] == "900"
        assert world.kinds() == ["replaced"]
        assert world.stats.last_event_at is not None
        assert world.stats.last_contact_at is not None
        assert world.stats.last_contact_at - world.stats.last_event_at > 300, "a bookmark is a sign of life, but no event"


@stepped
async def test_every_answered_read_is_told() -> None:
    world = World(page_limit=2)
    for name in "abcde":
        world.api.put(name)
    async with world.running():
        await world.run_for(1)
        assert len(world.answers) == 4, "three pages and the opening of a watch"
        world.api.faults.append(Fault(status=503))
        world.api.end_watches()
        await world.run_for(0.1)
        assert len(world.answers) == 4, "a refusal is no sight"


@stepped
async def test_a_relist_replaces_and_changes_nothing_else() -> None:
    world = World()
    world.api.put("a", value=1)
    world.api.put("b", value=1)
    async with world.running():
        await world.run_for(1)
        world.api.silent = True
        world.api.end_watches()
        world.api.delete("b")
        world.api.put("c", value=1)
        world.api.compact()
        world.api.silent = False
        await world.run_for(20)
        assert world.names() == {"a": 1, "c": 1}
        assert world.kinds() == ["replaced", "replaced"]
        assert world.stats.objects == 2


@stepped
async def test_a_version_that_expired_costs_one_list_at_once() -> None:
    world = World()
    world.api.put("a")
    async with world.running():
        await world.run_for(30)
        world.api.silent = True
        world.api.put("b")
        world.api.compact()
        world.api.end_watches()
        world.api.silent = False
        await world.run_for(0.1)
        assert world.names() == {"a": 0, "b": 0}
        assert world.stats.errors_total["gone"] == 1
        assert world.stats.lists_total == 2


@stepped
async def test_a_410_within_the_stream_costs_one_list_at_once() -> None:
    world = World()
    async with world.running():
        await world.run_for(30)
        world.api.version = 200
        world.api.compact()
        world.api.end_watches()
        await world.run_for(0.1)
        assert (world.stats.lists_total, world.stats.errors_total["gone"]) == (2, 1)
        gone = status_body(410, "Expired", "too old")
        world.api.faults.append(Fault(on="watch", lines=(b'{"type":"ERROR","object":' + gone + b"}\n",)))
        await world.run_for(60)
        world.api.end_watches()
        await world.run_for(10)
        assert (world.stats.lists_total, world.stats.errors_total["gone"]) == (3, 2)


@stepped
async def test_a_version_that_is_always_expired_does_not_make_it_spin() -> None:
    world = World()
    world.api.faults.extend(Fault(on="watch", status=410) for _ in range(1000))
    async with world.running():
        await world.run_for(600)
    assert 15 < world.stats.lists_total < 45


@stepped
async def test_an_expired_continue_token_begins_the_list_again_and_replaces_nothing_by_half() -> None:
    world = World(page_limit=2)
    for name in "abcde":
        world.api.put(name)

    def compact_once(end: int) -> None:
        if end == 2:
            world.api.before_page = lambda _: None
            world.api.delete("a")
            asyncio.get_running_loop().call_soon(world.api.compact)

    world.api.before_page = compact_once
    async with world.running():
        await world.run_for(1)
        assert world.kinds() == ["replaced"]
        assert sorted(world.names()) == ["b", "c", "d", "e"]
        assert world.stats.errors_total["gone"] == 1
    assert "limit" not in dict(world.api.requests[2].query), "one page can't expire under way"


@stepped
async def test_a_list_that_breaks_off_replaces_nothing() -> None:
    world = World(page_limit=2)
    for name in "abcd":
        world.api.put(name)

    def fail(_: int) -> None:
        world.api.before_page = lambda _: None
        world.api.faults.append(Fault(on="list", status=500))

    world.api.before_page = fail
    async with world.running():
        await world.run_for(0.1)
        assert world.sink.calls == []
        assert world.stats.synced is False
        await world.run_for(2)
        assert world.kinds() == ["replaced"]


@stepped
async def test_failures_are_asked_about_less_and_less_and_success_resets_that() -> None:
    world = World()
    world.api.faults.extend(Fault(on="list", status=500) for _ in range(1000))
    async with world.running():
        await world.run_for(600)
        asked = len(world.api.requests)
        assert 20 < asked < 50, "15 to 30 s apart once the cap is reached"
        world.api.faults.clear()
        await world.run_for(60)
        assert world.stats.synced
        assert world.stats.last_error == ""
        world.api.faults.append(Fault(on="watch", status=503))
        world.api.end_watches()
        await world.run_for(1)
        assert world.stats.watches_total == 2, "the wait was the first one again: at most a second"


@stepped
async def test_retry_after_is_kept_to() -> None:
    world = World()
    world.api.faults.append(Fault(status=429, headers={"Retry-After": "45"}))
    async with world.running():
        await world.run_for(44.9)
        assert len(world.api.requests) == 1
        await world.run_for(0.2)
        assert world.stats.synced
        assert world.stats.errors_total["throttled"] == 1


@stepped
async def test_a_throttled_watch_is_taken_up_where_it_was() -> None:
    world = World()
    async with world.running():
        await world.run_for(20)
        for status in (429, 502, 503, 504, 401, 401, 403):
            world.api.faults.append(Fault(on="watch", status=status))
        world.api.end_watches()
        await world.run_for(200)
        assert world.stats.lists_total == 1
        counted = {kind: count for kind, count in world.stats.errors_total.items() if count}
        assert counted == {"throttled": 1, "server": 3, "unauthorized": 1, "forbidden": 1}


@stepped
@pytest.mark.parametrize("status", [400, 500])
async def test_a_version_that_the_server_cannot_read_does_not_hold_it_for_ever(status: int) -> None:
    world = World()
    async with world.running():
        await world.run_for(20)
        world.api.faults.append(Fault(on="watch", status=status))
        world.api.end_watches()
        await world.run_for(5)
        assert world.stats.lists_total == 2


@stepped
async def test_an_error_event_other_than_410_is_followed_by_the_back_off() -> None:
    world = World()
    async with world.running():
        await world.run_for(20)
        error = b'{"type":"ERROR","object":' + status_body(500, "InternalError", "etcd is slow") + b"}\n"
        world.api.faults.append(Fault(on="watch", lines=(error,)))
        world.api.end_watches()
        await world.run_for(0.4)
        assert "etcd is slow" in world.stats.last_error
        assert len(world.api.requests) == 3
        await world.run_for(1)
        assert (world.stats.errors_total["server"], world.stats.lists_total, world.stats.last_error) == (1, 2, "")


@stepped
@pytest.mark.parametrize(
    "line", [b"<html>\n", b"{}\n", b'{"type":"ADDED","object":{"metadata":{}}}\n', b'{"type":"NEW","object":{"metadata":{"name":"a"}}}\n']
)
async def test_a_line_that_is_no_event_is_counted_and_followed_by_a_list(line: bytes) -> None:
    world = World()
    world.api.put("a", value=4)
    async with world.running():
        await world.run_for(20)
        world.api.faults.append(Fault(on="watch", lines=(line,), then="hang"))
        world.api.end_watches()
        await world.run_for(3)
        assert (world.stats.errors_total["stream"], world.stats.lists_total) == (1, 2)
        assert world.names() == {"a": 4}


@stepped
async def test_garbage_for_ever_does_not_make_it_spin() -> None:
    world = World()
    world.api.faults.extend(Fault(on="watch", lines=(b"garbage\n",)) for _ in range(1000))
    async with world.running():
        await world.run_for(600)
    assert 15 < world.stats.lists_total < 45


@stepped
@pytest.mark.parametrize("lines", [(), (b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"100"}}}\n',)])
async def test_watches_that_end_at_once_do_not_make_it_spin(lines: tuple[bytes, ...]) -> None:
    world = World()
    world.api.faults.extend(Fault(on="watch", lines=lines) for _ in range(10_000))
    async with world.running():
        await world.run_for(600)
    assert 20 < world.stats.watches_total < 50
    assert world.stats.lists_total == 1


@stepped
async def test_a_half_open_watch_is_found_by_the_read_timeout() -> None:
    """Case 17: one event, then nothing, and no FIN. A new watch is open within `read_seconds`, 90 s by default."""
    world = World()
    world.api.put("a")
    event = b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"102"},"value":7}}\n'
    world.api.faults.append(Fault(on="watch", lines=(event,), then="hang"))
    async with world.running():
        await world.run_for(1)
        assert world.names() == {"a": 7}
        world.api.put("a", value=8)
        world.api.put("b")
        await world.run_for(88)
        assert (world.stats.watches_total, world.names()) == (1, {"a": 7})
        await world.run_for(3)
        assert (world.stats.watches_total, world.names()) == (2, {"a": 7, "b": 0})
        assert world.stats.lists_total == 1


@stepped
async def test_a_resource_that_falls_quiet_after_an_event_is_no_error() -> None:
    """Seen on kube-apiserver 1.36: no bookmark comes while there is nothing newer than the watch knows."""
    world = World()
    world.api.bookmark_seconds = None
    async with world.running():
        await world.run_for(1)
        world.api.put("a")
        await world.run_for(400)
        assert sum(world.stats.errors_total.values()) == 0
        assert world.stats.lists_total == 1


@stepped
async def test_a_quiet_resource_on_a_server_without_bookmarks_is_no_error() -> None:
    world = World()
    world.api.bookmark_seconds = None
    async with world.running():
        await world.run_for(500)
        assert world.stats.watches_total == 6
        assert sum(world.stats.errors_total.values()) == 0
        assert world.stats.lists_total == 1


@stepped
async def test_silence_from_the_future_is_ended_by_a_list() -> None:
    """A restored etcd: the version is higher than any there is, and the watch is answered 200 and then by nothing."""
    world = World()
    world.api.bookmark_seconds = None
    world.api.version = 5000
    async with world.running():
        await world.run_for(1)
        world.api.version = 50
        world.api.put("a")
        await world.run_for(590)
        assert world.stats.lists_total == 1
        await world.run_for(120)
        assert world.stats.lists_total == 2
        assert world.names() == {"a": 0}


@stepped
async def test_a_reset_connection_is_taken_up_from_the_last_event() -> None:
    world = World()
    async with world.running():
        await world.run_for(20)
        world.api.put("a")
        await world.run_for(1)
        world.api.end_watches("reset")
        await world.run_for(0.01)
        world.api.put("b")
        await world.run_for(2)
        assert world.names() == {"a": 0, "b": 0}
        assert (world.stats.errors_total["connection"], world.stats.lists_total) == (1, 1)


@stepped
async def test_a_hung_server_is_waited_for_with_a_bound() -> None:
    world = World()
    world.api.faults.extend([Fault(hang=True)] * 3)
    async with world.running():
        await world.run_for(60)
        assert world.stats.errors_total["timeout"] == 3
        assert world.stats.synced


@stepped
async def test_credentials_that_fail_are_counted_under_their_own_kind() -> None:
    world = World()
    world.api.faults.append(Fault(error=CredentialsError("the plugin failed")))
    async with world.running():
        await world.run_for(0.1)
        assert (world.stats.errors_total["credentials"], world.stats.last_error) == (1, "the plugin failed")


@stepped
async def test_a_persistent_401_is_said_once_a_minute() -> None:
    """Case 19."""
    world = World()
    world.api.faults.extend(Fault(status=401) for _ in range(1000))
    with capture_logs() as logs:
        async with world.running():
            await world.run_for(590)
    assert 9 <= len(logs) <= 10
    assert world.stats.errors_total["unauthorized"] > 20
    assert "401" in logs[0]["error"]


@stepped
async def test_a_403_is_said_at_once_with_the_missing_verb_and_resource() -> None:
    world = World()
    world.api.faults.append(Fault(status=403, body=status_body(403, "Forbidden", "no")))
    with capture_logs() as logs:
        async with world.running():
            await world.run_for(0.1)
    (entry,) = logs
    assert "no right to list machinepools.compute.ironcore.dev" in entry["error"]
    assert "no right to list machinepools.compute.ironcore.dev" in world.stats.last_error


@stepped
async def test_what_is_not_served_is_said_once_and_looked_for_slowly() -> None:
    world = World()
    world.api.faults.extend(Fault(status=404, body=b"404 page not found") for _ in range(30))
    with capture_logs() as logs:
        async with world.running():
            await world.run_for(29.5 * 60)
            assert world.stats.served is False
            assert "not served" in world.stats.last_error
            assert len(world.api.requests) == 30
            assert sum(world.stats.errors_total.values()) == 0
            await world.run_for(60)
            assert (world.stats.served, world.stats.synced, world.stats.last_error) == (True, True, "")
    assert [entry["event"] for entry in logs] == ["a resource is not served", "a resource is served now"]


@stepped
async def test_a_resource_that_goes_away_is_no_deletion_of_its_objects() -> None:
    world = World()
    world.api.put("a")
    async with world.running():
        await world.run_for(20)
        world.api.faults.append(Fault(on="watch", status=404))
        world.api.end_watches()
        await world.run_for(1)
        assert (world.stats.served, world.names()) == (False, {"a": 0})
        await world.run_for(60)
        assert (world.stats.served, world.stats.lists_total) == (True, 2)


@stepped
async def test_a_broken_object_costs_only_itself() -> None:
    world = World()
    world.api.put("good", value=1)
    world.api.put("bad", value="text")
    with capture_logs() as logs:
        async with world.running():
            await world.run_for(1)
            assert world.names() == {"good": 1}
            assert world.sink.broken == {ObjectKey("", "bad")}
            assert (world.stats.objects, world.stats.undecodable_objects) == (1, 1)
            world.api.put("good", value="text")
            world.api.put("other", value=2)
            await world.run_for(1)
            assert world.names() == {"other": 2}
            assert world.sink.broken == {ObjectKey("", "bad"), ObjectKey("", "good")}
            assert (world.stats.objects, world.stats.undecodable_objects) == (1, 2)
            world.api.put("good", value=5)
            world.api.put("good", value="text again")
            world.api.delete("bad")
            await world.run_for(1)
            assert world.stats.undecodable_objects == 1
            assert sum(world.stats.errors_total.values()) == 0
    assert [entry["name"] for entry in logs] == ["bad", "good"], "each is said once"
    assert "Expected `int`, got `str`" in logs[0]["why"]


@stepped
async def test_a_broken_object_that_vanished_in_a_gap_is_said_again_when_it_comes_back() -> None:
    world = World()
    world.api.put("bad", value="text")
    with capture_logs() as logs:
        async with world.running():
            await world.run_for(1)
            world.api.put("bad", value="still text")
            await world.run_for(1)
            assert len(logs) == 1
            world.api.silent = True
            world.api.delete("bad")
            world.api.compact()
            world.reflector.reopen()
            world.api.silent = False
            await world.run_for(1)
            assert world.stats.undecodable_objects == 0
            world.api.put("bad", value="text")
            await world.run_for(1)
    assert [entry["name"] for entry in logs] == ["bad", "bad"]


@stepped
async def test_an_object_that_nests_a_thousand_deep_costs_only_itself() -> None:
    world = World()
    world.api.put("good", value=1)
    async with world.running():
        await world.run_for(1)
        line = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "deep"}, "value": 1}})
        broken = line.replace('"value": 1', '"value": 1, "extra": ' + "[" * 50_000 + "]" * 50_000).encode() + b"\n"
        world.api.faults.append(Fault(on="watch", lines=(broken,)))
        world.api.end_watches()
        await world.run_for(5)
        assert world.names() == {"good": 1}


@stepped
async def test_an_item_without_a_name_is_left_out_and_counted() -> None:
    world = World()
    items = [{"metadata": {"name": "a"}}, {"metadata": {}}, {"metadata": 3}, "text"]
    world.api.faults.append(Fault(status=200, body=json.dumps({"metadata": {"resourceVersion": "100"}, "items": items}).encode()))
    async with world.running():
        await world.run_for(1)
        assert world.names() == {"a": 0}
        assert (world.stats.objects, world.stats.undecodable_objects) == (1, 3)


@stepped
async def test_a_list_without_a_version_is_not_watched_from() -> None:
    world = World()
    world.api.faults.append(Fault(status=200, body=b'{"metadata": {}, "items": []}'))
    async with world.running():
        await world.run_for(0.1)
        assert (world.stats.errors_total["stream"], world.sink.calls) == (1, [])
        await world.run_for(2)
        assert world.stats.synced


@stepped
async def test_a_long_list_lets_the_event_loop_turn() -> None:
    world = World()
    for number in range(2000):
        world.api.put(f"pool-{number}")
    turns: list[int] = []

    async def turn() -> None:
        while True:
            turns.append(len(world.sink.calls))
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    async with world.running():
        for _ in range(100):
            await asyncio.sleep(0)
    turning.cancel()
    assert world.stats.synced
    assert turns.count(0) >= 2000 // 250


@stepped
async def test_reopen_ends_the_watch_by_a_list_now() -> None:
    world = World()
    world.api.put("a")
    async with world.running():
        await world.run_for(5)
        world.api.silent = True
        world.api.put("b")
        world.reflector.reopen()
        world.reflector.reopen()
        world.api.silent = False
        await world.run_for(0.01)
        assert world.names() == {"a": 0, "b": 0}
        assert (world.stats.lists_total, world.stats.watches_total) == (2, 2)
        assert sum(world.stats.errors_total.values()) == 0
        world.reflector.reopen()
        await world.run_for(0.01)
        assert world.stats.lists_total == 3


@stepped
async def test_reopen_also_ends_a_watch_that_hangs_while_it_opens() -> None:
    world = World()
    async with world.running():
        await world.run_for(5)
        world.api.faults.append(Fault(on="watch", hang=True))
        world.api.end_watches()
        await world.run_for(1)
        world.reflector.reopen()
        await world.run_for(0.01)
        assert world.stats.lists_total == 2


@stepped
async def test_reopen_does_not_shorten_a_back_off() -> None:
    world = World(times=ReflectorTimes(first_backoff_seconds=20, cap_backoff_seconds=20))
    async with world.running():
        await world.run_for(30)
        world.api.faults.append(Fault(on="watch", status=503))
        world.api.end_watches()
        await world.run_for(1)
        asked = len(world.api.requests)
        world.reflector.reopen()
        await world.run_for(8)
        assert len(world.api.requests) == asked
        await world.run_for(15)
        assert world.stats.lists_total == 2


@stepped
async def test_cancellation_ends_it_wherever_it_is() -> None:
    for moment in (0.0, 0.5, 5.0, 90.0):
        world = World()
        task = asyncio.create_task(world.reflector.run())
        await world.run_for(moment)
        world.reflector.reopen()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@stepped
async def test_a_fault_of_the_sink_is_not_taken_for_one_of_the_server() -> None:
    world = World()

    def fail(*_: Any) -> None:
        raise ValueError("a fault of ours")

    setattr(world.sink, "changed", fail)  # noqa: B010 - mypy is right that nobody should assign it
    task = asyncio.create_task(world.reflector.run())
    await world.run_for(1)
    world.api.put("a")
    with pytest.raises(ValueError, match="a fault of ours"):
        await task


@stepped
async def test_objects_of_several_namespaces_are_told_apart() -> None:
    world = World()
    reflector = Reflector(Reader(world.api, world.clock), LEASES, world.sink, decode, world.clock, namespace="one")
    world.api.put("a", "one", value=1)
    task = asyncio.create_task(reflector.run())
    await world.run_for(1)
    world.api.put("a", "two", value=2)
    await world.run_for(1)
    assert {key: thing.value for key, thing in world.sink.objects.items()} == {ObjectKey("one", "a"): 1, ObjectKey("two", "a"): 2}
    assert world.api.requests[0].path.endswith("/namespaces/one/leases")
    task.cancel()


def test_every_kind_of_error_has_its_count_from_the_start() -> None:
    assert ReflectorStats().errors_total == dict.fromkeys(ERROR_KINDS, 0)


STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcdef"), st.integers(0, 3)),
    st.tuples(st.just("break"), st.sampled_from("abcdef")),
    st.tuples(st.just("delete"), st.sampled_from("abcdef")),
    st.tuples(st.just("compact")),
    st.tuples(st.just("end"), st.sampled_from(["end", "reset"])),
    st.tuples(st.just("silent")),
    st.tuples(st.just("fail"), st.sampled_from([400, 401, 403, 404, 410, 429, 500, 503])),
    st.tuples(st.just("lose")),
    st.tuples(st.just("garbage")),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.3, 3.0, 100.0])),
)


def _apply(world: World, kind: str, *with_: Any) -> float:
    """Do one step; the seconds to let pass after it."""
    api = world.api
    deeds: dict[str, Callable[..., object]] = {
        "put": lambda name, value: api.put(name, value=value),
        "break": lambda name: api.put(name, value="text"),
        "delete": api.delete,
        "compact": api.compact,
        "end": api.end_watches,
        "silent": lambda: setattr(api, "silent", not api.silent),
        "fail": lambda status: api.faults.append(Fault(status=status)),
        "lose": lambda: api.faults.append(Fault(error=TransportError("lost"))),
        "garbage": lambda: api.faults.append(Fault(on="watch", lines=(b"garbage\n",))),
        "reopen": world.reflector.reopen,
    }
    if kind == "wait":
        return float(with_[0])
    deeds[kind](*with_)
    return 0.0


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEPS, max_size=30), sizes=st.lists(st.integers(1, 50), min_size=1, max_size=5))
@stepped
async def test_whatever_happens_in_between_the_sink_ends_equal_to_the_server(steps: list[tuple[Any, ...]], sizes: list[int]) -> None:
    world = World(page_limit=2)
    world.api.chunked = lambda line: list(_cut(line, sizes))
    async with world.running():
        for step in steps:
            seconds = _apply(world, *step)
            if seconds or step[0] == "wait":
                await world.run_for(seconds)
        world.api.silent = False
        await world.run_for(1500)
        broken = {name for name, value in world.truth().items() if isinstance(value, str)}
        assert world.names() == {name: value for name, value in world.truth().items() if name not in broken}
        assert {key.name for key in world.sink.broken} == broken
        assert world.stats.objects == len(world.names())
        assert world.stats.undecodable_objects == len(broken)
        assert world.stats.last_error == ""
    per_second = len(world.api.requests) / (world.clock.monotonic() - 1000)
    assert per_second < 0.1, "at its worst it asks no more often than the back-off lets it"


def _cut(line: bytes, sizes: list[int]) -> Iterator[bytes]:
    start, turn = 0, 0
    while start < len(line):
        size = sizes[turn % len(sizes)]
        yield line[start : start + size]
        start, turn = start + size, turn + 1
