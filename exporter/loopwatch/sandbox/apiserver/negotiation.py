"""Which forms of a body are taken and given: JSON, and gzip for large answers.

The real server also speaks YAML, protobuf (built-in types), CBOR and tables; the sandbox refuses them in the real one's words, so that
a client that forgot to ask for JSON finds out.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Final

from loopwatch.sandbox.apiserver import statuses
from loopwatch.sandbox.apiserver.served import ResourceType

MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
GZIP_FROM_BYTES: Final = 128 * 1024
_GZIP_LEVEL: Final = 1
_KNOWN_TYPES: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_CUSTOM_PATCHES: Final = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
_BUILT_IN_ACCEPTED: Final = f"{_KNOWN_TYPES}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


def check_accept(kind_of: ResourceType | None, headers: Mapping[str, str]) -> None:
    """Refuse (406) where the client takes no JSON."""
    accept = headers.get("accept", "")
    if not accept or any(_takes_json(part, kind_of) for part in accept.split(",")):
        return
    if kind_of is None or kind_of.custom:
        raise statuses.not_acceptable(f"only the following media types are accepted: {_KNOWN_TYPES}")
    raise statuses.not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {_BUILT_IN_ACCEPTED}", details={})


def patch_type(kind_of: ResourceType, headers: Mapping[str, str]) -> str:
    """The media type of a patch; a refusal (415) for one that the resource does not take."""
    media_type = _media_type(headers)
    allowed = {MERGE_PATCH, JSON_PATCH} if kind_of.custom else {MERGE_PATCH, JSON_PATCH, STRATEGIC_MERGE_PATCH}
    if media_type in allowed:
        return media_type
    if kind_of.custom:
        raise _unknown_format(_CUSTOM_PATCHES)
    raise statuses.Refusal(415, "415: Unsupported Media Type", reason="UnsupportedMediaType", details={})


def check_body_type(headers: Mapping[str, str]) -> None:
    """Refuse (415) a body that is not said to be JSON; saying nothing is saying JSON."""
    if _media_type(headers) not in {"", "application/json"}:
        raise _unknown_format(_KNOWN_TYPES)


def compressed(body: bytes, headers: Mapping[str, str]) -> bytes | None:
    """A large body gzipped, where the client asked for it."""
    offered = {part.split(";")[0].strip() for part in headers.get("accept-encoding", "").split(",")}
    if len(body) < GZIP_FROM_BYTES or "gzip" not in offered:
        return None
    return gzip.compress(body, _GZIP_LEVEL, mtime=0)


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").split(";")[0].strip()


def _takes_json(accepted: str, kind_of: ResourceType | None) -> bool:
    media_type, *parameters = (part.strip() for part in accepted.split(";"))
    if any(parameter.startswith("as=") for parameter in parameters):  # a table or metadata alone
        return False
    wildcards = {"*/*"} if kind_of is not None and not kind_of.custom else {"*/*", "application/*"}
    return media_type == "application/json" or media_type in wildcards


def _unknown_format(accepted: str) -> statuses.Refusal:
    return statuses.unsupported_media_type(f"the body of the request was in an unknown format - accepted media types include: {accepted}")
