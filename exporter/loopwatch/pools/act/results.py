"""What the sidecar's two writers share: their name, and how a write ended, in the few words that metrics count by."""

from __future__ import annotations

from typing import Final

from loopwatch.kube.errors import ApiError
from loopwatch.kube.resources import ObjectKey
from loopwatch.kube.transport import TransportError, TransportTimeout

FIELD_MANAGER: Final = "loopwatch-sidecar"
"""What managedFields and the audit log name as the writer."""
CONFLICT: Final = 409
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404


def result_of(error: ApiError | TransportError) -> str:
    """One of families.heartbeat.RESULTS, but for `ok`."""
    if isinstance(error, TransportTimeout):
        return "timeout"
    if isinstance(error, ApiError) and error.status == CONFLICT:
        return "conflict"
    if isinstance(error, ApiError) and error.status == FORBIDDEN:
        return "forbidden"
    return "error"


def says_missing(error: ApiError | TransportError, key: ObjectKey) -> bool:
    """True for a 404 about the object itself; one about its namespace, or about an API that is not served, says nothing of it."""
    return (
        isinstance(error, ApiError) and error.status == NOT_FOUND and error.details_name == key.name and error.details_kind != "namespaces"
    )
