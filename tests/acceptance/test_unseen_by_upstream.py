"""What IronCore's own lifecycle controller does not see, shown by ours; and objects as no sane writer leaves them, on a whole API."""

from __future__ import annotations

import pytest

from loopwatch.controller import Controller
from loopwatch.kube.resources import MACHINE_POOLS
from tests.acceptance.world import World, acceptance
from tests.support.pools import ready_condition

POOL = "pool-a"
OURS = {"machinepool": POOL}
UNKNOWN = ready_condition("Unknown", "MachinePoolStatusUnknown")
LEASE_SECONDS = 2
LONGEST_NAME = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])


def value(controller: Controller, family: str, **labels: str) -> float | None:
    """One number, as a scrape of the controller shows it now."""
    return controller.store.value(f"loopwatch_machinepool_{family}", labels or OURS, controller.observer.moment())


@acceptance
async def test_lease_and_ready_that_contradict_each_other_show_for_as_long_as_they_do(world: World) -> None:
    """A Lease of 2 s, in a world whose grace is long: nothing is marked, and yet each disagreement shows."""
    kubectl = world.kubectl
    await kubectl.create_lease(POOL, world.renew_time(), duration=LEASE_SECONDS)
    await kubectl.create_pool(POOL, ready_condition("True"))
    async with world.controller(machine_pool_lifecycle_grace_period_seconds=50.0) as controller:
        await world.until(lambda: value(controller, "ready_without_lease") == 0, 5)
        assert value(controller, "unready_but_renewed") == 0
        assert value(controller, "never_reported") == 0

        seen_at = await world.until(lambda: value(controller, "late_heartbeats_total") == 1, LEASE_SECONDS * 2)
        assert value(controller, "ready_without_lease") == 0, "late is not yet too late"
        gone_at = await world.until(lambda: value(controller, "ready_without_lease") == 1, LEASE_SECONDS)
        assert 0.3 <= gone_at - seen_at <= 1.0, "half a second: a quarter of the duration"

        await kubectl.renew(POOL, world.renew_time())
        await world.until(lambda: value(controller, "ready_without_lease") == 0, 1)
        await kubectl.set_conditions(POOL, ready_condition("False", "RuntimeUnreachable"))
        await world.until(lambda: value(controller, "unready_but_renewed") == 1, 1)
        await world.until(lambda: value(controller, "unready_but_renewed") == 0, LEASE_SECONDS * 2)
        assert value(controller, "late_heartbeats_total") == 2
        assert kubectl.transitions(POOL)[-2:] == ["True", "False"]


@acceptance
async def test_a_mark_of_ours_is_no_lifecycle_elsewhere_and_one_by_another_is(world: World) -> None:
    kubectl = world.kubectl
    async with world.controller() as controller:
        await kubectl.create_pool(POOL, ready_condition("True"))
        await kubectl.when(lambda: kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2 + 1)
        await world.passes(world.grace_seconds / 5)
        assert value(controller, "ready", status="unknown", **OURS) == 1
        assert controller.store.value("loopwatch_machinepool_lifecycle_elsewhere", {}, controller.observer.moment()) == 0
        await kubectl.create_pool("pool-b", ready_condition("True"))
        await world.passes(world.grace_seconds / 5)
        await kubectl.set_conditions("pool-b", UNKNOWN)

        def elsewhere() -> bool:
            return controller.store.value("loopwatch_machinepool_lifecycle_elsewhere", {}, controller.observer.moment()) == 1

        await world.until(elsewhere, world.grace_seconds)


@acceptance
async def test_a_pool_whose_name_has_253_characters_lives_and_dies_like_any_other(world: World) -> None:
    kubectl, grace = world.kubectl, world.grace_seconds
    assert len(LONGEST_NAME) == 253
    await kubectl.create_lease(LONGEST_NAME, world.renew_time(), holder="somebody")
    await kubectl.create_pool(LONGEST_NAME, ready_condition("True"))
    await kubectl.create_machine("one", LONGEST_NAME)
    async with world.controller() as controller:
        for _ in range(6):
            await world.passes(grace / 4)
            await kubectl.renew(LONGEST_NAME, world.renew_time())
        assert kubectl.transitions(LONGEST_NAME) == ["", "True"]
        await kubectl.when(lambda: kubectl.ready(LONGEST_NAME) == "Unknown", grace * 2 + 1)
        await world.until(lambda: value(controller, "stranded_machines", machinepool=LONGEST_NAME) == 1, grace)


@acceptance
async def test_of_two_ready_entries_the_first_is_replaced_by_a_mark_and_the_second_is_gone(world: World) -> None:
    kubectl = world.kubectl
    other = {"type": "Other", "status": "True", "reason": "Kept", "message": ""}
    await kubectl.create_pool(POOL, ready_condition("True"), other, ready_condition("False", "RuntimeUnreachable"))
    async with world.controller() as controller:
        await world.until(lambda: value(controller, "ready", status="true", **OURS) == 1, world.grace_seconds)
        await kubectl.when(lambda: kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2 + 1)
        conditions = (await kubectl.get(MACHINE_POOLS, POOL))["status"]["conditions"]
        assert [(entry["type"], entry["status"]) for entry in conditions] == [("Ready", "Unknown"), ("Other", "True")]


@pytest.mark.parametrize("renew_time", ["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:01.000000Z"])
def test_a_renew_time_at_the_end_of_time_keeps_nobody_alive(renew_time: str) -> None:
    @acceptance
    async def play(world: World) -> None:
        kubectl = world.kubectl
        async with world.controller():
            await kubectl.create_lease(POOL, renew_time)
            await kubectl.create_pool(POOL, ready_condition("True"))
            began = world.clock.monotonic()
            seen_at = await kubectl.when(lambda: kubectl.ready(POOL) == "Unknown", world.grace_seconds * 2 + 1)
            assert seen_at - began >= world.grace_seconds * 0.9

    play()
