"""The small parts of the sidecar: the bodies of its lease, its grid of ticks, its bell, and which sight is older."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.kube.errors import ApiError
from loopwatch.kube.resources import ObjectKey
from loopwatch.kube.transport import TransportError, TransportTimeout
from loopwatch.pools.act import lease_bodies
from loopwatch.pools.act.results import result_of, says_missing
from loopwatch.pools.bell import Bell, Ticks, sleep_until
from loopwatch.pools.derive.versions import is_older
from loopwatch.pools.families.heartbeat import RESULTS
from loopwatch.pools.model import HOLDER_ANNOTATION
from tests.support import pools
from tests.support.stepped import SteppedClock, stepped

NOW = "2026-05-01T12:00:00.000000Z"
US = "pool-a_us"


def test_a_created_lease_is_upstream_s_with_our_annotation() -> None:
    assert lease_bodies.creation("pool-a", US, 40, NOW) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "pool-a", "namespace": "ironcore-machinepool-lease", "annotations": {"loopwatch/holder": US}},
        "spec": {"holderIdentity": US, "leaseDurationSeconds": 40, "acquireTime": NOW, "renewTime": NOW},
    }


def test_a_renewal_changes_the_renew_time_alone() -> None:
    ours = pools.lease(holder=US, **{HOLDER_ANNOTATION: US})
    assert lease_bodies.renewal(ours, US, 40, NOW) == {"metadata": {"resourceVersion": "1"}, "spec": {"renewTime": NOW}}


def test_a_renewal_mends_a_duration_and_an_annotation_that_somebody_changed() -> None:
    assert lease_bodies.renewal(pools.lease(holder=US, duration=15), US, 40, NOW) == {
        "metadata": {"resourceVersion": "1", "annotations": {"loopwatch/holder": US}},
        "spec": {"renewTime": NOW, "leaseDurationSeconds": 40},
    }


def test_a_takeover_names_us_and_leaves_lease_transitions_alone() -> None:
    assert lease_bodies.takeover(pools.lease(holder="pool-a_other"), US, 40, NOW) == {
        "metadata": {"resourceVersion": "1", "annotations": {"loopwatch/holder": US}},
        "spec": {"holderIdentity": US, "leaseDurationSeconds": 40, "acquireTime": NOW, "renewTime": NOW},
    }


@given(st.floats(0, 1e6), st.floats(0.05, 600), st.floats(0, 1e6))
def test_ticks_lie_on_a_grid_and_late_ones_are_dropped(began: float, interval: float, passed: float) -> None:
    at = began + passed
    tick = Ticks(began, interval).after(at)
    assert at < tick <= at + interval * (1 + 1e-6) + 1e-6
    steps = (tick - began) / interval
    assert steps == pytest.approx(round(steps), abs=1e-3)


def test_ticks_do_not_drift_over_a_day_of_late_turns() -> None:
    ticks, at = Ticks(1000.0, 10.0), 1000.0
    for _ in range(8640):
        at = ticks.after(at + 0.3)
    assert at == 1000.0 + 86_400.0


@stepped
async def test_a_bell_wakes_at_its_ring_or_at_the_moment_whichever_comes_first() -> None:
    clock = SteppedClock()
    bell = Bell(clock)
    began = clock.monotonic()
    asyncio.get_running_loop().call_later(3.0, bell.ring)
    await bell.wait(began + 10.0)
    assert clock.monotonic() == began + 3.0
    await bell.wait(began + 10.0)
    assert clock.monotonic() == began + 10.0


@stepped
async def test_a_ring_that_nobody_waited_for_is_kept_once() -> None:
    clock = SteppedClock()
    bell = Bell(clock)
    began = clock.monotonic()
    bell.ring()
    bell.ring()
    await bell.wait(began + 10.0)
    assert clock.monotonic() == began
    await bell.wait(began + 10.0)
    assert clock.monotonic() == began + 10.0


@stepped
async def test_a_moment_too_near_for_a_timer_has_passed_after_the_wait() -> None:
    clock = SteppedClock()
    await clock.sleep(59.9)
    until = clock.monotonic() + 1e-11
    await Bell(clock).wait(until)
    assert until <= clock.monotonic() <= until + 0.002


class EarlyClock(SteppedClock):
    """Its timers are whole milliseconds, rounded down, as uvloop's may be."""

    async def sleep(self, seconds: float) -> None:
        """End up to a millisecond early."""
        await super().sleep(int(seconds * 1000) / 1000)


@stepped
async def test_a_tick_is_waited_for_also_where_timers_fire_early() -> None:
    clock = EarlyClock()
    ticks = Ticks(clock.monotonic(), 0.0337)
    turns = []
    for _ in range(20):
        turns.append(clock.monotonic())
        await sleep_until(clock, ticks.after(clock.monotonic()))
    assert min(later - earlier for earlier, later in pairwise(turns)) > 0.03


@stepped
async def test_a_moment_that_has_passed_is_not_waited_for() -> None:
    clock = SteppedClock()
    began = clock.monotonic()
    await Bell(clock).wait(began - 5.0)
    assert clock.monotonic() == began


@pytest.mark.parametrize(
    ("candidate", "known", "older"),
    [("9", "10", True), ("10", "9", False), ("10", "10", False), ("", "10", False), ("9", "", False), ("abc", "10", False)],
)
def test_only_whole_numbers_can_be_told_older(candidate: str, known: str, older: bool) -> None:
    assert is_older(candidate, known) is older


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (ApiError(409), "conflict"),
        (ApiError(403), "forbidden"),
        (TransportTimeout("no answer"), "timeout"),
        (TransportError("reset"), "error"),
        (ApiError(500), "error"),
        (ApiError(404), "error"),
    ],
)
def test_each_end_of_a_write_is_one_result(error: ApiError | TransportError, result: str) -> None:
    assert result_of(error) == result
    assert result in RESULTS


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (ApiError(404, details_name="pool-a", details_kind="leases"), True),
        (ApiError(404, details_name="ironcore-machinepool-lease", details_kind="namespaces"), False),
        (ApiError(404, details_name="pool-a", details_kind="namespaces"), False),
        (ApiError(404), False),
        (ApiError(403, details_name="pool-a", details_kind="leases"), False),
        (TransportError("reset"), False),
    ],
)
def test_only_a_404_about_the_object_itself_says_that_it_is_missing(error: ApiError | TransportError, missing: bool) -> None:
    assert says_missing(error, ObjectKey("ironcore-machinepool-lease", "pool-a")) is missing
