"""What the API server refuses, in the real one's words: each refusal is a `metav1.Status` with its HTTP status.

Codes, reasons, details and messages are those that kube-apiserver 1.36 was seen to give (tests/contract holds them to it), since
clients decide by them. A refusal never carries a header or a body of the request but what the real one echoes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.kube.resources import NAMESPACES, Resource

JSON_TYPE: Final = "application/json"
_REJECTED: Final = "the server rejected our request due to an error in our request"
_TOO_OLD_TO_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and "
    "now may show up in the list."
)
_encode: Final = msgspec.json.Encoder().encode


class Cause(NamedTuple):
    """One reason of a 422: the field, a reason such as FieldValueInvalid, and the message without the field's name."""

    field: str
    reason: str
    message: str


class Refusal(Exception):
    """A request that is answered with a Status; `headers` are added to the answer's."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}
        self.headers = dict(headers or {})

    def status(self) -> dict[str, Any]:
        """The Status object; the keys that the real one leaves out when empty are left out here."""
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body

    def body(self) -> bytes:
        """The Status as JSON with a newline."""
        return _encode(self.status()) + b"\n"


def qualified(resource: Resource) -> str:
    """`machinepools.compute.ironcore.dev`; `namespaces` for the core group."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def qualified_kind(resource: Resource, kind: str = "") -> str:
    """`MachinePool.compute.ironcore.dev`; `Namespace` for the core group. `kind` replaces the resource's own."""
    return f"{kind or resource.kind}.{resource.group}" if resource.group else kind or resource.kind


def details_of(resource: Resource, name: str = "", kind: str = "") -> dict[str, Any]:
    """A Status' details: name, group, kind, each left out when empty; `kind` is the plural unless given."""
    named = {"name": name, "group": resource.group, "kind": kind or resource.plural}
    return {key: value for key, value in named.items() if value}


def bad_request(message: str) -> Refusal:
    """400."""
    return Refusal(400, message, reason="BadRequest")


def unauthorized() -> Refusal:
    """401: a token that nobody accepts."""
    return Refusal(401, "Unauthorized", reason="Unauthorized")


def forbidden(resource: Resource, user: str, verb: str, *, subresource: str = "", namespace: str = "", name: str = "") -> Refusal:
    """403 as RBAC words it; a create names no object."""
    shown = "" if verb == "create" else name
    if resource == NAMESPACES:  # a namespace is asked for in itself
        namespace = shown
    which = f' "{shown}"' if shown else ""
    what = f"{resource.plural}/{subresource}" if subresource else resource.plural
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    message = (
        f'{qualified(resource)}{which} is forbidden: User "{user}" cannot {verb} resource "{what}" in API group "{resource.group}" {where}'
    )
    return Refusal(403, message, reason="Forbidden", details=details_of(resource, shown))


def forbidden_by_namespace(resource: Resource, name: str, namespace: str) -> Refusal:
    """403: the namespace is being deleted."""
    message = (
        f'{qualified(resource)} "{name}" is forbidden: unable to create new content in namespace {namespace} because it is being terminated'
    )
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated", "field": "metadata.namespace"}
    return Refusal(403, message, reason="Forbidden", details=details_of(resource, name) | {"causes": [cause]})


def forbidden_deletion(resource: Resource, name: str) -> Refusal:
    """403: a namespace that the cluster itself needs."""
    message = f'{qualified(resource)} "{name}" is forbidden: this namespace may not be deleted'
    return Refusal(403, message, reason="Forbidden", details=details_of(resource, name))


def not_found(resource: Resource, name: str) -> Refusal:
    """404 for an object."""
    return Refusal(404, f'{qualified(resource)} "{name}" not found', reason="NotFound", details=details_of(resource, name))


def not_served() -> Refusal:
    """404 for a subresource that a built-in resource does not have."""
    return Refusal(404, "the server could not find the requested resource", reason="NotFound", details={})


def method_not_allowed() -> Refusal:
    """405."""
    return Refusal(405, "the server does not allow this method on the requested resource", reason="MethodNotAllowed", details={})


def already_exists(resource: Resource, name: str) -> Refusal:
    """409 on create."""
    return Refusal(409, f'{qualified(resource)} "{name}" already exists', reason="AlreadyExists", details=details_of(resource, name))


