"""The three bodies that a heartbeat writes to its lease, as upstream's machinepoollet writes them.

No labels, no ownerReferences, leaseTransitions never touched (facts of IronCore v0.5.0). Two things are ours: patches carry the
resourceVersion they were decided on, and whoever takes a lease names itself in the annotation `loopwatch/holder`, by which other sidecars
tell it from a machinepoollet. `now` is MicroTime with exactly six digits.
"""

from __future__ import annotations

from typing import Any

from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES
from loopwatch.pools.model import HOLDER_ANNOTATION, Lease

Body = dict[str, Any]


def creation(pool: str, identity: str, duration_seconds: int, now: str) -> Body:
    """A lease that does not exist yet."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": pool, "namespace": LEASE_NAMESPACE, "annotations": {HOLDER_ANNOTATION: identity}},
        "spec": {"holderIdentity": identity, "leaseDurationSeconds": duration_seconds, "acquireTime": now, "renewTime": now},
    }


def takeover(lease: Lease, identity: str, duration_seconds: int, now: str) -> Body:
    """Another holder's lease becomes ours."""
    return {
        "metadata": {"resourceVersion": lease.metadata.resource_version, "annotations": {HOLDER_ANNOTATION: identity}},
        "spec": {"holderIdentity": identity, "leaseDurationSeconds": duration_seconds, "acquireTime": now, "renewTime": now},
    }


def renewal(lease: Lease, identity: str, duration_seconds: int, now: str) -> Body:
    """Our own lease, once more; duration and annotation only where somebody changed them."""
    metadata: Body = {"resourceVersion": lease.metadata.resource_version}
    spec: Body = {"renewTime": now}
    if (lease.metadata.annotations or {}).get(HOLDER_ANNOTATION) != identity:
        metadata["annotations"] = {HOLDER_ANNOTATION: identity}
    if lease.duration_seconds != duration_seconds:
        spec["leaseDurationSeconds"] = duration_seconds
    return {"metadata": metadata, "spec": spec}
