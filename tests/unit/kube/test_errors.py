from __future__ import annotations

import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.kube.errors import KINDS, LONGEST_RETRY_AFTER_SECONDS, ApiError, Call, ConfigError, retry_after_seconds
from loopwatch.kube.resources import LEASES, MACHINE_POOLS, NAMESPACES, ObjectKey
from tests.unit.kube.fake_api import status_body

NOW = datetime.datetime(2026, 5, 1, 12, 0, 0, tzinfo=datetime.UTC)
CALL = Call.on("patch", LEASES, ObjectKey("ironcore-machinepool-lease", "pool-a"))


def test_a_status_body_is_decoded() -> None:
    body = status_body(409, "Conflict", "the object has been modified", name="pool-a", kind="leases", retryAfterSeconds=3)
    error = ApiError.from_answer(409, body, call=CALL)
    assert (error.status, error.reason, error.message, error.kind) == (409, "Conflict", "the object has been modified", "conflict")
    assert (error.details_name, error.details_kind, error.retry_after) == ("pool-a", "leases", 3)
    assert str(error) == ("patch leases.coordination.k8s.io ironcore-machinepool-lease/pool-a: 409 Conflict: the object has been modified")


def test_403_names_the_missing_verb_and_resource() -> None:
    error = ApiError.from_answer(
        403, status_body(403, "Forbidden", "User may not"), call=Call("list", LEASES, "ironcore-machinepool-lease")
    )
    assert "no right to list leases.coordination.k8s.io in namespace ironcore-machinepool-lease" in str(error)
    error = ApiError.from_answer(403, b"", call=Call.on("patch", MACHINE_POOLS, ObjectKey("", "pool-a"), "status"))
    assert "no right to patch machinepools.compute.ironcore.dev/status;" in str(error)


def test_401_says_what_to_look_at_since_the_server_says_nothing() -> None:
    error = ApiError.from_answer(401, status_body(401, "Unauthorized", "Unauthorized"), call=CALL)
    assert str(error) == (
        "patch leases.coordination.k8s.io ironcore-machinepool-lease/pool-a: 401 Unauthorized: "
        "the API server does not accept the token or certificate in use: it has expired, was revoked, or is another cluster's"
    )


def test_the_core_group_has_no_name() -> None:
    assert str(Call("list", NAMESPACES)) == "list namespaces"


@pytest.mark.parametrize(
    "body", [b"", b"   ", b"<html><body><h1>502 Bad Gateway</h1></body></html>", b"\xff\xfe", b"[]", b"null", b'"x"', b"{" * 9000]
)
def test_a_body_that_is_no_status_hides_nothing(body: bytes) -> None:
    error = ApiError.from_answer(502, body, call=CALL)
    assert error.status == 502
    assert error.kind == "server"
    assert str(error).startswith("patch leases.coordination.k8s.io ironcore-machinepool-lease/pool-a: 502")


def test_a_proxys_page_is_told() -> None:
    assert "Bad Gateway" in str(ApiError.from_answer(502, b"<h1>502\n Bad   Gateway</h1>", call=CALL))


def test_messages_are_cleaned_and_cut() -> None:
    error = ApiError.from_answer(400, status_body(400, "BadRequest", "a\x1b[31m\n" + "é" * 2000), call=CALL)
    assert len(error.message.encode()) <= 1024
    assert error.message.isprintable()


def test_an_error_event_has_the_status_of_its_code() -> None:
    error = ApiError.from_event(msgspec.Raw(status_body(410, "Expired", "too old resource version")), call=CALL)
    assert (error.status, error.kind) == (410, "gone")
    assert ApiError.from_event(msgspec.Raw(b"{}"), call=CALL).status == 500
    assert ApiError.from_event(msgspec.Raw(b'"what"'), call=CALL).kind == "server"


@given(st.integers(100, 999), st.binary(max_size=200))
def test_the_kind_is_bounded_whatever_is_answered(status: int, body: bytes) -> None:
    assert ApiError.from_answer(status, body, call=CALL).kind in KINDS


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "bad_request"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "conflict"),
        (410, "gone"),
        (422, "bad_request"),
        *[(429, "throttled"), (500, "server"), (503, "server"), (200, "other"), (302, "other"), (415, "other")],
    ],
)
def test_each_status_has_its_kind(status: int, kind: str) -> None:
    assert ApiError(status).kind == kind


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("5", 5.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("soon", None),
        ("86400", LONGEST_RETRY_AFTER_SECONDS),
        ("inf", LONGEST_RETRY_AFTER_SECONDS),
        ("Fri, 01 May 2026 12:00:30 GMT", 30.0),
        ("Fri, 01 May 2026 12:00:30 -0000", 30.0),
        ("Fri, 01 May 2026 11:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


def test_a_config_error_says_where_what_and_how_to_fix_it() -> None:
    assert str(ConfigError("/etc/k", "is no YAML", "correct it", line=3, column=7)) == "/etc/k:3:7: is no YAML; correct it"
    assert str(ConfigError("/etc/k", "is empty", "write it")) == "/etc/k: is empty; write it"
