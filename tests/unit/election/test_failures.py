"""What a failed request means: may it have had an effect, and what can be done."""

from __future__ import annotations

import pytest

from loopwatch.election.failures import advice, had_no_effect
from loopwatch.kube.errors import ApiError, Call
from loopwatch.kube.resources import LEASES, ObjectKey
from loopwatch.kube.transport import CredentialsError, TransportError, TransportTimeout

KEY = ObjectKey("ns", "name")


@pytest.mark.parametrize("status", [400, 401, 403, 422, 429])
def test_what_was_refused_before_it_came_to_the_lease_had_no_effect(status: int) -> None:
    assert had_no_effect(ApiError(status))


@pytest.mark.parametrize("status", [200, 404, 408, 409, 410, 500, 502, 503, 504])
def test_any_other_answer_must_be_read_back(status: int) -> None:
    assert not had_no_effect(ApiError(status))


def test_only_a_request_that_was_never_sent_had_no_effect_among_those_without_an_answer() -> None:
    assert had_no_effect(CredentialsError("the token file is missing"))
    assert not had_no_effect(TransportError("connection reset by peer"))
    assert not had_no_effect(TransportTimeout("no answer within 4 s"))


@pytest.mark.parametrize(("status", "verb"), [(404, "patch"), (409, "create"), (500, "get"), (429, "patch")])
def test_where_waiting_is_all_nothing_is_advised(status: int, verb: str) -> None:
    assert advice(ApiError(status, call=Call.on(verb, LEASES, KEY)), KEY) == ""
    assert advice(TransportTimeout("no answer within 4 s"), KEY) == ""


def test_a_404_for_who_knows_what_advises_nothing() -> None:
    assert advice(ApiError(404), KEY) == ""


def test_credentials_are_the_users_to_mend() -> None:
    assert "credentials" in advice(CredentialsError("the token file is missing"), KEY)


def test_a_missing_right_is_named_with_all_that_election_needs() -> None:
    error = ApiError(403, call=Call.on("patch", LEASES, KEY))
    assert "no right to patch" in str(error)
    assert advice(error, KEY) == "election needs get, create and patch on leases.coordination.k8s.io in namespace ns"
