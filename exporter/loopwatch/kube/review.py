"""The asking door: whose token is this, and may that one do something? The API server answers; nothing is changed.

Reviews are `create` in the words of RBAC and POST in those of HTTP, yet they leave nothing behind: no object, no trace but the audit log.
So they have a door of their own, beside the writing one. It refuses to keep or to show a token: an answer becomes a User or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError, Call
from loopwatch.kube.exchange import exchange
from loopwatch.kube.resources import SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from loopwatch.kube.transport import Request, Transport

T = TypeVar("T")
_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the API server knows; `extra` is what authorizers may look at beside the groups."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class _User(msgspec.Struct):
    username: str = ""
    uid: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User | None = None


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


class Reviewer:
    """Asks one API server. Methods raise ApiError and TransportError where no verdict is had."""

    def __init__(self, transport: Transport, clock: Clock, *, timeout_seconds: float) -> None:
        self._transport = transport
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    async def user_of(self, token: str) -> User | None:
        """Whose token it is; None where the API server does not accept it."""
        review = await self._ask(TOKEN_REVIEWS, {"token": token}, _TokenReview)
        user = review.status.user
        if not review.status.authenticated or user is None or not user.username:
            return None
        extra = {key: tuple(values) for key, values in (user.extra or {}).items()}
        return User(user.username, user.uid or "", tuple(user.groups or ()), extra)

    async def may_get(self, user: User, path: str) -> bool:
        """Whether `user` may `get` the URL path, which is no path of the API server's own: RBAC calls it a nonResourceURL."""
        spec: dict[str, Any] = {
            "user": user.name,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        review = await self._ask(SUBJECT_ACCESS_REVIEWS, spec, _AccessReview)
        return review.status.allowed

    async def may_i(self, call: Call) -> bool:
        """Whether whoever this transport speaks for may do that."""
        attributes = {
            "verb": call.verb,
            "group": call.resource.group,
            "version": call.resource.version,
            "resource": call.resource.plural,
            "subresource": call.subresource,
            "namespace": call.namespace,
            "name": call.name,
        }
        review = await self._ask(SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": attributes}, _AccessReview)
        return review.status.allowed

    async def may_i_get(self, path: str) -> bool:
        """Whether whoever this transport speaks for may `get` the URL path."""
        spec = {"nonResourceAttributes": {"path": path, "verb": "get"}}
        return (await self._ask(SELF_SUBJECT_ACCESS_REVIEWS, spec, _AccessReview)).status.allowed

    async def _ask(self, resource: Resource, spec: Mapping[str, Any], answer: type[T]) -> T:
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        request = Request("POST", resource.collection_path(), (), _HEADERS, msgspec.json.encode(review))
        call = Call("create", resource)
        body = await exchange(self._transport, self._clock, request, call, self._timeout_seconds)
        try:
            return msgspec.json.decode(body, type=answer)
        except (msgspec.DecodeError, RecursionError) as error:
            # What came back may hold the token that was sent: none of it is told.
            raise ApiError(200, message=f"the answer is no {resource.kind}", call=call) from error
