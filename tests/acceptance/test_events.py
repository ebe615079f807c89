"""Events on a MachinePool: who tells what, how often, and that no failure of theirs touches a decision."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.kube.resources import EVENTS, MACHINE_POOLS, ObjectKey
from loopwatch.pools.announcer import EVENTS_PER_SECOND
from loopwatch.sandbox.faults import Fault, Forbid, Hang, Respond
from tests.acceptance.world import KUBECONFIG, World, acceptance
from tests.support.logs import Lines

FALSE = {"type": "Ready", "status": "False", "reason": "RuntimeUnreachable", "message": "rpc error", "observedGeneration": 1}
TRUE = {"type": "Ready", "status": "True", "reason": "HeartbeatReceived", "message": "ok", "observedGeneration": 1}
UNKNOWN = {"type": "Ready", "status": "Unknown", "reason": "MachinePoolStatusUnknown", "message": "", "observedGeneration": 1}
sandbox_only = pytest.mark.skipif(bool(KUBECONFIG), reason="a fault that only the sandbox can make")


async def events_of(world: World, pool: str) -> list[dict[str, Any]]:
    """The pool's Events, of this incarnation alone: a real server keeps those of earlier tests for an hour."""
    found = await world.kubectl.send("GET", EVENTS.collection_path("default"))
    uid = (await world.kubectl.send("GET", f"/apis/compute.ironcore.dev/v1alpha1/machinepools/{pool}"))["metadata"]["uid"]
    return [event for event in found["items"] if event["involvedObject"].get("uid") == uid]


async def told(world: World, pool: str, count: int) -> list[dict[str, Any]]:
    """Wait until the pool has so many Events (or as many times counted)."""
    for _ in range(200):
        found = await events_of(world, pool)
        if sum(event["count"] for event in found) >= count:
            return found
        await world.passes(world.seconds(0.05))
    raise AssertionError(f"{count} Events were not written: {found}")


@acceptance
async def test_a_mark_and_the_recovery_from_it_are_each_an_event_on_the_pool(world: World) -> None:
    await world.kubectl.create_pool("a")
    async with world.controller():
        await world.kubectl.when(lambda: world.kubectl.ready("a") == "Unknown", world.seconds(3))
        (marked,) = await told(world, "a", 1)
        await world.kubectl.set_conditions("a", FALSE)
        both = await told(world, "a", 2)
    assert (marked["type"], marked["reason"]) == ("Warning", "MachinePoolStatusUnknown")
    of = marked["involvedObject"]
    assert (of["apiVersion"], of["kind"], of["name"]) == ("compute.ironcore.dev/v1alpha1", "MachinePool", "a")
    assert of["uid"]
    assert of["resourceVersion"]
    assert marked["reportingComponent"] == "loopwatch-controller"
    assert "." not in marked["lastTimestamp"], "metav1.Time has whole seconds"
    (recovered,) = [event for event in both if event["reason"] == "MachinePoolStatusRecovered"]
    assert recovered["type"] == "Normal"
    assert recovered["message"] == "Ready is False after Unknown: RuntimeUnreachable"


@acceptance
async def test_of_two_controllers_the_leader_alone_tells(world: World) -> None:
    await world.kubectl.create_pool("a", UNKNOWN)
    async with world.controller(leader_elect=True) as first:
        await world.until(first.leading, world.seconds(2))
        async with world.controller(leader_elect=True, client="sidecar-2") as second:
            await world.until(lambda: first.observer.pools_listed and second.observer.pools_listed, world.seconds(2))
            await world.kubectl.set_conditions("a", TRUE)
            await told(world, "a", 1)
            await world.passes(world.seconds(0.2))  # within one grace, or the leader marks it
            assert not second.leading()
            (recovered,) = await events_of(world, "a")
    assert recovered["count"] == 1


@acceptance
async def test_an_event_that_comes_again_is_counted_in_the_one_that_is_there(world: World) -> None:
    await world.kubectl.create_pool("a")
    async with world.controller():
        for number in (1, 2, 3):
            await world.kubectl.when(lambda: world.kubectl.ready("a") == "Unknown", world.seconds(3))
            await world.kubectl.set_conditions("a", TRUE)
            events = await told(world, "a", 2 * number)
    assert {event["reason"]: event["count"] for event in events} == {"MachinePoolStatusUnknown": 3, "MachinePoolStatusRecovered": 3}


