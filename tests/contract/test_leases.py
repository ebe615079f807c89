"""Leases: the strictness that costs a heartbeat its lease when a client's language writes times by its own taste."""

from __future__ import annotations

from typing import Any

import pytest

from loopwatch.kube.resources import LEASES, ObjectKey
from tests.contract.cluster import Cluster, create, new, patch, unique

LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
HANDLED = 'Lease in version "v1" cannot be handled as a Lease: '

REFUSED_TIMES = {
    "2026-05-01T13:18:48Z": f'as "{LAYOUT}": cannot parse "Z" as ".000000"',
    "2026-05-01T13:18:48.103Z": f'as "{LAYOUT}": cannot parse ".103Z" as ".000000"',
    "2026-05-01T13:18:48.10345Z": f'as "{LAYOUT}": cannot parse ".10345Z" as ".000000"',
    "2026-05-01T13:18:48.1034567Z": f'as "{LAYOUT}": cannot parse "7Z" as "Z07:00"',
    "2026-05-01T13:18:48.103456789Z": f'as "{LAYOUT}": cannot parse "789Z" as "Z07:00"',
    "2026-05-01T13:18:48.103456": f'as "{LAYOUT}": cannot parse "" as "Z07:00"',
    "2026-05-01T13:18:48.103456z": f'as "{LAYOUT}": cannot parse "z" as "Z07:00"',
    "2026-05-01T13:18:48.103456+0200": f'as "{LAYOUT}": cannot parse "+0200" as "Z07:00"',
    "2026-05-01 13:18:48.103456Z": f'as "{LAYOUT}": cannot parse " 13:18:48.103456Z" as "T"',
    "2026-5-01T13:18:48.103456Z": f'as "{LAYOUT}": cannot parse "5-01T13:18:48.103456Z" as "01"',
    "2026-05-01T13:18:48.103456Z ": ': extra text: " "',
    "2026-02-30T13:18:48.103456Z": ": day out of range",
    "2026-13-01T13:18:48.103456Z": ": month out of range",
    "2026-05-01T24:00:00.000000Z": ": hour out of range",
    "2026-05-01T23:59:60.000000Z": ": second out of range",
    "2026-05-01T13:18:48.103456+25:00": ": time zone offset hour out of range",
    "yesterday": f'as "{LAYOUT}": cannot parse "yesterday" as "2006"',
    "": f'as "{LAYOUT}": cannot parse "" as "2006"',
}
TAKEN_TIMES = {
    "2026-05-01T12:00:00.000000Z": "2026-05-01T12:00:00.000000Z",
    "2026-05-01T13:18:48.103456+02:00": "2026-05-01T11:18:48.103456Z",
    "2026-05-01T13:18:48.103456-00:00": "2026-05-01T13:18:48.103456Z",
    "2026-05-01T13:18:48,103456Z": "2026-05-01T13:18:48.103456Z",
    "2026-05-01T3:18:48.103456Z": "2026-05-01T03:18:48.103456Z",
    "0001-01-01T00:00:00.000000Z": None,
}


async def test_a_lease_is_stored_as_it_was_written(cluster: Cluster) -> None:
    spec = {
        "holderIdentity": "pool-a_0c8914f7-0f35-440e-8676-7844977d3a05",
        "leaseDurationSeconds": 40,
        "acquireTime": "2026-05-01T13:18:48.065888Z",
        "renewTime": "2026-05-01T13:18:58.065888Z",
    }
    assert (await create(cluster, LEASES, new(LEASES, unique("lease"), "default", spec=spec))).json["spec"] == spec


@pytest.mark.parametrize("time", REFUSED_TIMES)
@pytest.mark.parametrize("field", ["renewTime", "acquireTime"])
async def test_a_micro_time_has_exactly_six_digits(cluster: Cluster, time: str, field: str) -> None:
    body = new(LEASES, unique("lease"), spec={field: time})
    reply = await cluster.send("POST", LEASES.collection_path("default"), body)
    why = REFUSED_TIMES[time]
    space = "" if why.startswith(":") else " "
    assert (reply.status, reply.reason) == (400, "BadRequest")
    assert reply.message == f'{HANDLED}parsing time "{time}"{space}{why}'


@pytest.mark.parametrize("time", TAKEN_TIMES)
async def test_a_micro_time_is_given_back_in_utc(cluster: Cluster, time: str) -> None:
    reply = await create(cluster, LEASES, new(LEASES, unique("lease"), "default", spec={"renewTime": time}))
    assert reply.json["spec"] == {"renewTime": TAKEN_TIMES[time]}


