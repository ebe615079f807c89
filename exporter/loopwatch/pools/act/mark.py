"""Writes Ready=Unknown on a pool: the one write of the lifecycle.

A merge patch of the status, since CRDs and aggregated APIs alike take it; the whole conditions list, since the list is atomic, as it was
read a moment ago, with that read's resourceVersion as precondition: whatever changed in between makes it a 409, and the caller judges
anew. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.resources import MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import Transport
from loopwatch.kube.write import Writer
from loopwatch.microtime import render_seconds
from loopwatch.pools.derive import conditions
from loopwatch.pools.model import LIFECYCLE_MANAGER, READY, STATUS_UNKNOWN, STATUS_UNKNOWN_MESSAGE

FIELD_MANAGER: Final = LIFECYCLE_MANAGER


class Marker:
    """The writer of Unknown."""

    def __init__(self, transport: Transport, clock: Clock, *, timeout_seconds: float) -> None:
        self._write = Writer(transport, clock, field_manager=FIELD_MANAGER)
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    async def mark(self, raw_pool: bytes) -> bytes:
        """Mark the pool that `raw_pool` (a GET's body) shows; returns the pool as written. ApiError (409: it changed) or TransportError."""
        pool: Mapping[str, Any] = msgspec.json.decode(raw_pool)
        metadata = pool["metadata"]
        entry = {
            "type": READY,
            "status": "Unknown",
            "reason": STATUS_UNKNOWN,
            "message": STATUS_UNKNOWN_MESSAGE,
            "observedGeneration": metadata.get("generation", 0),
        }
        before = (pool.get("status") or {}).get("conditions") or []
        body = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "status": {"conditions": conditions.replace(before, entry, render_seconds(self._clock.utcnow()))},
        }
        key = ObjectKey("", metadata["name"])
        return await self._write.merge_patch(MACHINE_POOLS, key, body, subresource="status", timeout_seconds=self._timeout_seconds)