def conflict(resource: Resource, name: str) -> Refusal:
    """409: the write was decided on an older resourceVersion."""
    message = (
        f'Operation cannot be fulfilled on {qualified(resource)} "{name}": the object has been modified; please apply your changes to the '
        "latest version and try again"
    )
    return Refusal(409, message, reason="Conflict", details=details_of(resource, name))


def precondition_failed(resource: Resource, name: str, why: str) -> Refusal:
    """409: a delete's uid or resourceVersion is another; it names the kind, not the plural."""
    message = f'Operation cannot be fulfilled on {qualified_kind(resource)} "{name}": {why}'
    return Refusal(409, message, reason="Conflict", details=details_of(resource, name, resource.kind))


def invalid(resource: Resource, name: str, causes: Iterable[Cause], *, kind: str = "") -> Refusal:
    """422 with one cause a field; `kind` replaces the resource's own where the object named another."""
    listed = list(causes)
    said = [f"{cause.field}: {cause.message}" for cause in listed]
    message = f'{qualified_kind(resource, kind)} "{name}" is invalid: ' + (said[0] if len(said) == 1 else f"[{', '.join(said)}]")
    body = details_of(resource, name, kind or resource.kind) | {"causes": _causes(listed)}
    return Refusal(422, message, reason="Invalid", details=body)


def version_required(resource: Resource, name: str) -> Refusal:
    """422: an update that names no resourceVersion; it names the plural, not the kind."""
    cause = Cause("metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update")
    message = f'{qualified(resource)} "{name}" is invalid: {cause.field}: {cause.message}'
    return Refusal(422, message, reason="Invalid", details=details_of(resource, name) | {"causes": _causes([cause])})


def invalid_patch_result(document: bytes, why: str) -> Refusal:
    """422: what the patch makes of the object can't be read as one; the real one quotes the whole object."""
    quoted = _encode(document.decode()).decode()
    cause = Cause("patch", "FieldValueInvalid", f"Invalid value: {quoted}: {why}")
    return Refusal(422, f' "" is invalid: patch: {cause.message}', reason="Invalid", details={"causes": _causes([cause])})


def patch_rejected() -> Refusal:
    """422: a JSON patch whose operation does not apply, test included; the real one says no more than this."""
    return Refusal(422, _REJECTED, reason="Invalid", details={})


def invalid_list_options(causes: Iterable[tuple[str, str]]) -> Refusal:
    """422: list parameters that exclude each other, as (field, message) pairs; a message says its own kind of fault."""
    listed = [Cause(field, _list_reason(message), message) for field, message in causes]
    said = [f"{cause.field}: {cause.message}" for cause in listed]
    message = 'ListOptions.meta.k8s.io "" is invalid: ' + (said[0] if len(said) == 1 else f"[{', '.join(said)}]")
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": _causes(listed)}
    return Refusal(422, message, reason="Invalid", details=details)


def not_acceptable(message: str, *, details: Mapping[str, Any] | None = None) -> Refusal:
    """406."""
    return Refusal(406, message, reason="NotAcceptable", details=details)


def unsupported_media_type(message: str) -> Refusal:
    """415."""
    return Refusal(415, message, reason="UnsupportedMediaType")


def expired(message: str, *, resume: str = "") -> Refusal:
    """410; `resume` is the continue token of an inconsistent rest, given where a continue token was too old."""
    return Refusal(410, message, reason="Expired", metadata={"continue": resume} if resume else None)


def continue_expired(resume: str) -> Refusal:
    """410 for a continue token."""
    return expired(_TOO_OLD_TO_CONTINUE, resume=resume)


def version_too_large(asked: int, current: int) -> Refusal:
    """504: a resourceVersion from the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Refusal(
        504,
        f"Timeout: Too large resource version: {asked}, current: {current}",
        reason="Timeout",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers={"Retry-After": "1"},
    )


def internal(message: str) -> Refusal:
    """500 without a reason, as an error that nobody wrapped."""
    return Refusal(500, message)


def success(resource: Resource, name: str, uid: str) -> bytes:
    """The Status of a delete."""
    details = details_of(resource, name) | {"uid": uid}
    return _encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}) + b"\n"


def _causes(causes: Iterable[Cause]) -> list[dict[str, str]]:
    return [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]


def _list_reason(message: str) -> str:
    return "FieldValueNotSupported" if message.startswith("Unsupported value") else "FieldValueForbidden"
