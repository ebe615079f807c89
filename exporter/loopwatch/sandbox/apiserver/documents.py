"""The body of a write, from bytes to a decoded object: parsed, patched, decoded, its dropped fields named.

The same fault has two faces on the real server, and both are kept: a document that Go's decoder refuses is a 400 on create and replace,
and a 422 that quotes the whole object on patch.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from loopwatch.sandbox.apiserver import go_json, negotiation, patches, served, statuses
from loopwatch.sandbox.apiserver.calls import Call
from loopwatch.sandbox.apiserver.jsons import Json
from loopwatch.sandbox.apiserver.managed_fields import Writer
from loopwatch.sandbox.apiserver.served import Decoded, ResourceType
from loopwatch.sandbox.apiserver.store import Stored

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_MAP: Final = "map[string]interface {}"


def read_new(call: Call, kind_of: ResourceType) -> Decoded:
    """The object of a POST or PUT."""
    negotiation.check_body_type(call.headers)
    raw = call.request.body or b""
    resource = kind_of.resource
    try:
        document = parse_json(raw)
    except ValueError as error:
        shown = raw[:24].decode(errors="replace") or "<empty>"
        what = f"couldn't get version/kind; json parse error: {error} ({shown})"
        raise statuses.bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {what}") from None
    try:
        decoded = kind_of.decode(served.check_kind(kind_of, document))
    except served.DecodeFault as fault:
        raise _cannot_handle(kind_of, str(fault)) from None
    _check_strictness(call, kind_of, decoded)
    _check_namespace(call, kind_of, decoded.body)
    return decoded


def patch_type(call: Call, kind_of: ResourceType) -> str:
    """The media type of a patch."""
    return negotiation.patch_type(kind_of, call.headers)


def read_patched(call: Call, kind_of: ResourceType, stored: Stored, media_type: str) -> Decoded:
    """What a patch makes of the stored object."""
    if media_type == negotiation.JSON_PATCH:
        operations = _parse_patch(call, list, "[]handlers.jsonPatchOp", "error decoding patch: ")
        try:
            document = patches.apply(stored.body, cast("list[Json]", operations))
        except patches.PatchError:
            raise statuses.patch_rejected() from None
    else:
        prefix = "" if media_type == negotiation.STRATEGIC_MERGE_PATCH else "error decoding patch: "
        document = patches.merge(stored.body, _parse_patch(call, dict, _MAP, prefix))
    decoded = _decode_patched(kind_of, document)
    _check_strictness(call, kind_of, decoded)
    return decoded


def read_preconditions(call: Call) -> dict[str, str]:
    """A delete's preconditions: `uid` and `resourceVersion`, where they are given."""
    if not call.request.body:
        return {}
    negotiation.check_body_type(call.headers)
    try:
        options = parse_json(call.request.body)
    except ValueError as error:
        raise statuses.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(options, dict):
        raise statuses.bad_request("couldn't get version/kind; json parse error: DeleteOptions are an object")
    if options.get("kind", "DeleteOptions") != "DeleteOptions":
        told = f'no kind "{options["kind"]}" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"'
        raise statuses.bad_request(told)
    given = options.get("preconditions")
    preconditions = given if isinstance(given, dict) else {}
    return {key: str(preconditions[key]) for key in ("uid", "resourceVersion") if preconditions.get(key)}


def check_name(name: str, body: dict[str, Any]) -> None:
    """Refuse (400) an object that is named otherwise than its URL."""
    given = body["metadata"].get("name", "")
    if not given:
        raise statuses.bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise statuses.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def writer(call: Call, kind_of: ResourceType) -> Writer:
    """Whom managedFields name."""
    return Writer(call.query.get("fieldManager") or call.identity.client or "unknown", kind_of.resource.api_version, call.subresource)


def parse_json(raw: bytes) -> Json:
    """A JSON document; ValueError in Go's words as far as they matter to a reader."""
    try:
        return cast("Json", msgspec.json.decode(raw))
    except msgspec.DecodeError as error:
        truncated = "truncated" in str(error)
        raise ValueError("unexpected end of JSON input" if truncated else f"invalid character: {error}") from None
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def _parse_patch(call: Call, wanted: type, go_type: str, prefix: str) -> Json:
    try:
        patch = parse_json(call.request.body or b"")
    except ValueError as error:
        raise statuses.bad_request(f"{prefix}{error}") from None
    if not isinstance(patch, wanted):
        raise statuses.bad_request(f"{prefix}json: cannot unmarshal {go_json.go_kind(patch)} into Go value of type {go_type}")
    return patch


def _decode_patched(kind_of: ResourceType, document: Json) -> Decoded:
    resource = kind_of.resource
    if not isinstance(document, dict) or "kind" not in document:
        raise statuses.invalid_patch_result(_encode(document), f"Object 'Kind' is missing in '{_encode(document).decode()}'")
    named = (document["kind"], document.get("apiVersion"))
    if not kind_of.custom and named != (resource.kind, resource.api_version):
        told = f'no kind "{named[0]}" is registered for version "{named[1]}" in scheme "pkg/runtime/scheme.go:111"'
        raise statuses.invalid_patch_result(_encode(document), told)
    try:
        return kind_of.decode(cast("dict[str, Any]", document))
    except served.DecodeFault as fault:
        raise statuses.invalid_patch_result(_encode(document), str(fault)) from None


def _check_strictness(call: Call, kind_of: ResourceType, decoded: Decoded) -> None:
    if decoded.unknown and call.query.get("fieldValidation") == "Strict":
        listed = ", ".join(f'unknown field "{field}"' for field in decoded.unknown)
        raise _cannot_handle(kind_of, f"strict decoding error: {listed}")


def _check_namespace(call: Call, kind_of: ResourceType, body: dict[str, Any]) -> None:
    given = body["metadata"].get("namespace", "")
    if kind_of.resource.namespaced and given not in {"", call.key.namespace}:
        raise statuses.bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _cannot_handle(kind_of: ResourceType, why: str) -> statuses.Refusal:
    resource = kind_of.resource
    return statuses.bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')
