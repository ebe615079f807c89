"""The few fields of MachinePools and Leases that this room uses, as frozen structs decoded straight from JSON.

Everything else in an object is skipped unread. A field of the wrong type makes the object undecodable, and costs that object alone.
Field names are the API's (compute.ironcore.dev/v1alpha1, coordination.k8s.io/v1); absent and null mean the same.
"""

from __future__ import annotations

from typing import Literal

import msgspec

READY = "Ready"
"""The only condition type of a MachinePool that IronCore writes."""

HEARTBEAT_RECEIVED = "HeartbeatReceived"
RUNTIME_UNREACHABLE = "RuntimeUnreachable"
STATUS_UNKNOWN = "MachinePoolStatusUnknown"
PROBE_SUCCEEDED_MESSAGE = "machine runtime status probe succeeded"
STATUS_UNKNOWN_MESSAGE = "machinepoollet stopped posting machine pool status."

HOLDER_ANNOTATION = "loopwatch/holder"
"""On a Lease: the holderIdentity of the sidecar that took it over last. A holder it does not name is a machinepoollet."""

ReadyStatus = Literal["true", "false", "unknown", "absent"]
READY_STATUSES: tuple[ReadyStatus, ...] = ("true", "false", "unknown", "absent")
POOL_STATES = ("Ready", "Pending", "Error", "Offline")


class Struct(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base: read-only, camelCase in JSON, unknown to the cycle collector since it holds no cycles."""


class Metadata(Struct, frozen=True):
    """What of ObjectMeta matters here."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    annotations: dict[str, str] | None = None


class Condition(Struct, frozen=True):
    """A MachinePoolCondition; its times are never read: only differences of what is seen count."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class MachinePoolSpec(Struct, frozen=True):
    """The pool's identity at its provider."""

    provider_id: str = msgspec.field(default="", name="providerID")


class MachinePoolStatus(Struct, frozen=True):
    """State (which nobody ever sets to anything but Ready) and conditions."""

    state: str | None = None
    conditions: tuple[Condition, ...] | None = None


class MachinePool(Struct, frozen=True):
    """A MachinePool, cluster-scoped."""

    metadata: Metadata
    spec: MachinePoolSpec | None = None
    status: MachinePoolStatus | None = None

    @property
    def ready(self) -> Condition | None:
        """The Ready condition; the first where a list holds two, as upstream's find does."""
        if self.status is None or self.status.conditions is None:
            return None
        return next((condition for condition in self.status.conditions if condition.type == READY), None)


class LeaseSpec(Struct, frozen=True):
    """Who renewed when: both only ever compared for difference."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(Struct, frozen=True):
    """A Lease in ironcore-machinepool-lease, named after its pool."""

    metadata: Metadata
    spec: LeaseSpec | None = None

    @property
    def holder(self) -> str:
        """The holderIdentity, empty where there is none."""
        return (self.spec and self.spec.holder_identity) or ""

    @property
    def renew_time(self) -> str | None:
        """The renewTime as written."""
        return self.spec.renew_time if self.spec else None

    @property
    def duration_seconds(self) -> int | None:
        """The published leaseDurationSeconds."""
        return self.spec.lease_duration_seconds if self.spec else None


def ready_status(condition: Condition | None) -> ReadyStatus:
    """The status as the metrics name it; anything but True and False is unknown, as corev1.ConditionStatus has no fourth."""
    if condition is None:
        return "absent"
    if condition.status == "True":
        return "true"
    return "false" if condition.status == "False" else "unknown"


decode_machine_pool = msgspec.json.Decoder(MachinePool).decode
decode_lease = msgspec.json.Decoder(Lease).decode
