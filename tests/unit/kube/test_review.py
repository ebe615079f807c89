"""The asking door: what is sent, and what becomes of the answers."""

from __future__ import annotations

import pytest

from loopwatch.kube.errors import ApiError
from loopwatch.kube.review import Reviewer, User
from loopwatch.kube.transport import TransportError, TransportTimeout
from tests.support.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS, ReviewApi
from tests.support.stepped import SteppedClock, stepped


def reviewer(api: ReviewApi) -> Reviewer:
    return Reviewer(api, SteppedClock(), timeout_seconds=2.0)


@stepped
async def test_a_token_is_posted_and_becomes_its_user() -> None:
    api = ReviewApi()
    api.permit("secret", "system:serviceaccount:monitoring:prometheus")
    user = await reviewer(api).user_of("secret")
    assert user == User(
        "system:serviceaccount:monitoring:prometheus", "u", ("g",), {"authentication.kubernetes.io/credential-id": ("JTI=1",)}
    )
    expected = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "secret"}}
    assert api.asked == [(TOKEN_REVIEWS, expected)]


@stepped
async def test_a_token_that_is_not_accepted_is_nobodys() -> None:
    assert await reviewer(ReviewApi()).user_of("wrong") is None


@pytest.mark.parametrize("status", ["{}", '{"authenticated": true}', '{"authenticated": true, "user": {"username": ""}}'])
@stepped
async def test_an_answer_that_names_no_user_is_nobodys(status: str) -> None:
    api = ReviewApi()
    api.trouble, api.body = 201, f'{{"status": {status}}}'.encode()
    assert await reviewer(api).user_of("token") is None


@stepped
async def test_access_is_asked_for_with_all_that_is_known_of_the_user() -> None:
    api = ReviewApi()
    api.allowed.add(("u", "/metrics"))
    user = User("u", "1", ("g", "h"), {"scopes": ("a",)})
    assert await reviewer(api).may_get(user, "/metrics")
    assert not await reviewer(api).may_get(user, "/other")
    assert api.asked[0] == (
        ACCESS_REVIEWS,
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "u",
                "uid": "1",
                "groups": ["g", "h"],
                "extra": {"scopes": ["a"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            },
        },
    )


@stepped
async def test_a_missing_right_is_named_by_verb_and_resource() -> None:
    api = ReviewApi()
    api.trouble = 403
    with pytest.raises(ApiError, match=r"no right to create tokenreviews\.authentication\.k8s\.io; grant that verb"):
        await reviewer(api).user_of("token")
    with pytest.raises(ApiError, match=r"no right to create subjectaccessreviews\.authorization\.k8s\.io; grant that verb"):
        await reviewer(api).may_get(User("u"), "/metrics")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"status": {"authenticated": "yes"}}', b"[" * 100_000])
@stepped
async def test_an_answer_that_is_no_review_is_an_error_and_none_of_it_is_told(body: bytes) -> None:
    api = ReviewApi()
    api.trouble, api.body = 201, body + b"secret"
    with pytest.raises(ApiError, match="the answer is no TokenReview") as caught:
        await reviewer(api).user_of("secret")
    assert "secret" not in str(caught.value)


@stepped
async def test_no_answer_is_a_transport_error_within_the_timeout() -> None:
    api, clock = ReviewApi(), SteppedClock()
    api.trouble = "refused"
    with pytest.raises(TransportError, match="connection refused"):
        await reviewer(api).user_of("token")
    api.trouble = "hangs"
    began = clock.monotonic()
    with pytest.raises(TransportTimeout, match=r"create tokenreviews\.authentication\.k8s\.io: no answer within 2 s"):
        await reviewer(api).user_of("token")
    assert clock.monotonic() - began == pytest.approx(2.0)
