"""From objects on the wire to the text of /metrics: what the observer makes of lists, events and gaps."""

from __future__ import annotations

import pytest

from loopwatch.kube.resources import LEASE_NAMESPACE, ObjectKey
from loopwatch.metrics.values import Moment
from tests.support.observed import Seen
from tests.support.pools import lease, pool, ready_condition, renewal


def test_a_reporting_pool_as_text() -> None:
    seen = Seen()
    seen.answer()
    seen.pools(pool("pool-a", ready_condition(observed_generation=3), generation=4))
    seen.leases(lease("pool-a"))
    seen.clock.step(2.5)
    assert (
        seen.store.render(seen.observer.moment())
        .decode()
        .startswith(
            "# HELP loopwatch_machinepool_info A MachinePool, with the identity that its provider knows it by (spec.providerID).\n"
            "# TYPE loopwatch_machinepool_info gauge\n"
            'loopwatch_machinepool_info{machinepool="pool-a",provider_id="ironcore://pool-a"} 1\n'
        )
    )
    assert seen.lines("") == [
        'info{machinepool="pool-a",provider_id="ironcore://pool-a"} 1',
        'ready{machinepool="pool-a",status="true"} 1',
        'ready{machinepool="pool-a",status="false"} 0',
        'ready{machinepool="pool-a",status="unknown"} 0',
        'ready{machinepool="pool-a",status="absent"} 0',
        'ready_reason{machinepool="pool-a",reason="HeartbeatReceived"} 1',
        'ready_transitions_total{machinepool="pool-a",to="true"} 0',
        'ready_transitions_total{machinepool="pool-a",to="false"} 0',
        'ready_transitions_total{machinepool="pool-a",to="unknown"} 0',
        'ready_transitions_total{machinepool="pool-a",to="absent"} 0',
        'ready_age_seconds{machinepool="pool-a"} 2.5',
        'generation{machinepool="pool-a"} 4',
        'ready_observed_generation{machinepool="pool-a"} 3',
        'lease_age_seconds{machinepool="pool-a"} 2.5',
        'lease_duration_seconds{machinepool="pool-a"} 40',
        'lease_holder_changes_total{machinepool="pool-a"} 0',
        'lease_holder_conflict{machinepool="pool-a"} 0',
        'lease_orphaned{machinepool="pool-a"} 0',
        'silence_seconds{machinepool="pool-a"} 2.5',
        'ready_without_lease{machinepool="pool-a"} 0',
        'unready_but_renewed{machinepool="pool-a"} 0',
        'never_reported{machinepool="pool-a"} 0',
        'late_heartbeats_total{machinepool="pool-a"} 0',
        'lifecycle_marks_total{machinepool="pool-a"} 0',
        'state{machinepool="pool-a",state="Ready"} 1',
        'state{machinepool="pool-a",state="Pending"} 0',
        'state{machinepool="pool-a",state="Error"} 0',
        'state{machinepool="pool-a",state="Offline"} 0',
        'state{machinepool="pool-a",state="Other"} 0',
        "lifecycle_grace_period_seconds 50",
        'lifecycle_blind_seconds{resource="leases"} 0',
        'lifecycle_blind_seconds{resource="machinepools"} 0',
        "lifecycle_grace_too_short 0",
        "lifecycle_elsewhere 0",
    ]


def test_what_is_not_known_is_absent_and_never_zero() -> None:
    seen = Seen()
    seen.pools(pool("pool-a", state=None))
    assert seen.lines("ready_reason", "ready_observed", "lease", "state") == []
    assert seen.lines("ready{") == [
        'ready{machinepool="pool-a",status="true"} 0',
        'ready{machinepool="pool-a",status="false"} 0',
        'ready{machinepool="pool-a",status="unknown"} 0',
        'ready{machinepool="pool-a",status="absent"} 1',
    ]


def test_a_reason_that_nobody_knows_is_other_so_that_the_label_stays_bounded() -> None:
    seen = Seen()
    seen.pools(pool("pool-a", ready_condition("False", "BrandNew")))
    assert seen.lines("ready_reason") == ['ready_reason{machinepool="pool-a",reason="Other"} 1']


