"""An administrator's hands: they make, change, break and delete objects past every fault. What begins gives its end."""

from __future__ import annotations

from typing import Any, Literal

from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey, Resource
from tests.faults.ground import Api, Conflict, Document, End
from tests.faults.journal import Journal

TRIES = 10


class Hands:
    """Of one API server."""

    def __init__(self, api: Api, journal: Journal) -> None:
        self._api, self._journal = api, journal

    def put_pool(self, pool: str) -> None:
        """The MachinePool; nothing where it exists."""
        if self._pool(pool) is None:
            self._api.create(MACHINE_POOLS, {"metadata": {"name": pool}, "spec": {"providerID": f"sandbox://{pool}"}})

    def delete_pool(self, pool: str) -> End:
        """It is made again at the end."""
        self._api.delete(MACHINE_POOLS, ObjectKey("", pool))
        return lambda: self.put_pool(pool)

    def delete_lease(self, pool: str) -> None:
        """Whoever reports makes it again."""
        self._api.delete(LEASES, ObjectKey(LEASE_NAMESPACE, pool))

    def add_condition(self, pool: str, condition_type: str) -> End:
        """A condition of another type, taken out at the end."""
        entry = {"type": condition_type, "status": "True", "reason": "Foreign", "message": f"set by hand at {self._journal.now:.3f}"}
        self._set_condition(pool, condition_type, [entry])
        return lambda: self._set_condition(pool, condition_type, [])

    def change_spec(self, pool: str) -> None:
        """A taint comes, or goes."""
        found = self._whole_pool(pool)
        if found is not None:
            taints = [] if found["spec"].get("taints") else [{"key": "maintenance", "effect": "NoSchedule"}]
            self._api.patch(MACHINE_POOLS, ObjectKey("", pool), {"spec": {"taints": taints}})

    def break_object(self, pool: str, of: Literal["pool", "lease"]) -> End:
        """A field gets a type that it can't have (a schema that was changed); it is mended at the end, where nobody did so before."""
        resource, key = (MACHINE_POOLS, ObjectKey("", pool)) if of == "pool" else (LEASES, ObjectKey(LEASE_NAMESPACE, pool))
        found = self._api.read(resource, key)
        if found is None:
            return lambda: None
        part, field, broken = ("metadata", "generation", "one") if of == "pool" else ("spec", "renewTime", 1)
        whole = found[part].get(field)
        self._inject(resource, found, part, field, broken)

        def mend() -> None:
            now = self._api.read(resource, key)
            if now is not None and now[part].get(field) == broken:
                self._inject(resource, now, part, field, whole)

        return mend

    def _inject(self, resource: Resource, body: Document, part: str, field: str, value: object) -> None:
        self._api.inject(resource, {**body, part: {**body[part], field: value}})

    def _set_condition(self, pool: str, condition_type: str, entries: list[dict[str, Any]]) -> None:
        """As any writer of the list must: read, replace one entry, write all with the version that was read."""
        for _ in range(TRIES):
            found = self._whole_pool(pool)
            if found is None:
                return
            before = (found.get("status") or {}).get("conditions") or []
            conditions = [*entries, *(each for each in before if each["type"] != condition_type)]
            body = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "status": {"conditions": conditions}}
            try:
                self._api.patch(MACHINE_POOLS, ObjectKey("", pool), body, "status")
            except Conflict:
                continue
            return

    def _pool(self, pool: str) -> Document | None:
        return self._api.read(MACHINE_POOLS, ObjectKey("", pool))

    def _whole_pool(self, pool: str) -> Document | None:
        """A pool that can be written: one that is broken can't."""
        found = self._pool(pool)
        return found if found and isinstance(found["metadata"].get("generation"), int) else None