@acceptance
async def test_an_event_that_was_deleted_meanwhile_is_written_anew(world: World) -> None:
    await world.kubectl.create_pool("a")
    async with world.controller():
        (marked,) = await told(world, "a", 1)
        await world.kubectl.send("DELETE", EVENTS.object_path(ObjectKey("default", marked["metadata"]["name"])))
        await world.kubectl.set_conditions("a", TRUE)
        events = await told(world, "a", 2)
    assert sorted((event["reason"], event["count"]) for event in events) == [
        ("MachinePoolStatusRecovered", 1),
        ("MachinePoolStatusUnknown", 1),
    ]


@acceptance
async def test_a_recovery_from_anothers_unknown_is_told_whoever_wrote_it_and_the_unknown_is_not(world: World) -> None:
    await world.kubectl.create_pool("a", UNKNOWN)
    async with world.controller() as controller:
        await world.until(lambda: controller.observer.pools_listed, world.seconds(2))
        await world.kubectl.set_conditions("a", TRUE)
        (recovered,) = await told(world, "a", 1)
    assert recovered["reason"] == "MachinePoolStatusRecovered"


@pytest.mark.parametrize("settings", [{"act": False}, {"events": False}], ids=str)
@acceptance
async def test_who_does_not_act_or_was_told_not_to_writes_no_event(world: World, settings: dict[str, Any]) -> None:
    await world.kubectl.create_pool("a", UNKNOWN)
    async with world.controller(**settings) as controller:
        await world.until(lambda: controller.observer.pools_listed, world.seconds(2))
        await world.kubectl.set_conditions("a", TRUE)
        await world.passes(2 * world.grace_seconds)
        assert await events_of(world, "a") == []


@sandbox_only
@pytest.mark.parametrize(
    ("effect", "result"),
    [(Forbid(), "forbidden"), (Respond(500), "error"), (Respond(429, retry_after_seconds=1), "error"), (Hang(), "error")],
    ids=str,
)
@acceptance
async def test_events_that_fail_are_counted_and_said_and_every_pool_is_marked_all_the_same(world: World, effect: Any, result: str) -> None:
    assert world.api is not None
    world.api.faults.add(Fault(effect=effect, resource="events"))
    pools = [f"pool-{number}" for number in range(5)]
    for pool in pools:
        await world.kubectl.create_pool(pool)
    lines = Lines()
    with lines.caught():
        async with world.controller() as controller:
            await world.kubectl.when(lambda: all(world.kubectl.ready(pool) == "Unknown" for pool in pools), world.seconds(1.5))
            await world.passes(8.0)
            counted = controller.store.value("loopwatch_events_total", {"result": result}, controller.observer.moment())
    assert counted == len(pools)
    said = [line for line in lines.texts("warning") if "an Event about a pool could not be written" in line]
    assert len(said) == 1
    if result == "forbidden":
        assert "no right to create events" in said[0]


@sandbox_only
@acceptance
async def test_many_pools_that_fall_silent_at_once_send_their_events_at_a_steady_pace_and_no_more_than_wait(world: World) -> None:
    assert world.api is not None
    count = 1200
    for number in range(count):
        world.api.put_object(MACHINE_POOLS, {"metadata": {"name": f"pool-{number}"}, "spec": {"providerID": "x"}})
    async with world.controller(mark_rate=10_000) as controller:
        await world.until(
            lambda: sum(1 for name in world.kubectl.history if world.kubectl.ready(name) == "Unknown") == count, world.seconds(20)
        )
        before = len(world.api.objects(EVENTS))
        await world.passes(10.0)
        written = len(world.api.objects(EVENTS)) - before
        assert abs(written - 10.0 * EVENTS_PER_SECOND) <= 2
        await world.passes(60.0)
        values = {
            result: controller.store.value("loopwatch_events_total", {"result": result}, controller.observer.moment())
            for result in ("ok", "dropped", "forbidden", "error")
        }
    assert sum(value or 0 for value in values.values()) == count
    assert values["dropped"]
    assert values["ok"] == len(world.api.objects(EVENTS))