async def test_a_wrong_time_in_a_patch_is_a_422_and_not_a_400(cluster: Cluster) -> None:
    key = ObjectKey("default", unique("lease"))
    await create(cluster, LEASES, new(LEASES, key.name, "default", spec={"renewTime": "2026-05-01T13:18:48.065888Z"}))
    for kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        reply = await patch(cluster, LEASES, key, {"spec": {"renewTime": "2026-05-01T13:18:58Z"}}, kind=kind)
        assert (reply.status, reply.reason) == (422, "Invalid")
        assert reply.message.startswith(' "" is invalid: patch: Invalid value: ')
        assert reply.message.endswith(f'parsing time "2026-05-01T13:18:58Z" as "{LAYOUT}": cannot parse "Z" as ".000000"')
        assert reply.json["details"]["causes"][0]["field"] == "patch"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"leaseDurationSeconds": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            {"leaseDurationSeconds": 40.0},
            "json: cannot unmarshal number 40.0 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            {"leaseDurationSeconds": "40"},
            "json: cannot unmarshal string into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            {"leaseDurationSeconds": True},
            "json: cannot unmarshal bool into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            {"leaseDurationSeconds": 2**31},
            "json: cannot unmarshal number 2147483648 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        ({"holderIdentity": 5}, "json: cannot unmarshal number into Go struct field LeaseSpec.spec.holderIdentity of type string"),
        ({"renewTime": 12}, "json: cannot unmarshal number into Go struct field LeaseSpec.spec.renewTime of type string"),
        ({"renewTime": {}}, "json: cannot unmarshal object into Go struct field LeaseSpec.spec.renewTime of type string"),
        ([], "json: cannot unmarshal array into Go struct field Lease.spec of type v1.LeaseSpec"),
    ],
)
async def test_a_field_of_a_wrong_type_is_refused_while_decoding(cluster: Cluster, spec: object, said: str) -> None:
    reply = await cluster.send("POST", LEASES.collection_path("default"), new(LEASES, unique("lease"), spec=spec))
    assert (reply.status, reply.message) == (400, HANDLED + said)


@pytest.mark.parametrize("seconds", [0, -3])
async def test_a_duration_is_positive(cluster: Cluster, seconds: int) -> None:
    key = ObjectKey("default", unique("lease"))
    said = f'Lease.coordination.k8s.io "{key.name}" is invalid: spec.leaseDurationSeconds: Invalid value: {seconds}: must be greater than 0'
    made = await cluster.send("POST", LEASES.collection_path("default"), new(LEASES, key.name, spec={"leaseDurationSeconds": seconds}))
    assert (made.status, made.message) == (422, said)
    await create(cluster, LEASES, new(LEASES, key.name, "default"))
    patched = await patch(cluster, LEASES, key, {"spec": {"leaseDurationSeconds": seconds}})
    assert (patched.status, patched.message) == (422, said)


async def test_two_faults_are_told_together(cluster: Cluster) -> None:
    name = unique("lease")
    spec = {"leaseDurationSeconds": 0, "leaseTransitions": -1}
    reply = await cluster.send("POST", LEASES.collection_path("default"), new(LEASES, name, spec=spec))
    assert reply.message == (
        f'Lease.coordination.k8s.io "{name}" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, '
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]"
    )
    assert len(reply.json["details"]["causes"]) == 2


@pytest.mark.parametrize("spec", [{"holderIdentity": ""}, {"leaseDurationSeconds": 2**31 - 1}, {"leaseTransitions": 0}])
async def test_what_may_look_wrong_and_is_taken(cluster: Cluster, spec: dict[str, Any]) -> None:
    assert (await create(cluster, LEASES, new(LEASES, unique("lease"), "default", spec=spec))).json["spec"] == spec


async def test_unknown_fields_are_dropped_with_a_warning_and_names_are_case_sensitive(cluster: Cluster) -> None:
    reply = await create(cluster, LEASES, new(LEASES, unique("lease"), "default", spec={"HolderIdentity": "a"}, junk=1))
    assert reply.json["spec"] == {}
    assert sorted(reply.warnings) == ['299 - "unknown field \\"junk\\""', '299 - "unknown field \\"spec.HolderIdentity\\""']


async def test_a_renewal_is_one_patch_that_moves_the_version(cluster: Cluster) -> None:
    key = ObjectKey("default", unique("lease"))
    made = await create(cluster, LEASES, new(LEASES, key.name, "default", spec={"renewTime": "2026-05-01T12:00:00.000000Z"}))
    body = {"metadata": {"resourceVersion": made.version}, "spec": {"renewTime": "2026-05-01T12:00:10.000000Z"}}
    renewed = await patch(cluster, LEASES, key, body)
    assert (renewed.status, renewed.json["spec"]["renewTime"]) == (200, "2026-05-01T12:00:10.000000Z")
    again = await patch(cluster, LEASES, key, body)
    assert (again.status, again.reason) == (409, "Conflict")


async def test_a_patch_can_empty_the_spec(cluster: Cluster) -> None:
    key = ObjectKey("default", unique("lease"))
    await create(cluster, LEASES, new(LEASES, key.name, "default", spec={"holderIdentity": "a"}))
    assert (await patch(cluster, LEASES, key, {"spec": None})).json["spec"] == {}
