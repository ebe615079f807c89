"""The Lease as election reads it: who holds it, for how long, and which version of it this is.

Times are texts that only differ or don't. The promise is older than election: what a Lease says about a clock is never believed.
"""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True):
    """One version of the Lease. `holder` is empty where nobody holds it; `duration_seconds` is 0 where none is published."""

    version: str
    holder: str = ""
    renew_time: str = ""
    duration_seconds: int = 0
    transitions: int = 0


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec | None = None


_decode_lease = msgspec.json.Decoder(_Lease).decode


def decode(body: bytes) -> Record:
    """The record of a Lease's JSON; msgspec.DecodeError where it is none. Absent and null mean the same."""
    lease = _decode_lease(body)
    spec = lease.spec or _Spec()
    return Record(
        lease.metadata.resource_version,
        spec.holder_identity or "",
        spec.renew_time or "",
        spec.lease_duration_seconds or 0,
        spec.lease_transitions or 0,
    )
