"""The few fields of MachinePools and Leases that this room uses, as frozen structs decoded straight from JSON.

Everything else in an object is skipped unread. A field of the wrong type makes the object undecodable, and costs that object alone.
Field names are the API's (compute.ironcore.dev/v1alpha1, coordination.k8s.io/v1); absent and null mean the same.
"""

from __future__ import annotations

from typing import Any, Literal

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
LIFECYCLE_MANAGER = "loopwatch-controller"
"""The name under which our own lifecycle writes; another's on Unknown means that a second one is at work."""

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


class Taint(Struct, frozen=True):
    """Keeps Machines away that don't tolerate it; IronCore's own effects are NoSchedule and NoExecute."""

    key: str = ""
    effect: str = ""


class MachinePoolSpec(Struct, frozen=True):
    """The pool's identity at its provider, and its taints."""

    provider_id: str = msgspec.field(default="", name="providerID")
    taints: tuple[Taint, ...] | None = None


Quantities = dict[str, int | float | str | None]
"""Quantities by resource name, as the API writes them: see loopwatch.quantities."""


class MachinePoolStatus(Struct, frozen=True):
    """State (which nobody ever sets to anything but Ready), conditions, and how many Machines of each class the pool holds."""

    state: str | None = None
    conditions: tuple[Condition, ...] | None = None
    capacity: Quantities | None = None
    allocatable: Quantities | None = None


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


class _StatusFields(Struct, frozen=True):
    conditions: Any = msgspec.field(default=None, name="f:conditions")


class _Fields(Struct, frozen=True):
    status: _StatusFields | None = msgspec.field(default=None, name="f:status")


class ManagedFields(Struct, frozen=True):
    """A writer, and which fields of the status are its own (https://kubernetes.io/docs/reference/using-api/server-side-apply/)."""

    manager: str = ""
    fields_v1: _Fields | None = msgspec.field(default=None, name="fieldsV1")

    @property
    def owns_conditions(self) -> bool:
        """True for whoever wrote the conditions list last: it is atomic, so it has one owner."""
        return self.fields_v1 is not None and self.fields_v1.status is not None and self.fields_v1.status.conditions is not None


class UnknownMetadata(Metadata, frozen=True):
    """ObjectMeta with the writers."""

    managed_fields: tuple[ManagedFields, ...] | None = None


class UnknownMachinePool(MachinePool, frozen=True):
    """A pool whose Ready is Unknown as a lifecycle controller writes it: the only one whose writers matter, and that has them."""

    metadata: UnknownMetadata

    @property
    def condition_writers(self) -> tuple[str, ...]:
        """The managers that own the conditions list; nobody where the API server does not say."""
        return tuple(entry.manager for entry in self.metadata.managed_fields or () if entry.owns_conditions and entry.manager)


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


def is_lifecycle_unknown(condition: Condition | None) -> bool:
    """True for Unknown with the reason that lifecycle controllers give."""
    return condition is not None and ready_status(condition) == "unknown" and condition.reason == STATUS_UNKNOWN


def decode_machine_pool(raw: bytes | msgspec.Raw) -> MachinePool:
    """A pool from its JSON, an UnknownMachinePool where Ready is a lifecycle's Unknown; msgspec.DecodeError.

    managedFields are half of an object's bytes and its deepest part: they are read for those pools alone, and where they can't be, the
    pool is as good without them.
    """
    pool = _decode_machine_pool(raw)
    if not is_lifecycle_unknown(pool.ready):
        return pool
    try:
        return _decode_unknown_machine_pool(raw)
    except msgspec.DecodeError:
        return pool


_decode_machine_pool = msgspec.json.Decoder(MachinePool).decode
_decode_unknown_machine_pool = msgspec.json.Decoder(UnknownMachinePool).decode
decode_lease = msgspec.json.Decoder(Lease).decode
