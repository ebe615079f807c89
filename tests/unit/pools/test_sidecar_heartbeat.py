"""A sidecar on the sandbox, minute by minute: the heartbeat itself."""

from __future__ import annotations

import re

import pytest

from loopwatch.kube.resources import LEASES
from loopwatch.sandbox.faults import Cut, Hang, Latency, NotServed, Respond, Silence
from loopwatch.settings.model import Mode
from tests.support.sidecars import LEASE_KEY, POOL, sent, world
from tests.support.stepped import stepped

MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@stepped
async def test_a_new_pool_gets_its_lease_and_ready_within_a_second() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(1)
        lease = here.lease()
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == sidecar.identity
        assert lease["spec"]["leaseDurationSeconds"] == 40
        assert lease["spec"]["acquireTime"] == lease["spec"]["renewTime"]
        assert MICRO_TIME.fullmatch(lease["spec"]["renewTime"])
        assert lease["metadata"]["annotations"] == {"loopwatch/holder": sidecar.identity}
        assert not {"labels", "ownerReferences"} & lease["metadata"].keys()
        assert "leaseTransitions" not in lease["spec"]
        assert here.ready()["status"] == "True"
        assert sidecar.state == "reporting"


@stepped
async def test_a_steady_sidecar_sends_one_lease_patch_an_interval_and_nothing_else() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        version = here.pool()["metadata"]["resourceVersion"]
        since = here.clock.monotonic()
        await here.passes(300)
        patches = sidecar.requests("patch", "leases", since=since)
        assert sent(patches, here.began) == [10.0 * tick for tick in range(1, 31)]
        others = [record for record in here.api.requests.matching(client=sidecar.client, since=since) if record not in patches]
        assert all(record.verb == "watch" for record in others), others
        assert here.pool()["metadata"]["resourceVersion"] == version


@stepped
async def test_slow_answers_do_not_make_the_ticks_drift() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        async with here.suffering(Latency(3.0), verb="patch", resource="leases"):
            since = here.clock.monotonic()
            await here.passes(100)
        assert sent(sidecar.requests("patch", "leases", since=since), here.began) == [10.0 * tick for tick in range(1, 11)]


@stepped
async def test_a_renew_time_carries_six_digits_also_in_a_whole_second() -> None:
    async with world() as here:
        here.started()
        await here.passes(25)
        lease = here.lease()
        assert lease is not None
        assert lease["spec"]["renewTime"] == "2026-05-01T12:00:20.000000Z"


@stepped
async def test_a_wall_clock_that_jumps_moves_no_beat() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        since = here.clock.monotonic()
        for jump in (86_400.0, -3600.0, -86_400.0, 0.5):
            here.clock.jump_wall(jump)
            await here.passes(20)
        assert sent(sidecar.requests("patch", "leases", since=since), here.began) == [10.0 * tick for tick in range(1, 9)]
        assert sidecar.state == "reporting"


@stepped
async def test_a_deleted_lease_is_back_at_the_next_tick_and_ready_does_not_flip() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        version = here.pool()["metadata"]["resourceVersion"]
        here.api.delete_object(LEASES, LEASE_KEY)
        await here.passes(8.5)
        assert here.holder() == sidecar.identity
        assert here.pool()["metadata"]["resourceVersion"] == version


@stepped
async def test_a_lease_deleted_while_its_watch_is_silent_is_made_again_within_the_tick() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        here.fault(Silence(), verb="watch", resource="leases")
        await here.passes(1)
        here.api.delete_object(LEASES, LEASE_KEY)
        await here.passes(8)
        assert here.holder() == sidecar.identity
        assert sidecar.value("loopwatch_heartbeat_lease_writes_total", result="error") == 1


@stepped
async def test_a_deleted_pool_ends_renewals_and_creates_and_a_new_one_is_ready_within_a_beat() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(25)
        here.delete_pool()
        await here.passes(1)
        assert sidecar.state == "stopped"
        here.api.delete_object(LEASES, LEASE_KEY)
        since = here.clock.monotonic()
        await here.passes(120)
        assert sidecar.writes(since) == []
        assert here.lease() is None
        here.create_pool()
        await here.passes(1)
        assert here.holder() == sidecar.identity
        assert here.ready()["status"] == "True"
        assert sidecar.state == "reporting"


@stepped
async def test_there_is_no_lease_before_the_pool_exists() -> None:
    async with world(pool=False) as here:
        sidecar = here.started(Mode.REPORT)
        await here.passes(35)
        assert sidecar.state == "waiting"
        assert here.lease() is None
        here.create_pool()
        await here.passes(1)
        assert here.holder() == sidecar.identity
        assert here.ready()["status"] == "True"


@stepped
async def test_a_pools_api_that_does_not_answer_never_stops_renewals() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        async with here.suffering(Hang(), resource="machinepools"):
            since = here.clock.monotonic()
            await here.passes(300)
        assert sent(sidecar.requests("patch", "leases", since=since), here.began) == [10.0 * tick for tick in range(1, 31)]


@pytest.mark.parametrize("status", [404, 503])
@stepped
async def test_a_pools_api_that_is_not_served_is_no_absent_pool(status: int) -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        here.fault(NotServed() if status == 404 else Respond(status), resource="machinepools")
        here.fault(Cut(), verb="watch", resource="machinepools")
        here.change_spec()
        await here.passes(100)
        assert sidecar.state == "reporting"
        assert here.renewed_seconds_ago() <= 10


@stepped
async def test_an_existing_lease_is_renewed_though_nothing_is_known_of_the_pool() -> None:
    async with world() as here:
        here.put_lease(f"{POOL}_before")
        async with here.suffering(Hang(), resource="machinepools"):
            sidecar = here.started(Mode.REPORT)
            await here.passes(30)
            assert here.holder() == sidecar.identity
            assert here.renewed_seconds_ago() <= 10


@stepped
async def test_none_is_created_while_nothing_is_known_of_the_pool() -> None:
    async with world() as here:
        fault = here.fault(Hang(), resource="machinepools")
        sidecar = here.started(Mode.REPORT)
        await here.passes(40)
        assert here.lease() is None
        here.api.faults.remove(fault)
        await here.passes(40)
        assert here.holder() == sidecar.identity
        assert here.ready()["status"] == "True"


@stepped
async def test_the_lease_is_left_as_it_is_when_the_sidecar_ends() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(25)
        lease, pool = here.lease(), here.pool()
        since = here.clock.monotonic()
        await sidecar.die()
        assert here.clock.monotonic() - since < 2
        assert (here.lease(), here.pool()) == (lease, pool)


@stepped
async def test_a_beat_out_of_turn_skips_no_tick() -> None:
    async with world(pool=False) as here:
        sidecar = here.started(Mode.REPORT)
        await here.until(8)
        here.create_pool()
        await here.until(35)
        assert sent(sidecar.writes(), here.began)[0] == 8
        assert sent(sidecar.requests("patch", "leases"), here.began) == [10, 20, 30]


@stepped
async def test_a_beat_out_of_turn_that_fails_has_time_to_try_again() -> None:
    async with world(pool=False) as here:
        sidecar = here.started(Mode.REPORT)
        await here.until(9)
        here.fault(Hang(), verb="create", resource="leases", count=1)
        here.create_pool()
        await here.until(16)
        assert here.holder() == sidecar.identity
        assert sent(sidecar.requests("create", "leases"), here.began)[0] == 9
        await here.until(35)
        assert sent(sidecar.requests("patch", "leases"), here.began) == [20, 30]