def test_a_deleted_pool_takes_its_series_along_and_leaves_its_lease_as_an_orphan() -> None:
    seen = Seen()
    seen.pools(pool("pool-a", ready_condition()), pool("pool-b"))
    seen.leases(lease("pool-a"))
    seen.observer.machine_pools.deleted(ObjectKey("", "pool-a"), seen.clock.monotonic())
    assert [line for line in seen.lines("") if "pool-a" in line] == [
        'lease_age_seconds{machinepool="pool-a"} 0',
        'lease_duration_seconds{machinepool="pool-a"} 40',
        'lease_holder_changes_total{machinepool="pool-a"} 0',
        'lease_holder_conflict{machinepool="pool-a"} 0',
        'lease_orphaned{machinepool="pool-a"} 1',
    ]
    seen.observer.leases.deleted(ObjectKey(LEASE_NAMESPACE, "pool-a"), seen.clock.monotonic())
    assert [line for line in seen.lines("") if "pool-a" in line] == []


def test_a_pool_whose_delete_fell_into_a_watch_gap_vanishes_with_the_next_list() -> None:
    seen = Seen()
    seen.pools(pool("pool-a"), pool("pool-b"))
    seen.pools(pool("pool-b"))
    assert set(seen.lines("info")) == {'info{machinepool="pool-b",provider_id="ironcore://pool-b"} 1'}


def test_no_lease_is_called_an_orphan_before_the_pools_were_listed() -> None:
    seen = Seen()
    seen.leases(lease("pool-a"))
    assert seen.lines("lease_orphaned") == ['lease_orphaned{machinepool="pool-a"} 0']
    seen.pools()
    assert seen.lines("lease_orphaned") == ['lease_orphaned{machinepool="pool-a"} 1']
    seen.pools(pool("pool-a"))
    assert seen.lines("lease_orphaned") == ['lease_orphaned{machinepool="pool-a"} 0']


def test_silence_stands_still_without_sight_and_blindness_is_counted_instead() -> None:
    seen = Seen()
    seen.answer()
    seen.pools(pool("pool-a"))
    seen.clock.step(60)
    assert seen.value("silence_seconds", machinepool="pool-a") == 10
    assert seen.value("lifecycle_blind_seconds", resource="leases") == 50


def test_a_gap_in_sight_gives_each_pool_its_lease_duration_once() -> None:
    seen = Seen()
    seen.answer()
    seen.pools(pool("pool-a"))
    for _ in range(9):
        seen.clock.step(5)
        seen.answer()
    assert seen.value("silence_seconds", machinepool="pool-a") == 45
    seen.clock.step(100)
    seen.answer()
    assert seen.value("silence_seconds", machinepool="pool-a") == 10


@pytest.mark.parametrize("which", ["pool", "lease"])
def test_a_pool_with_an_object_that_cannot_be_decoded_has_no_silence_to_decide_by(which: str) -> None:
    seen = Seen()
    seen.pools(pool("pool-a"), pool("pool-b"))
    seen.leases(lease("pool-a"))
    if which == "pool":
        seen.observer.machine_pools.undecodable(ObjectKey("", "pool-a"), seen.clock.monotonic())
    else:
        seen.leases(broken=["pool-a"])
    assert seen.lines("silence") == ['silence_seconds{machinepool="pool-b"} 0']
    seen.pools(pool("pool-a"), pool("pool-b"))
    seen.leases(lease("pool-a"))
    assert len(seen.lines("silence")) == 2


def test_a_grace_that_is_not_above_the_largest_lease_duration_is_said_for_as_long_as_it_is_so() -> None:
    seen = Seen()
    seen.pools(pool("pool-a"), pool("pool-b"))
    seen.leases(lease("pool-a"), lease("pool-b", duration=50))
    assert seen.value("lifecycle_grace_too_short") == 1
    seen.renew(lease("pool-b", duration=49))
    assert seen.value("lifecycle_grace_too_short") == 0


def test_the_decision_reads_the_number_that_the_page_shows() -> None:
    seen = Seen()
    seen.answer()
    seen.pools(pool("pool-a"))
    seen.clock.step(7.1234)
    now = seen.observer.moment()
    shown = [line for line in seen.store.render(now).decode().splitlines() if line.startswith("loopwatch_machinepool_silence")]
    assert shown == ['loopwatch_machinepool_silence_seconds{machinepool="pool-a"} 7.123']
    assert seen.store.value("loopwatch_machinepool_silence_seconds", {"machinepool": "pool-a"}, now) == 7.123


def test_a_renewal_moves_no_fixed_byte_of_the_page() -> None:
    """What a heartbeat costs is two clocked values: everything else of the pool is joined from bytes kept."""
    seen = Seen()
    seen.answer()
    seen.pools(pool("pool-a", ready_condition()))
    seen.leases(lease("pool-a"))
    before = seen.store.render(Moment(0, 0))
    seen.renew(lease("pool-a", renew_time=renewal(7)))
    assert seen.store.render(Moment(0, 0)) == before
