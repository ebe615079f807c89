"""A sidecar on the sandbox, while the API server, the runtime or both misbehave: no task delays another, no tick is lost for nothing."""

from __future__ import annotations

import asyncio

import pytest

from loopwatch.iri.probe import ProbeResult
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS
from loopwatch.sandbox.faults import Forbid, Hang, Latency, LoseAnswer, Respond, Silence, Unauthorized
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.sandbox.runtime.behaviours import Hang as RuntimeHangs
from loopwatch.sandbox.runtime.behaviours import Ok
from loopwatch.settings.model import Mode
from tests.support.logs import Lines
from tests.support.sidecars import Beside, sent, world
from tests.support.stepped import stepped


def writes_by_result(sidecar: Beside) -> dict[str, float]:
    """The lease's counters that are not 0."""
    results = ("ok", "conflict", "forbidden", "timeout", "error")
    counts = {result: sidecar.value("loopwatch_heartbeat_lease_writes_total", result=result) or 0.0 for result in results}
    return {result: count for result, count in counts.items() if count}


@stepped
async def test_an_api_server_that_hangs_for_a_minute_delays_no_probe_and_no_question() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(5)
        async with here.suffering(Hang()):
            await sidecar.runtime.behave(RuntimeHangs())
            await here.until(65.5)
        assert sidecar.runtime.status_calls == 7, "one at once, and one at each of six ticks"
        assert sidecar.value("loopwatch_heartbeat_probes_total", code="DeadlineExceeded") == 6
        assert len(sidecar.machinepoollet.asked_at) == 7


