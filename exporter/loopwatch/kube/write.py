"""The writing door, and the only one: create, and merge patch.

Only `loopwatch.pools.act` may import it (import-linter). It refuses PUT: aiohttp once resent a PUT by itself when a reused connection
died, and the caller then met its own write as a 409; and a merge patch works on CRDs and aggregated APIs alike, where a strategic one
does not. Who must not overwrite a newer object puts `metadata.resourceVersion` into the patch: 409 means read again and decide again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.errors import Call
from loopwatch.kube.exchange import exchange
from loopwatch.kube.resources import ObjectKey, Resource
from loopwatch.kube.transport import Request, Transport

_CREATE: Final = {"Accept": "application/json", "Content-Type": "application/json"}
_MERGE_PATCH: Final = {"Accept": "application/json", "Content-Type": "application/merge-patch+json"}


class Writer:
    """Writes to one API server; `field_manager` is what managedFields and the audit log will name."""

    def __init__(self, transport: Transport, clock: Clock, *, field_manager: str) -> None:
        self._transport = transport
        self._clock = clock
        self._field_manager = field_manager

    async def create(self, resource: Resource, body: Mapping[str, object], *, namespace: str = "", timeout_seconds: float) -> bytes:
        """The object as created. Raises ApiError (409: it is there already; 404: its namespace is not), TransportError."""
        request = Request("POST", resource.collection_path(namespace), self._query(), _CREATE, msgspec.json.encode(body))
        return await self._send(request, Call("create", resource, namespace, _name(body)), timeout_seconds)

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, body: Mapping[str, object], *, subresource: str = "", timeout_seconds: float
    ) -> bytes:
        """The object as patched. Raises ApiError (409: not the resourceVersion in the body), TransportError."""
        path = resource.object_path(key, subresource)
        request = Request("PATCH", path, self._query(), _MERGE_PATCH, msgspec.json.encode(body))
        return await self._send(request, Call.on("patch", resource, key, subresource), timeout_seconds)

    async def _send(self, request: Request, call: Call, timeout_seconds: float) -> bytes:
        return await exchange(self._transport, self._clock, request, call, timeout_seconds)

    def _query(self) -> tuple[tuple[str, str], ...]:
        return (("fieldManager", self._field_manager),)


def _name(body: Mapping[str, object]) -> str:
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""
