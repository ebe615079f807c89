"""What election writes, field by field, and how it reads a Lease."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from loopwatch.election import bodies, record
from loopwatch.election.derive import Step
from loopwatch.election.record import Record
from loopwatch.kube.resources import ObjectKey

NOW = dt.datetime(2026, 5, 1, 12, 0, 0, 120, tzinfo=dt.UTC)
STAMP = "2026-05-01T12:00:00.000120Z"
HELD = Record("7", "a", STAMP, 15, 3)


def test_a_new_lease_is_held_from_its_making_and_has_changed_hands_never() -> None:
    assert bodies.creation(ObjectKey("ns", "name"), "a", 15, STAMP) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "name", "namespace": "ns"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": STAMP, "renewTime": STAMP, "leaseTransitions": 0},
    }


def test_whoever_takes_a_lease_counts_the_transition_and_moves_acquire_time() -> None:
    assert bodies.patch(Step.TAKE, HELD, "b", 20, STAMP) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"holderIdentity": "b", "leaseDurationSeconds": 20, "acquireTime": STAMP, "renewTime": STAMP, "leaseTransitions": 4},
    }


def test_a_renewal_is_one_field_unless_the_duration_was_changed() -> None:
    assert bodies.patch(Step.RENEW, HELD, "a", 15, STAMP) == {"metadata": {"resourceVersion": "7"}, "spec": {"renewTime": STAMP}}
    assert bodies.patch(Step.RENEW, HELD, "a", 20, STAMP)["spec"] == {"renewTime": STAMP, "leaseDurationSeconds": 20}


def test_a_released_lease_is_nobodys_for_one_second_and_keeps_its_count() -> None:
    assert bodies.patch(Step.RELEASE, HELD, "a", 15, STAMP) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": STAMP, "renewTime": STAMP},
    }


def test_the_count_of_transitions_stops_at_what_an_int32_holds() -> None:
    full = msgspec.structs.replace(HELD, transitions=2**31 - 1)
    assert bodies.patch(Step.TAKE, full, "b", 15, STAMP)["spec"]["leaseTransitions"] == 2**31 - 1


@pytest.mark.parametrize("step", [Step.WAIT, Step.CREATE])
def test_what_patches_nothing_has_no_patch(step: Step) -> None:
    with pytest.raises(ValueError, match="patches no Lease"):
        bodies.patch(step, HELD, "a", 15, STAMP)


def test_a_stamp_has_six_digits_and_differs_from_the_lease_even_where_the_clock_stands_still() -> None:
    assert bodies.stamp(NOW, None) == STAMP
    assert bodies.stamp(NOW, msgspec.structs.replace(HELD, renew_time="2026-05-01T12:00:00.000119Z")) == STAMP
    assert bodies.stamp(NOW, HELD) == "2026-05-01T12:00:00.000121Z"


def test_a_lease_is_read_whatever_it_lacks() -> None:
    bare = b'{"metadata":{"resourceVersion":"9"}}'
    empty = b'{"metadata":{"resourceVersion":"9"},"spec":{"holderIdentity":null,"renewTime":null,"leaseTransitions":null}}'
    assert record.decode(bare) == record.decode(empty) == Record("9")


def test_a_lease_is_read_with_times_as_texts_that_nobody_parses() -> None:
    body = (
        b'{"kind":"Lease","metadata":{"name":"x","resourceVersion":"9","labels":{"a":"b"}},"spec":{"holderIdentity":"b",'
        b'"leaseDurationSeconds":40,"acquireTime":"x","renewTime":"9999-12-31T23:59:59.999999999Z","leaseTransitions":2,"strategy":"y"}}'
    )
    assert record.decode(body) == Record("9", "b", "9999-12-31T23:59:59.999999999Z", 40, 2)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"metadata":{}}', b'{"metadata":{"resourceVersion":"1"},"spec":[]}'])
def test_what_is_no_lease_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        record.decode(body)
