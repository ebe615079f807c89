"""The bodies that election writes to its Lease, as client-go v0.36.3 writes them, but as merge patches with a resourceVersion.

leaseTransitions is counted up by whoever takes over, also after a release; acquireTime moves with it. `stamp` is MicroTime with exactly
six digits (the API server answers 400 to any other).
"""

from __future__ import annotations

import datetime
from typing import Any, Final

from loopwatch.election.derive import Step
from loopwatch.election.record import Record
from loopwatch.kube.resources import LEASES, ObjectKey
from loopwatch.microtime import render_micro

Body = dict[str, Any]

MOST_TRANSITIONS: Final = 2**31 - 1
"""leaseTransitions is an int32; one more would be refused, for ever."""
RELEASED_SECONDS: Final = 1
"""Upstream's duration of a Lease that nobody holds; 0 is refused (422)."""
_INSTANT: Final = datetime.timedelta(microseconds=1)


def stamp(now: datetime.datetime, record: Record | None) -> str:
    """The renewTime to write. A clock that stands still would make a patch that changes nothing, and so renews nothing: it differs."""
    text = render_micro(now)
    return render_micro(now + _INSTANT) if record and text == record.renew_time else text


def creation(key: ObjectKey, identity: str, duration_seconds: int, stamp: str) -> Body:
    """A Lease that is not there yet."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": duration_seconds,
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": 0,
        },
    }


def patch(step: Step, record: Record, identity: str, duration_seconds: int, stamp: str) -> Body:
    """A TAKE, RENEW or RELEASE of this very version. ValueError for a step that patches nothing."""
    if step is Step.TAKE:
        spec = {
            "holderIdentity": identity,
            "leaseDurationSeconds": duration_seconds,
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": min(record.transitions + 1, MOST_TRANSITIONS),
        }
    elif step is Step.RENEW:
        spec = {"renewTime": stamp}
        if record.duration_seconds != duration_seconds:
            spec["leaseDurationSeconds"] = duration_seconds
    elif step is Step.RELEASE:
        spec = {"holderIdentity": "", "leaseDurationSeconds": RELEASED_SECONDS, "acquireTime": stamp, "renewTime": stamp}
    else:
        raise ValueError(f"{step} patches no Lease: TAKE, RENEW and RELEASE do")
    return {"metadata": {"resourceVersion": record.version}, "spec": spec}