@stepped
async def test_a_hung_api_server_is_asked_at_each_tick_and_the_first_tick_after_it_renews() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(5)
        async with here.suffering(Hang()):
            await here.until(65)
        ticks = {int(record.at - here.began) // 10 for record in sidecar.requests("patch", "leases") + sidecar.requests("get", "leases")}
        assert ticks >= {1, 2, 3, 4, 5, 6}
        await here.until(71)
        assert here.renewed_seconds_ago() <= 11
        assert sidecar.state == "reporting"


@stepped
async def test_a_hung_runtime_delays_no_renewal() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(5)
        await sidecar.runtime.behave(RuntimeHangs())
        await here.until(65)
        assert sent(sidecar.requests("patch", "leases"), here.began) == [10, 20, 30, 40, 50, 60]


class Deaf(MemoryRuntime):
    """A probe that breaks its promise to end by its timeout."""

    async def status(self, timeout_seconds: float) -> ProbeResult:
        """Never."""
        del timeout_seconds
        self.status_calls += 1
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@stepped
async def test_a_probe_that_never_ends_is_given_up_before_the_next_tick() -> None:
    async with world() as here:
        sidecar = here.sidecar(runtime=Deaf(here.clock))
        sidecar.start()
        await here.until(65)
        assert sidecar.runtime.status_calls == 7
        assert sidecar.value("loopwatch_heartbeat_probes_total", code="DeadlineExceeded") == 6


@stepped
async def test_after_a_hang_of_both_lease_and_ready_are_right_within_20_s() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(5)
        async with here.suffering(Hang(), verb="[!w]*"):
            await sidecar.runtime.behave(RuntimeHangs())
            await here.until(35)
            await sidecar.runtime.behave(Ok({"small": 1}))
            await here.until(65)
        await here.until(85)
        assert here.renewed_seconds_ago() <= 10
        assert here.ready()["status"] == "True"
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 0


@stepped
async def test_a_hung_attempt_leaves_room_for_another_within_the_tick() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        here.fault(Hang(), verb="patch", resource="leases", count=1)
        await here.until(29.9)
        assert here.renewed_seconds_ago() < 5
        assert sent(sidecar.requests("get", "leases"), here.began)[0] < 26, "after a doubt the lease is read"
        assert writes_by_result(sidecar) == {"ok": 3, "timeout": 1}


@stepped
async def test_a_server_that_takes_six_seconds_for_everything_still_gets_a_heartbeat() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        async with here.suffering(Latency(6.0), verb="[!w]*"):
            await here.until(60)
            worst = 0.0
            while here.now < 200:
                worst = max(worst, here.renewed_seconds_ago())
                await here.passes(1)
        assert worst <= 21
        assert sidecar.state == "reporting"


@stepped
async def test_a_lost_answer_is_read_up_and_renewed_within_the_tick() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        here.fault(LoseAnswer(), verb="patch", resource="leases", count=1)
        await here.until(22)
        assert writes_by_result(sidecar) == {"ok": 3, "error": 1}
        assert here.holder() == sidecar.identity


@stepped
async def test_a_lost_request_is_sent_again_within_the_tick() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        here.fault(LoseAnswer(applied=False), verb="patch", resource="leases", count=1)
        await here.until(22)
        assert here.renewed_seconds_ago() < 2
        assert writes_by_result(sidecar) == {"ok": 3, "error": 1}


@stepped
async def test_the_answer_to_a_create_that_was_lost_is_no_conflict_with_oneself() -> None:
    async with world() as here:
        here.fault(Silence(), verb="watch", resource="leases")
        here.fault(LoseAnswer(), verb="create", resource="leases", count=1)
        sidecar = here.started()
        await here.until(5)
        assert here.holder() == sidecar.identity
        assert sidecar.state == "reporting"
        assert len(sidecar.requests("create", "leases")) == 1


@stepped
async def test_a_conflict_is_read_and_decided_again_within_the_tick() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        here.fault(Silence(), verb="watch", resource="leases")
        await here.until(16)
        lease = here.lease()
        assert lease is not None
        here.api.put_object(LEASES, {**lease, "metadata": {**lease["metadata"], "labels": {"touched": "by-hand"}}})
        await here.until(21)
        assert here.renewed_seconds_ago() < 2
        assert writes_by_result(sidecar) == {"ok": 3, "conflict": 1}


@stepped
async def test_a_conflict_that_shows_another_sidecar_is_told_to_the_duty() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        here.fault(Silence(), verb="watch", resource="leases")
        await here.until(16)
        here.put_lease("pool-a_other", annotation="pool-a_other")
        await here.until(21)
        assert sidecar.state == "standby"
        assert here.holder() == "pool-a_other"


@pytest.mark.parametrize("seconds", [1, 3, 30, 3600])
@stepped
async def test_retry_after_never_moves_a_renewal_past_the_next_tick(seconds: int) -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        here.fault(Respond(429, retry_after_seconds=seconds), verb="patch", resource="leases", count=1)
        await here.until(30.5)
        patches = sent(sidecar.requests("patch", "leases"), here.began)
        assert patches[:2] == [10, 20]
        assert patches[2] >= min(20 + seconds, 30), "but within the tick it is kept to"
        assert patches[-1] == 30
        assert here.renewed_seconds_ago() < 1


@pytest.mark.parametrize("effect", [Respond(500), Respond(503), Respond(429), Respond(502, html=True), Unauthorized()])
@stepped
async def test_a_failed_renewal_is_tried_again_within_the_tick(effect: Respond | Unauthorized) -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        here.fault(effect, verb="patch", resource="leases", count=2)
        await here.until(25)
        assert here.renewed_seconds_ago() < 5
        assert sidecar.state == "reporting"


@stepped
async def test_attempts_that_fail_at_once_are_few_and_stay_on_the_grid() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        async with here.suffering(Respond(500), verb="patch", resource="leases"):
            await here.until(65)
        patches = sent(sidecar.requests("patch", "leases"), here.began)
        assert {float(tick) for tick in range(10, 61, 10)} <= set(patches)
        assert len([at for at in patches if 20 <= at < 30]) <= 10


@stepped
async def test_a_missing_right_is_said_within_an_interval_and_hinders_nothing_else() -> None:
    async with world() as here:
        lines = Lines()
        here.fault(Forbid(), resource="leases")
        with lines.caught():
            sidecar = here.started(Mode.REPORT)
            await here.until(10)
            said = " ".join(lines.texts("warning"))
            assert "get leases.coordination.k8s.io" in said
            assert LEASE_NAMESPACE in said
            await here.until(120)
        assert sidecar.runtime.status_calls == 12
        assert here.ready()["status"] == "True", "Ready has its own writer"
        about_the_lease = [line for line in lines.texts("warning") if "lease" in line]
        assert len(about_the_lease) <= 8, "not at each attempt"


@stepped
async def test_a_missing_right_to_create_is_counted_and_named() -> None:
    async with world() as here:
        lines = Lines()
        here.fault(Forbid(), verb="create", resource="leases")
        with lines.caught():
            sidecar = here.started()
            await here.until(9)
        assert writes_by_result(sidecar).keys() == {"forbidden"}
        assert any("create leases.coordination.k8s.io" in line for line in lines.texts("warning"))


@stepped
async def test_a_missing_namespace_is_named_and_tried_at_each_tick() -> None:
    async with world(namespace=False) as here:
        lines = Lines()
        with lines.caught():
            sidecar = here.started()
            await here.until(35)
        assert any(f"kubectl create namespace {LEASE_NAMESPACE}" in line for line in lines.texts("warning"))
        ticks = {int(record.at - here.began) // 10 for record in sidecar.requests("create", "leases")}
        assert ticks == {0, 1, 2, 3}
        assert here.ready()["status"] == "True"
        here.api.create_namespace(LEASE_NAMESPACE)
        await here.until(41)
        assert here.holder() == sidecar.identity


@stepped
async def test_a_token_that_is_refused_is_said_once_a_minute() -> None:
    async with world() as here:
        lines = Lines()
        sidecar = here.started()
        await here.until(15)
        with lines.caught():
            async with here.suffering(Unauthorized(), verb="patch"):
                await here.until(195)
        said = [line for line in lines.texts("warning") if "not renewed" in line]
        assert 2 <= len(said) <= 4
        await here.until(205)
        assert here.renewed_seconds_ago() < 6
        assert sidecar.state == "reporting"


@stepped
async def test_a_state_is_said_once_and_so_is_its_end() -> None:
    async with world() as here:
        lines = Lines()
        with lines.caught():
            here.started()
            await here.until(25)
            here.delete_pool()
            await here.until(145)
            here.create_pool()
            await here.until(200)
        assert len([line for line in lines.texts() if "MachinePool does not exist" in line]) == 1
        assert len([line for line in lines.texts() if "state=reporting" in line]) == 2


@stepped
async def test_a_pool_that_can_not_be_decoded_costs_no_heartbeat() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.until(15)
        broken = here.pool()
        broken["status"]["conditions"] = "none"
        here.api.inject_object(MACHINE_POOLS, broken)
        await here.until(65)
        assert sidecar.state == "reporting"
        assert sent(sidecar.requests("patch", "leases"), here.began) == [10, 20, 30, 40, 50, 60]
