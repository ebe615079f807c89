"""A sidecar on the sandbox: what it publishes of its machine runtime, and when."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from loopwatch.sandbox.faults import Forbid, Hang, Latency, LoseAnswer, Respond
from loopwatch.sandbox.runtime.behaviours import Error, Ok, Slow
from loopwatch.sandbox.runtime.behaviours import Hang as RuntimeHangs
from loopwatch.settings.model import Mode
from tests.support.sidecars import UNKNOWN, ready_of, sent, world
from tests.support.stepped import stepped

SECOND_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
FOREIGN = {
    "type": "Maintenance",
    "status": "False",
    "reason": "None",
    "message": "by another controller",
    "lastUpdateTime": "2026-05-01T11:00:00Z",
    "lastTransitionTime": "2026-05-01T11:00:00Z",
}


@stepped
async def test_a_working_runtime_is_true_in_upstream_s_words() -> None:
    async with world() as here:
        here.started()
        await here.passes(1)
        ready = here.ready()
        assert (ready["status"], ready["reason"]) == ("True", "HeartbeatReceived")
        assert ready["message"] == "machine runtime status probe succeeded"
        assert ready["observedGeneration"] == 1
        assert ready["lastTransitionTime"] == ready["lastUpdateTime"] == "2026-05-01T12:00:00Z"


@stepped
async def test_a_hung_runtime_is_false_within_16_s_and_true_within_20_s_of_its_return_and_no_renewal_is_late() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(11)
        await sidecar.runtime.behave(RuntimeHangs())
        await here.passes(16)
        ready = here.ready()
        assert (ready["status"], ready["reason"]) == ("False", "RuntimeUnreachable")
        assert ready["message"] == "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        await here.until(90)
        await sidecar.runtime.behave(Ok({"small": 4}))
        await here.passes(20)
        assert here.ready()["status"] == "True"
        await here.until(111)
        assert sent(sidecar.requests("patch", "leases"), here.began) == [10.0 * tick for tick in range(1, 12)]


@stepped
async def test_a_runtime_that_is_gone_and_back_is_false_and_true_again() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        await sidecar.runtime.stop()
        await here.passes(6)
        assert here.ready()["status"] == "False"
        assert here.ready()["message"].startswith("rpc error: code = Unavailable desc = ")
        transition = here.ready()["lastTransitionTime"]
        await here.passes(300)
        assert here.ready()["lastTransitionTime"] == transition
        await sidecar.runtime.start()
        await here.passes(11)
        assert here.ready()["status"] == "True"
        assert here.ready()["lastTransitionTime"] > transition
        assert len(sidecar.requests("patch", "machinepools", "status")) == 3


@stepped
async def test_a_message_that_differs_at_each_probe_is_written_once() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        for attempt in range(12):
            await sidecar.runtime.behave(Error("Unavailable", f"attempt {attempt}"))
            await here.passes(10)
        assert len(sidecar.requests("patch", "machinepools", "status")) == 2
        assert here.ready()["message"] == "rpc error: code = Unavailable desc = attempt 0"


@stepped
async def test_another_grpc_code_is_written_though_the_status_stays() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        await sidecar.runtime.behave(Error("Unavailable", "gone"))
        await here.passes(10)
        update = here.ready()["lastTransitionTime"]
        await sidecar.runtime.behave(Error("Internal", "broken"))
        await here.passes(10)
        assert here.ready()["message"] == "rpc error: code = Internal desc = broken"
        assert here.ready()["lastTransitionTime"] == update


@stepped
async def test_a_published_message_is_clean_and_at_most_a_kibibyte() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        await sidecar.runtime.behave(Error("Internal", "a\x00b\nc" + "ü" * 2000))
        await here.passes(10)
        message = here.ready()["message"]
        assert message.startswith("rpc error: code = Internal desc = a b c")
        assert len(message.encode()) <= 1024


@stepped
async def test_a_runtime_that_never_answered_is_false_only_when_the_start_grace_is_over() -> None:
    async with world() as here:
        sidecar = here.sidecar()
        await sidecar.runtime.stop()
        sidecar.start()
        await here.until(59.9)
        assert here.ready() == {}
        assert sidecar.state == "reporting"
        await here.until(60.5)
        assert here.ready()["status"] == "False"


@stepped
async def test_the_first_answer_within_the_start_grace_is_published_at_once() -> None:
    async with world() as here:
        sidecar = here.sidecar()
        await sidecar.runtime.stop()
        sidecar.start()
        await here.until(25)
        await sidecar.runtime.start()
        await here.until(30.5)
        assert here.ready()["status"] == "True"


@stepped
async def test_an_unknown_written_by_the_lifecycle_is_answered_at_once_each_time() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        for _ in range(2):
            here.set_conditions(UNKNOWN)
            await here.passes(0.1)
            assert here.ready()["status"] == "True"
        assert len(sidecar.requests("patch", "machinepools", "status")) == 3


@stepped
async def test_a_ready_that_somebody_removed_is_back_at_once_and_foreign_conditions_stay() -> None:
    async with world() as here:
        here.started()
        await here.passes(12)
        here.set_conditions(FOREIGN)
        await here.passes(0.1)
        assert [entry["type"] for entry in here.conditions()] == ["Maintenance", "Ready"]
        assert here.conditions()[0] == FOREIGN


@stepped
async def test_another_writer_s_status_is_answered_once_an_interval() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        since = here.clock.monotonic()
        for _ in range(30):
            here.set_conditions(ready_of("False", "RuntimeUnreachable", "says the other writer"))
            await here.passes(1)
        writes = sent(sidecar.requests("patch", "machinepools", "status", since=since), here.began)
        assert len(writes) == 3
        assert all(later - earlier >= 10 for earlier, later in pairwise(writes))
        await here.passes(10)
        assert here.ready()["status"] == "True"


@stepped
async def test_another_writer_s_message_alone_is_left() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        here.set_conditions(ready_of("True", "HeartbeatReceived", "said otherwise"))
        await here.passes(60)
        assert here.ready()["message"] == "said otherwise"
        assert len(sidecar.requests("patch", "machinepools", "status")) == 1


@stepped
async def test_a_new_generation_is_observed() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        here.change_spec()
        await here.passes(0.5)
        assert here.ready()["observedGeneration"] == 2
        here.change_spec()
        await here.passes(0.5)
        assert here.ready()["observedGeneration"] == 2, "the second within an interval waits"
        await here.passes(10)
        assert here.ready()["observedGeneration"] == 3
        assert len(sidecar.requests("patch", "machinepools", "status")) == 3


@stepped
async def test_a_pool_changed_between_read_and_write_is_read_again() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        async with here.suffering(Latency(0.2), verb="patch", resource="machinepools"):
            here.set_conditions(UNKNOWN)
            await here.passes(0.1)
            here.set_conditions(UNKNOWN, FOREIGN)
            await here.passes(2)
        assert [entry["type"] for entry in here.conditions()] == ["Ready", "Maintenance"]
        assert here.ready()["status"] == "True"
        assert sidecar.value("loopwatch_heartbeat_ready_writes_total", result="conflict") == 1


@stepped
async def test_a_lost_answer_is_no_second_write() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        here.fault(LoseAnswer(), verb="patch", resource="machinepools", count=1)
        here.set_conditions(UNKNOWN)
        await here.passes(30)
        assert here.ready()["status"] == "True"
        assert len(sidecar.requests("patch", "machinepools", "status")) == 2
        assert sidecar.value("loopwatch_heartbeat_ready_writes_total", result="error") == 1


@stepped
async def test_a_refused_write_comes_again_no_sooner_than_retry_after() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(12)
        here.fault(Respond(429, retry_after_seconds=30), verb="patch", resource="machinepools", count=1)
        here.set_conditions(UNKNOWN)
        since = here.clock.monotonic()
        await here.passes(29)
        assert len(sidecar.requests("patch", "machinepools", "status", since=since)) == 1
        await here.passes(2)
        assert here.ready()["status"] == "True"


@stepped
async def test_a_right_that_is_missing_is_said_and_asked_for_ever_less_often() -> None:
    async with world() as here:
        here.fault(Forbid(), verb="patch", resource="machinepools")
        sidecar = here.started()
        await here.passes(300)
        patches = sidecar.requests("patch", "machinepools", "status")
        assert 30 <= len(patches) <= 80
        assert sidecar.value("loopwatch_heartbeat_ready_writes_total", result="forbidden") == len(patches)
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 1
        assert sent(sidecar.requests("patch", "leases"), here.began) == [10.0 * tick for tick in range(1, 30)]


@stepped
async def test_a_server_that_drops_the_condition_is_not_written_to_in_a_storm() -> None:
    async with world() as here:
        here.fault(Respond(200), verb="patch", resource="machinepools")
        sidecar = here.started()
        await here.passes(100)
        assert len(sidecar.requests("patch", "machinepools", "status")) <= 40


@stepped
async def test_ready_is_unpublished_once_the_pool_has_said_otherwise_for_an_interval() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5)
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 0
        fault = here.fault(Hang(), verb="patch", resource="machinepools")
        await sidecar.runtime.stop()
        await here.until(19)
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 0
        await here.until(21)
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 1
        here.api.faults.remove(fault)
        await here.passes(20)
        assert sidecar.value("loopwatch_heartbeat_ready_unpublished") == 0


@stepped
async def test_restarted_in_report_a_pool_marked_unknown_is_true_within_a_second() -> None:
    async with world() as here:
        first = here.started(Mode.REPORT)
        await here.passes(25)
        await first.die()
        here.set_conditions(UNKNOWN)
        await here.passes(30)
        second = here.started(Mode.REPORT)
        await here.passes(1)
        assert here.ready()["status"] == "True"
        assert here.holder() == second.identity


@stepped
async def test_a_restart_over_a_true_condition_writes_no_ready() -> None:
    async with world() as here:
        first = here.started(Mode.REPORT)
        await here.passes(25)
        await first.die()
        second = here.started(Mode.REPORT)
        await here.passes(60)
        assert second.requests("patch", "machinepools") == []


@pytest.mark.parametrize("seconds", [4.9, 5.1])
@stepped
async def test_a_slow_runtime_is_true_up_to_the_status_timeout(seconds: float) -> None:
    async with world() as here:
        sidecar = here.sidecar(runtime_start_grace_seconds=0.0)
        await sidecar.runtime.behave(Slow(seconds))
        sidecar.start()
        await here.passes(8)
        assert here.ready()["status"] == ("True" if seconds < 5 else "False")


@stepped
async def test_condition_times_are_whole_seconds() -> None:
    async with world() as here:
        sidecar = here.started()
        await here.passes(5.678)
        await sidecar.runtime.stop()
        here.clock.jump_wall(0.345)
        await here.passes(10)
        assert SECOND_TIME.fullmatch(here.ready()["lastUpdateTime"])
