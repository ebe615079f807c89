"""What requests are about."""

from __future__ import annotations

from typing import Any

from loopwatch.kube.resources import LEASE_NAMESPACE
from loopwatch.kube.transport import Request
from tests.faults.ground import RESOURCES


def resource_of(path: str) -> str:
    """What a path is about, of RESOURCES."""
    parts = path.split("/")
    found = next((part for part in parts if part in RESOURCES), "other")
    return "election" if found == "leases" and LEASE_NAMESPACE not in parts else found


def is_watch(request: Request) -> bool:
    """Whether the answer is a stream."""
    return any(name == "watch" for name, _ in request.query)


def is_consistent_read(request: Request) -> bool:
    """Whether the answer shows what is stored now, not what a cache held."""
    query: dict[str, Any] = dict(request.query)
    return request.method == "GET" and not is_watch(request) and not query.get("resourceVersion")
