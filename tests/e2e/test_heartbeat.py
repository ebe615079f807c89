"""A sidecar and a controller with their default times (10 s / 40 s, grace 50 s), as processes on a real kube-apiserver.

Times are the test's monotonic clock at the watch event. A margin of a second is this machine's: two cores that also run other tests.
"""

import time
from collections.abc import Callable

import pytest

from tests.e2e.world import POOL, World, longest_gap, until
from tests.real_servers.processes import POLL_SECONDS

INTERVAL_SECONDS = 10.0
LATEST_RENEWAL_SECONDS = INTERVAL_SECONDS + 1.0
FIVE_MINUTES = 300.0
HANG_SECONDS = 60.0

Record = Callable[[str, object], None]


def wait(seconds: float) -> None:
    """Let real time pass: what is claimed is that nothing happens meanwhile."""
    time.sleep(seconds)


@pytest.mark.timeout(FIVE_MINUTES + 90)
def test_five_minutes_of_heartbeats_are_one_patch_an_interval_and_nothing_else(world: World, record_property: Record) -> None:
    controller = world.start_controller()
    sidecar = world.start_reporting()
    wait(INTERVAL_SECONDS / 2)  # begin and end between two heartbeats
    began, position, settled = time.monotonic(), world.server.audit_log.position(), len(world.pools.events)
    wait(FIVE_MINUTES)
    requests = world.server.audit_log.requests(since=position, user_agent="(sidecar)")
    renewals = [request for request in requests if request.verb == "patch"]
    record_property("requests of the sidecar in 300 s", len(requests))
    record_property("of these, renewals", len(renewals))
    record_property("RSS of the sidecar, MiB", sidecar.rss_bytes() // 2**20)
    record_property("RSS of the controller, MiB", controller.rss_bytes() // 2**20)
    assert {(request.resource, request.name, request.code) for request in renewals} == {("leases", POOL, 200)}
    assert len(renewals) == round(FIVE_MINUTES / INTERVAL_SECONDS)
    assert longest_gap(world.renewals(after=began)) < LATEST_RENEWAL_SECONDS
    others = [(request.verb, request.resource) for request in requests if request.verb != "patch"]
    assert set(others) <= {("watch", "leases"), ("watch", "machinepools")}
    assert world.pools.events[settled:] == [], "the pool was written though nothing changed"


@pytest.mark.timeout(150)
def test_a_killed_sidecar_is_unknown_and_true_again_once_it_reports_anew(world: World, record_property: Record) -> None:
    controller = world.start_controller()
    sidecar = world.start_reporting()
    wait(INTERVAL_SECONDS)
    killed = time.monotonic()
    sidecar.kill()
    unknown = world.becomes("Unknown", 60.0, after=killed)
    record_property("SIGKILL to Unknown, s", round(unknown.at - killed, 1))
    assert 39.0 <= unknown.at - killed <= 52.0
    until("counted", lambda: controller.counted("loopwatch_machinepool_lifecycle_marks_total", machinepool=POOL) == 1, 2.0)

    again = world.start_sidecar("report")
    again.wait_until("probing", lambda: again.counted("loopwatch_heartbeat_probes_total", code="OK") >= 1, 20.0)
    probed = time.monotonic()
    true = world.becomes("True", 5.0, after=unknown.at)
    record_property("first successful probe to True, s", round(true.at - probed, 2))
    assert true.at - probed < 1.0


@pytest.mark.timeout(150)
def test_a_restart_in_auto_takes_over_after_two_intervals_and_is_never_unknown(world: World, record_property: Record) -> None:
    controller = world.start_controller()
    sidecar = world.start_reporting()
    wait(INTERVAL_SECONDS)
    killed = time.monotonic()
    sidecar.kill()
    last = world.renewals()[-1]
    world.start_sidecar("auto")
    longest_silence = 0.0

    def renewed() -> bool:
        nonlocal longest_silence
        longest_silence = max(longest_silence, controller.scrape().value("loopwatch_machinepool_silence_seconds", machinepool=POOL))
        return bool(world.renewals(after=killed))

    taken = until("taken over", renewed, 45.0)
    record_property("SIGKILL to takeover in auto, s", round(taken - killed, 1))
    record_property("longest silence, s", round(longest_silence, 1))
    assert taken - killed >= 2 * INTERVAL_SECONDS
    assert taken - last < 40.0
    assert longest_silence < 40.0
    wait(INTERVAL_SECONDS)
    assert "Unknown" not in world.statuses()


@pytest.mark.timeout(180)
def test_a_hung_runtime_is_false_and_true_again_and_costs_no_renewal(world: World, record_property: Record) -> None:
    world.start_controller()
    world.start_reporting()
    hung = time.monotonic()
    world.runtime.behave("hang")
    false = world.becomes("False", 30.0, after=hung)
    record_property("hung runtime to False, s", round(false.at - hung, 1))
    assert false.at - hung < 16.0
    wait(HANG_SECONDS - (time.monotonic() - hung))
    back = time.monotonic()
    world.runtime.behave("ok")
    true = world.becomes("True", 30.0, after=back)
    record_property("runtime back to True, s", round(true.at - back, 1))
    assert true.at - back < 20.0
    assert longest_gap(world.renewals(after=hung)) < LATEST_RENEWAL_SECONDS
    assert world.statuses(after=hung) == ["False", "True"]


@pytest.mark.timeout(180)
def test_a_killed_runtime_is_found_again_within_two_intervals(world: World, record_property: Record) -> None:
    world.start_reporting()
    world.runtime.process.kill()
    false = world.becomes("False", 30.0)
    wait(INTERVAL_SECONDS)
    world.runtime.start_again()
    back = time.monotonic()
    true = world.becomes("True", 30.0, after=false.at)
    record_property("killed runtime back to True, s", round(true.at - back, 1))
    assert true.at - back < 2 * INTERVAL_SECONDS


@pytest.mark.timeout(180)
def test_a_hung_api_server_delays_no_probe_and_marks_no_living_pool(world: World) -> None:
    controller = world.start_controller()
    sidecar = world.start_reporting()
    world.server.pause()
    try:
        paused = time.monotonic()
        before = sidecar.counted("loopwatch_heartbeat_probes_total", code="OK")
        wait(HANG_SECONDS)
        probes = sidecar.counted("loopwatch_heartbeat_probes_total", code="OK") - before
        blind = controller.scrape().value("loopwatch_machinepool_lifecycle_blind_seconds", resource="leases")
    finally:
        world.server.resume()
    resumed = time.monotonic()
    assert abs(probes - HANG_SECONDS / INTERVAL_SECONDS) <= 1
    assert blind > HANG_SECONDS / 2
    until("renewed", lambda: bool(world.renewals(after=resumed)), LATEST_RENEWAL_SECONDS + 5.0)
    wait(2 * INTERVAL_SECONDS)
    assert world.statuses(after=paused) in ([], ["True"])
    assert sidecar.get("/healthz")[0] == 200
    assert controller.get("/healthz")[0] == 200


@pytest.mark.timeout(180)
def test_a_hang_of_both_is_survived_and_marks_no_living_pool(world: World) -> None:
    controller = world.start_controller()
    sidecar = world.start_reporting()
    world.server.pause()
    world.runtime.process.pause()
    try:
        paused = time.monotonic()
        wait(HANG_SECONDS)
        assert sidecar.get("/healthz")[0] == 200
        assert controller.get("/healthz")[0] == 200
    finally:
        world.runtime.process.resume()
        world.server.resume()
    resumed = time.monotonic()
    until("renewed", lambda: bool(world.renewals(after=resumed)), LATEST_RENEWAL_SECONDS + 5.0)
    until("Ready", lambda: sidecar.counted("loopwatch_machinepool_ready", status="true") == 1, 2 * INTERVAL_SECONDS)
    wait(INTERVAL_SECONDS)
    assert "Unknown" not in world.statuses(after=paused)


@pytest.mark.timeout(60)
def test_both_end_within_two_seconds_of_sigterm_and_leave_the_lease(world: World, record_property: Record) -> None:
    controller = world.start_controller()
    sidecar = world.start_reporting()
    holder = world.leases.events[-1].object["spec"]["holderIdentity"]
    for program in (sidecar, controller):
        began = time.monotonic()
        assert program.stop(within_seconds=5.0) == 0
        record_property(f"SIGTERM of {program.name}, s", round(time.monotonic() - began, 2))
        assert time.monotonic() - began < 2.0
    assert world.leases.events[-1].object["spec"]["holderIdentity"] == holder
    wait(POLL_SECONDS)
    assert [event.type for event in world.leases.events if event.type == "DELETED"] == []
