"""What a request of election that failed means: whether it can have had an effect, and what an operator can do about it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from loopwatch.kube.errors import ApiError
from loopwatch.kube.resources import ObjectKey
from loopwatch.kube.transport import CredentialsError, TransportError

_SAYS_NOTHING: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.TOO_MANY_REQUESTS}
)
"""Refused before it came to the Lease. 404 and 409 tell that the Lease is another than was thought; a 5xx may come after the effect."""


def had_no_effect(error: ApiError | TransportError) -> bool:
    """True for a write that certainly changed nothing, and whose failure says nothing about the Lease; else it must be read again."""
    if isinstance(error, ApiError):
        return error.status in _SAYS_NOTHING
    return isinstance(error, CredentialsError)


def advice(error: ApiError | TransportError, key: ObjectKey) -> str:
    """What an operator can do; empty where waiting is all. A missing verb is named by the ApiError itself."""
    if isinstance(error, CredentialsError):
        return "mend the credentials: they are read again at each try"
    if not isinstance(error, ApiError):
        return ""
    if error.status == HTTPStatus.UNAUTHORIZED:
        return "the API server does not accept this process's token or certificate: check that it has not expired and is for this cluster"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"election needs get, create and patch on leases.coordination.k8s.io in namespace {key.namespace}"
    if error.status == HTTPStatus.NOT_FOUND and error.call and error.call.verb == "create":
        return f"create the namespace {key.namespace}, or name one that exists with --leader-elect-resource-namespace"
    if error.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}:
        return "check --leader-elect-resource-name and --leader-elect-resource-namespace"
    return ""
