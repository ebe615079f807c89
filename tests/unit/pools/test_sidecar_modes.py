"""A sidecar on the sandbox: who reports, in each mode, beside dead and living others (case 15)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from loopwatch.kube.resources import LEASES
from loopwatch.sandbox.faults import Hang, Respond, Silence
from loopwatch.settings.model import Mode
from tests.support.logs import Lines
from tests.support.sidecars import LEASE_KEY, POOL, World, sent, world
from tests.support.stepped import stepped

MACHINEPOOLLET = f"{POOL}_poollet"


@contextlib.asynccontextmanager
async def machinepoollet(here: World) -> AsyncIterator[None]:
    """A machinepoollet with a heartbeat of its own, for as long as the context is open."""
    beats = asyncio.create_task(here.machinepoollet_beats(MACHINEPOOLLET))
    try:
        yield
    finally:
        beats.cancel()


@stepped
async def test_auto_takes_over_from_a_dead_sidecar_after_two_intervals_and_silence_stays_under_40_s() -> None:
    async with world() as here:
        first = here.started()
        await here.until(39.9)
        await first.die()
        second = here.started()
        longest = 0.0
        while here.holder() == first.identity:
            longest = max(longest, here.renewed_seconds_ago())
            await here.passes(0.1)
        assert 59.8 <= here.now <= 60.5
        assert longest < 40
        assert here.holder() == second.identity
        lease = here.lease()
        assert lease is not None
        assert lease["metadata"]["annotations"]["loopwatch/holder"] == second.identity
        assert lease["spec"]["acquireTime"] == lease["spec"]["renewTime"]
        assert "leaseTransitions" not in lease["spec"]


@stepped
async def test_auto_takes_over_from_a_machinepoollet_that_does_not_renew() -> None:
    async with world() as here:
        here.put_lease(MACHINEPOOLLET)
        sidecar = here.started()
        await here.until(19.5)
        assert sidecar.state == "waiting"
        assert sidecar.writes() == []
        await here.until(21)
        assert sidecar.state == "reporting"
        assert here.holder() == sidecar.identity


@stepped
async def test_auto_observes_for_good_once_it_saw_a_machinepoollet_renew() -> None:
    async with world() as here:
        async with machinepoollet(here):
            sidecar = here.started()
            await here.passes(60)
            assert sidecar.state == "observing"
        await here.passes(600)
        assert sidecar.state == "observing"
        assert sidecar.writes() == []
        here.api.delete_object(LEASES, LEASE_KEY)
        await here.passes(60)
        assert sidecar.writes() == []


@stepped
async def test_auto_that_reports_gives_way_to_a_machinepoollet_that_begins_to_beat() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(33)
        async with machinepoollet(here):
            await here.passes(1)
            since = here.clock.monotonic()
            await here.passes(120)
        assert sidecar.state == "observing"
        assert sidecar.writes(since) == []
        assert here.holder() == MACHINEPOOLLET


@stepped
async def test_auto_that_can_not_watch_keeps_the_lease_in_sight_by_one_get_an_interval() -> None:
    async with world() as here:
        here.put_lease(MACHINEPOOLLET)
        here.fault(Silence(), verb="watch", resource="leases")
        sidecar = here.started()
        await here.passes(15)
        assert sidecar.state == "waiting"
        assert len(sidecar.requests("get", "leases")) == 1
        here.put_lease(MACHINEPOOLLET)
        await here.passes(20)
        assert sidecar.state == "observing", "the renewal was seen by a GET alone"


@stepped
async def test_a_look_that_is_refused_comes_again_no_sooner_than_retry_after() -> None:
    async with world() as here:
        here.put_lease(MACHINEPOOLLET)
        here.fault(Silence(), verb="watch", resource="leases")
        sidecar = here.started()
        await here.until(5)
        async with here.suffering(Respond(429, retry_after_seconds=30), verb="get", resource="leases"):
            await here.until(75)
        assert sent(sidecar.requests("get", "leases"), here.began) == [10, 40, 70]


@stepped
async def test_a_takeover_waits_for_no_tick() -> None:
    async with world() as here:
        here.put_lease(MACHINEPOOLLET)
        sidecar = here.sidecar()
        sidecar.machinepoollet.up = False
        sidecar.start()
        await here.until(2.5)
        sidecar.machinepoollet.up = True
        await here.until(8)
        lease = here.lease()
        assert lease is not None
        here.api.put_object(LEASES, {**lease, "metadata": {**lease["metadata"], "labels": {"touched": "by-hand"}}})
        await here.until(30)
        assert sent(sidecar.writes(), here.began)[0] == 23, "two intervals after the machinepoollet's first answer at 3 s"


@stepped
async def test_time_in_which_the_lease_can_not_be_seen_does_not_count_as_stillness() -> None:
    async with world() as here:
        here.put_lease(MACHINEPOOLLET)
        sidecar = here.started()
        await here.passes(5)
        async with here.suffering(Hang(), resource="leases"):
            await here.until(100)
            assert sidecar.state == "waiting"
        await here.until(107)
        assert sidecar.state == "waiting"
        await here.until(130)
        assert sidecar.state == "reporting"


@pytest.mark.parametrize("holder", [MACHINEPOOLLET, f"{POOL}_other"])
@stepped
async def test_report_takes_any_lease_at_its_first_tick(holder: str) -> None:
    async with world() as here:
        here.put_lease(holder, annotation=None if holder == MACHINEPOOLLET else holder, duration=15)
        sidecar = here.started(Mode.REPORT)
        await here.passes(0.5)
        lease = here.lease()
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == sidecar.identity
        assert lease["spec"]["leaseDurationSeconds"] == 40
        assert lease["spec"]["acquireTime"] == lease["spec"]["renewTime"]
        assert lease["metadata"]["annotations"] == {"loopwatch/holder": sidecar.identity}


@stepped
async def test_two_sidecars_in_report_alternate_and_the_conflict_shows_and_ready_does_not_flip() -> None:
    async with world() as here:
        one = here.started(Mode.REPORT)
        await here.passes(4)
        other = here.started(Mode.REPORT)
        await here.passes(2)
        version = here.pool()["metadata"]["resourceVersion"]
        holders = []
        for _ in range(18):
            await here.passes(5)
            holders.append(here.holder())
        assert set(holders) == {one.identity, other.identity}
        assert all(before != after for before, after in pairwise(holders))
        assert other.value("loopwatch_machinepool_lease_holder_conflict") == 1
        assert other.value("loopwatch_machinepool_lease_holder_changes_total") >= 17  # type: ignore[operator] # it is there
        assert here.pool()["metadata"]["resourceVersion"] == version
        await other.die()
        await here.passes(3 * 40)
        assert one.value("loopwatch_machinepool_lease_holder_conflict") == 0


@stepped
async def test_a_lease_that_is_taken_back_and_forth_is_told_once_a_minute() -> None:
    """Per tick would be a line each ten seconds of every conflict; the metrics show that one is on."""
    async with world() as here:
        here.started(Mode.REPORT)
        await here.passes(4)
        lines = Lines()
        with lines.caught():
            here.started(Mode.REPORT)
            await here.passes(300)
        told = [line for line in lines.texts() if line.startswith("the lease is taken over")]
        assert 8 <= len(told) <= 12
        assert "left_out=" in told[-1]


@stepped
async def test_report_goes_on_beside_a_living_machinepoollet() -> None:
    async with world() as here:
        sidecar = here.started(Mode.REPORT)
        await here.passes(3)
        async with machinepoollet(here):
            await here.until(95)
        assert sidecar.state == "reporting"
        # Its tick finds the machinepoollet's renewal each time, and takes the lease back by one patch.
        assert sent(sidecar.requests("patch", "leases"), here.began) == [10.0 * tick for tick in range(1, 10)]


@stepped
async def test_of_two_sidecars_in_auto_one_stands_by_and_takes_over_after_three_intervals() -> None:
    async with world() as here:
        one = here.started()
        await here.passes(4)
        other = here.started()
        await here.until(15)
        assert (one.state, other.state) == ("reporting", "standby")
        await here.until(200)
        assert (one.state, other.state) == ("reporting", "standby")
        assert other.writes() == []
        assert one.value("loopwatch_machinepool_lease_holder_changes_total") == 0
        await one.die()
        await here.until(229)
        assert other.state == "standby"
        await here.until(231)
        assert other.state == "reporting"
        assert here.holder() == other.identity


@stepped
async def test_two_sidecars_in_auto_that_start_together_end_with_one_reporter() -> None:
    async with world() as here:
        both = [here.started(), here.started()]
        await here.passes(1)
        assert sorted(each.state for each in both) == ["reporting", "standby"]
        await here.passes(100)
        assert sorted(each.state for each in both) == ["reporting", "standby"]
        assert both[0].value("loopwatch_machinepool_lease_holder_changes_total") == 0


@stepped
async def test_a_standby_takes_over_also_where_the_lease_was_deleted_with_its_holder() -> None:
    async with world() as here:
        one, other = here.started(), here.started()
        await here.passes(25)
        reporter, standby = (one, other) if one.state == "reporting" else (other, one)
        await reporter.die()
        here.api.delete_object(LEASES, LEASE_KEY)
        await here.passes(29)
        assert here.lease() is None
        await here.passes(2)
        assert here.holder() == standby.identity


@stepped
async def test_observe_writes_nothing_and_measures_everything() -> None:
    async with world() as here:
        sidecar = here.started(Mode.OBSERVE)
        await here.passes(100)
        assert sidecar.writes() == []
        assert sidecar.requests("get", "leases") == []
        assert sidecar.state == "observing"
        assert sidecar.value("loopwatch_heartbeat_probe_success") == 1
        assert sidecar.value("loopwatch_heartbeat_machinepoollet_up") == 1


@stepped
async def test_nothing_is_written_before_the_machinepoollet_s_process_answered() -> None:
    async with world() as here:
        sidecar = here.sidecar(Mode.REPORT)
        sidecar.machinepoollet.up = False
        sidecar.start()
        await here.until(42.5)
        assert sidecar.writes() == []
        assert sidecar.state == "waiting"
        sidecar.machinepoollet.up = True
        await here.until(44)
        assert here.holder() == sidecar.identity
        assert here.ready()["status"] == "True"


@stepped
async def test_auto_watches_the_lease_from_the_machinepoollet_s_first_answer_on() -> None:
    async with world() as here:
        here.put_lease(MACHINEPOOLLET)
        sidecar = here.sidecar()
        sidecar.machinepoollet.up = False
        sidecar.start()
        await here.until(60)
        sidecar.machinepoollet.up = True
        await here.until(79.5)
        assert sidecar.state == "waiting"
        await here.until(82)
        assert here.holder() == sidecar.identity


@pytest.mark.parametrize("hangs", [False, True])
@stepped
async def test_lease_and_ready_stop_after_two_unanswered_ticks_and_go_on_with_the_next_answer(hangs: bool) -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        sidecar.machinepoollet.up, sidecar.machinepoollet.hangs = False, hangs
        await here.until(29)
        assert sidecar.state == "reporting", "one unanswered tick"
        await here.until(36)
        assert sidecar.state == "stopped"
        since = here.clock.monotonic()
        await sidecar.runtime.stop()
        await here.until(105)
        assert sidecar.writes(since) == []
        assert here.ready()["status"] == "True"
        sidecar.machinepoollet.up, sidecar.machinepoollet.hangs = True, False
        await here.until(110.5)
        assert sidecar.state == "reporting"
        assert here.renewed_seconds_ago() < 1
        assert here.ready()["status"] == "False"


@stepped
async def test_off_vouches_unasked() -> None:
    async with world() as here:
        sidecar = here.started(machinepoollet_healthz=None)
        await here.passes(0.5)
        assert sidecar.state == "reporting"
        assert sidecar.machinepoollet.asked_at == []
        assert sidecar.value("loopwatch_heartbeat_machinepoollet_up") is None


@stepped
async def test_the_machinepoollet_is_asked_each_second_until_it_answers_and_then_each_interval() -> None:
    async with world() as here:
        sidecar = here.sidecar()
        sidecar.machinepoollet.up = False
        sidecar.start()
        await here.until(5.5)
        sidecar.machinepoollet.up = True
        await here.until(35)
        assert [asked - here.began for asked in sidecar.machinepoollet.asked_at] == [0, 1, 2, 3, 4, 5, 6, 10, 20, 30]
