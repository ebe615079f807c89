"""Pools and Leases for tests, with only what a test names differing from a healthy pool of IronCore v0.5.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from loopwatch.pools.model import Lease, MachinePool, decode_lease, decode_machine_pool

FIRST_RENEWAL = "2026-05-01T13:18:48.065888Z"


def ready_condition(status: str = "True", reason: str = "HeartbeatReceived", observed_generation: int = 1, **more: Any) -> dict[str, Any]:
    """A Ready condition as a machinepoollet writes it."""
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": "machine runtime status probe succeeded",
        "observedGeneration": observed_generation,
        "lastUpdateTime": "2026-05-01T13:18:48Z",
        "lastTransitionTime": "2026-05-01T13:18:48Z",
        **more,
    }


def raw_pool(
    name: str = "pool-a",
    *conditions: dict[str, Any],
    uid: str = "uid-1",
    generation: int = 1,
    taints: Sequence[Mapping[str, str]] = (),
    **status: Any,
) -> dict[str, Any]:
    """A MachinePool as the API shows it."""
    return {
        "apiVersion": "compute.ironcore.dev/v1alpha1",
        "kind": "MachinePool",
        "metadata": {"name": name, "uid": uid, "generation": generation, "resourceVersion": "1"},
        "spec": {"providerID": f"ironcore://{name}", **({"taints": list(taints)} if taints else {})},
        "status": {"state": "Ready", **({"conditions": list(conditions)} if conditions else {}), **status},
    }


def pool(name: str = "pool-a", *conditions: dict[str, Any], **more: Any) -> MachinePool:
    """The same, decoded as the reflector does."""
    return decode_machine_pool(msgspec.json.encode(raw_pool(name, *conditions, **more)))


def raw_lease(
    name: str = "pool-a", *, renew_time: str | None = FIRST_RENEWAL, holder: str | None = "", duration: int | None = 40, **annotations: str
) -> dict[str, Any]:
    """A Lease as a machinepoollet keeps it; without a holder it is `<pool>_1`, None leaves a field out."""
    spec = {"holderIdentity": f"{name}_1" if holder == "" else holder, "leaseDurationSeconds": duration, "renewTime": renew_time}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "ironcore-machinepool-lease", "resourceVersion": "1", "annotations": annotations or None},
        "spec": {field: value for field, value in spec.items() if value is not None},
    }


def lease(name: str = "pool-a", **more: Any) -> Lease:
    """The same, decoded as the reflector does."""
    return decode_lease(msgspec.json.encode(raw_lease(name, **more)))


def raw_machine(
    name: str = "machine-1",
    pool: str | None = "pool-a",
    *,
    state: str | None = "Running",
    machine_class: str = "small",
    uid: str = "",
    **metadata: Any,
) -> dict[str, Any]:
    """A Machine as the API shows it; None leaves out the pool, or the state."""
    spec = {"machineClassRef": {"name": machine_class}, **({"machinePoolRef": {"name": pool}} if pool else {})}
    return {
        "apiVersion": "compute.ironcore.dev/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-of-{name}", **metadata},
        "spec": {"power": "On", "image": "example.com/image:1", **spec},
        "status": {"conditions": [], **({"state": state} if state else {})},
    }


def renewal(number: int) -> str:
    """The renewTime of the number-th heartbeat, ten seconds apart."""
    minutes, seconds = divmod(10 * number, 60)
    hours, minutes = divmod(minutes, 60)
    return f"2026-05-01T{hours % 24:02}:{minutes:02}:{seconds:02}.000000Z"
