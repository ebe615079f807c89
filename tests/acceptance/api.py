"""What a person with kubectl does in the acceptance cases: create, patch, delete, and look on by a watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loopwatch.clock import Clock
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_CLASSES, MACHINE_POOLS, MACHINES, NAMESPACES, ObjectKey, Resource
from loopwatch.kube.transport import Request, Timeout, Transport, TransportError

PATIENT = Timeout(connect=10, read=10, total=10)
WATCHING = Timeout(connect=10, read=120, total=None)
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
MACHINES_NAMESPACE = "default"
NAMESPACE_OF = {LEASES: LEASE_NAMESPACE, MACHINES: MACHINES_NAMESPACE}


@dataclass(frozen=True, slots=True)
class Seen:
    """One state of a pool that the watch showed, and when it arrived (the world's clock)."""

    at: float
    type: str
    ready: str
    reason: str
    resource_version: str


class Kubectl:
    """An administrator's hands and eyes. `history` holds every state of each pool since `look_on` began."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        self._moved = asyncio.Condition()
        self._open: set[Resource] = set()
        self.history: dict[str, list[Seen]] = {}
        self.pools: dict[str, dict[str, Any]] = {}
        self.leases: dict[str, dict[str, Any]] = {}

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, expect: tuple[int, ...] = (200, 201)) -> Any:
        """One request; the decoded answer, or an AssertionError with all of it."""
        headers = {} if body is None else MERGE if method == "PATCH" else JSON
        request = Request(method, path, headers=headers, body=None if body is None else json.dumps(body).encode())
        async with self._transport.send(request, PATIENT) as response:
            answer = await response.read()
            assert response.status in expect, f"{method} {path}: {response.status} {answer!r}"
            return json.loads(answer)

    async def create_pool(self, name: str, *conditions: Mapping[str, Any]) -> dict[str, Any]:
        """A MachinePool, with these conditions in its status."""
        manifest = {
            "apiVersion": MACHINE_POOLS.api_version,
            "kind": "MachinePool",
            "metadata": {"name": name},
            "spec": {"providerID": name},
        }
        made: dict[str, Any] = await self.send("POST", MACHINE_POOLS.collection_path(), manifest)
        return await self.set_conditions(name, *conditions) if conditions else made

    async def set_conditions(self, name: str, *conditions: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the pool's whole list, as any writer of it must."""
        path = MACHINE_POOLS.object_path(ObjectKey("", name), "status")
        patched: dict[str, Any] = await self.send("PATCH", path, {"status": {"conditions": list(conditions)}})
        return patched

    async def create_lease(self, name: str, renew_time: str | None, *, duration: int = 40, holder: str | None = None) -> None:
        """The pool's Lease as somebody else holds it."""
        spec: dict[str, Any] = {"holderIdentity": holder or f"{name}_by-hand", "leaseDurationSeconds": duration}
        if renew_time is not None:
            spec["renewTime"] = renew_time
        metadata = {"name": name, "namespace": LEASE_NAMESPACE}
        await self.send(
            "POST",
            LEASES.collection_path(LEASE_NAMESPACE),
            {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": spec},
        )

    async def renew(self, name: str, renew_time: str, **spec: Any) -> None:
        """Write a renewTime, whatever was there."""
        await self.send("PATCH", LEASES.object_path(ObjectKey(LEASE_NAMESPACE, name)), {"spec": {"renewTime": renew_time, **spec}})

    async def create_machine_class(self, name: str) -> None:
        """A MachineClass; one that is there already is as good."""
        body = {"apiVersion": MACHINE_CLASSES.api_version, "kind": "MachineClass", "metadata": {"name": name}, "capabilities": {"cpu": "1"}}
        await self.send("POST", MACHINE_CLASSES.collection_path(), body, expect=(201, 409))

    async def create_machine(self, name: str, pool: str | None, *, machine_class: str = "small") -> None:
        """A Machine bound to this pool, or to none; nobody has written a state of it yet."""
        spec = {"machineClassRef": {"name": machine_class}, **({"machinePoolRef": {"name": pool}} if pool else {})}
        metadata = {"name": name, "namespace": MACHINES_NAMESPACE}
        body = {"apiVersion": MACHINES.api_version, "kind": "Machine", "metadata": metadata, "spec": spec}
        await self.send("POST", MACHINES.collection_path(MACHINES_NAMESPACE), body)

    async def bind_machine(self, name: str, pool: str) -> None:
        """What the scheduler does."""
        await self.send("PATCH", MACHINES.object_path(ObjectKey(MACHINES_NAMESPACE, name)), {"spec": {"machinePoolRef": {"name": pool}}})

    async def set_machine_state(self, name: str, state: str) -> None:
        """What the machinepoollet reports."""
        await self.send("PATCH", MACHINES.object_path(ObjectKey(MACHINES_NAMESPACE, name), "status"), {"status": {"state": state}})

    async def delete(self, resource: Resource, name: str) -> None:
        """Delete one object; one that is gone already is as good."""
        key = ObjectKey(NAMESPACE_OF.get(resource, ""), name)
        await self.send("DELETE", resource.object_path(key), expect=(200, 202, 404))

    async def get(self, resource: Resource, name: str) -> dict[str, Any]:
        """One object as it stands."""
        key = ObjectKey(NAMESPACE_OF.get(resource, ""), name)
        found: dict[str, Any] = await self.send("GET", resource.object_path(key))
        return found

    async def ensure_namespaces(self) -> None:
        """Those of the Leases and of the Machines."""
        for name in NAMESPACE_OF.values():
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.send("POST", NAMESPACES.collection_path(), body, expect=(201, 409))

    async def clear(self) -> None:
        """Delete every pool, Lease, Machine and MachineClass, and forget what was seen."""
        for resource in (MACHINE_POOLS, LEASES, MACHINES, MACHINE_CLASSES):
            await self.send("DELETE", resource.collection_path(NAMESPACE_OF.get(resource, "")))
        self.history.clear()
        self.pools.clear()
        self.leases.clear()

    def ready(self, name: str) -> str:
        """Status of the pool's Ready as last seen; empty where there is none, or no such pool."""
        return self.history[name][-1].ready if self.history.get(name) else ""

    def transitions(self, name: str) -> list[str]:
        """The statuses of Ready in the order seen, repetitions left out."""
        statuses = [seen.ready for seen in self.history.get(name, ())]
        return [status for number, status in enumerate(statuses) if number == 0 or status != statuses[number - 1]]

    async def when(self, happened: Callable[[], bool], within_seconds: float) -> float:
        """Wait for something that a watch shows; the moment it was seen, or TimeoutError."""
        async with asyncio.timeout(within_seconds), self._moved:
            await self._moved.wait_for(happened)
        return self._clock.monotonic()

    async def eyes_open(self) -> None:
        """Wait until both watches of `look_on` are open: from then on nothing is missed."""
        async with asyncio.timeout(10), self._moved:
            await self._moved.wait_for(lambda: len(self._open) == 2)

    async def look_on(self) -> None:
        """Watch pools and Leases until cancelled."""
        async with asyncio.TaskGroup() as watches:
            watches.create_task(self._watch(MACHINE_POOLS, "", self._saw_pool))
            watches.create_task(self._watch(LEASES, LEASE_NAMESPACE, self._saw_lease))

    async def _watch(self, resource: Resource, namespace: str, saw: Callable[[str, dict[str, Any]], None]) -> None:
        path, version = resource.collection_path(namespace), ""
        while True:
            query = (("watch", "1"), ("timeoutSeconds", "300"), *((("resourceVersion", version),) if version else ()))
            rest = b""
            try:
                async with self._transport.send(Request("GET", path, query=query), WATCHING) as response:
                    await self._opened(resource)
                    async for chunk in response.chunks():
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in lines:
                            event = json.loads(line)
                            version = event["object"]["metadata"]["resourceVersion"]
                            async with self._moved:
                                saw(event["type"], event["object"])
                                self._moved.notify_all()
            except TransportError:  # a fault that the case itself asked for; the eyes look again from where they were
                await self._clock.sleep(0.05)

    async def _opened(self, resource: Resource) -> None:
        async with self._moved:
            self._open.add(resource)
            self._moved.notify_all()

    def _saw_pool(self, event: str, pool: dict[str, Any]) -> None:
        name, conditions = pool["metadata"]["name"], pool.get("status", {}).get("conditions", [])
        ready: dict[str, Any] = next((entry for entry in conditions if entry["type"] == "Ready"), {})
        if event == "DELETED":
            self.pools.pop(name, None)
        else:
            self.pools[name] = pool
        seen = Seen(self._clock.monotonic(), event, ready.get("status", ""), ready.get("reason", ""), pool["metadata"]["resourceVersion"])
        self.history.setdefault(name, []).append(seen)

    def _saw_lease(self, event: str, lease: dict[str, Any]) -> None:
        name = lease["metadata"]["name"]
        if event == "DELETED":
            self.leases.pop(name, None)
        else:
            self.leases[name] = lease
