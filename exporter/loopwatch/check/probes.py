"""Looks at the cluster and at the machine runtime: reads, and reviews of one's own rights. It judges nothing and writes nothing."""

from __future__ import annotations

import asyncio
import email.utils
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from loopwatch.check.facts import Facts, ManagerLease, Objects, RightAnswer, Trouble
from loopwatch.clock import Clock
from loopwatch.iri.probe import RuntimeProbe
from loopwatch.kube.errors import ApiError, Call
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, NAMESPACES, ObjectKey, Resource
from loopwatch.kube.review import Reviewer
from loopwatch.kube.transport import Request, Timeout, Transport, TransportError
from loopwatch.pools.derive.instants import same_instant
from loopwatch.pools.model import Lease, decode_lease, decode_machine_pool
from loopwatch.rbac.model import Right, Room, Scope
from loopwatch.rbac.names import Names
from loopwatch.text import clean_message

T = TypeVar("T")
MANAGER_LEASE: Final = ObjectKey("ironcore-system", "d0ae00be.ironcore.dev")
"""By which ironcore-controller-manager elects, with the manifests of IronCore v0.5.0."""
REQUEST_SECONDS: Final = 10.0
RUNTIME_SECONDS: Final = 5.0
"""As --heartbeat-status-timeout by default."""
PAGE_LIMIT: Final = 500
_EXPIRED: Final = 410
_NOT_FOUND: Final = 404
_LISTS: Final = 3


class Clusters(NamedTuple):
    """Where pools are, where Leases are, and where the process itself would run. They may all be one."""

    pools: Transport
    leases: Transport
    own: Transport


class Wanted(NamedTuple):
    """What to look for: all pools, or the one named; the rights; for how long; the runtime, where one is to be asked."""

    rights: Sequence[Right]
    names: Names
    pool: str
    watch_seconds: float
    runtime: RuntimeProbe | None
    runtime_wanted: bool


class _Plain(NamedTuple):
    status: int
    body: bytes
    date: str


class _Version(msgspec.Struct):
    gitVersion: str = ""  # noqa: N815 - the API's name


class _GroupVersion(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    versions: tuple[_GroupVersion, ...] = ()


class Probes:
    """One look; `look` takes `watch_seconds` and a moment."""

    def __init__(self, clusters: Clusters, clock: Clock, wanted: Wanted) -> None:
        self._clusters, self._clock, self._wanted = clusters, clock, wanted
        self._pools = Reader(clusters.pools, clock, timeout_seconds=REQUEST_SECONDS)
        self._leases = Reader(clusters.leases, clock, timeout_seconds=REQUEST_SECONDS)

    async def look(self) -> Facts:
        """Everything that can be seen."""
        sent = self._clock.utcnow()
        try:
            version = await self._get("/version")
        except TransportError as error:
            return Facts(api_error=clean_message(str(error)))
        name = _decoded(version.body, _Version()).gitVersion
        if version.status != 200 or not name:
            return Facts(api_error=f"GET /version: {version.status} {clean_message(version.body[:200].decode(errors='replace'))}")
        middle = sent + (self._clock.utcnow() - sent) / 2
        trouble, versions = await self._group()
        before, manager_before = await self._objects(), await self._manager_lease()
        began = self._clock.monotonic()
        rights = tuple([await self._right(right) for right in self._wanted.rights])
        exists = await self._namespace_exists()
        runtime = await self._wanted.runtime.status(RUNTIME_SECONDS) if self._wanted.runtime else None
        await self._clock.sleep(self._wanted.watch_seconds - (self._clock.monotonic() - began))
        watched = self._clock.monotonic() - began
        after, manager = await self._objects(), await self._manager_lease()
        return Facts(
            api_version=clean_message(name, 64),
            skew_seconds=_skew(version.date, middle),
            group_trouble=trouble,
            group_versions=versions,
            namespace_exists=exists,
            rights=rights,
            before=before,
            after=after,
            watched_seconds=watched,
            manager_lease=None if manager is None else ManagerLease(manager.holder, _moved(manager_before, manager)),
            runtime=runtime,
            runtime_wanted=self._wanted.runtime_wanted,
        )

    async def _get(self, path: str) -> _Plain:
        """A document of the API server's own, with its Date."""
        timeout = Timeout(REQUEST_SECONDS, REQUEST_SECONDS, REQUEST_SECONDS)
        request = Request("GET", path, headers={"Accept": "application/json"})
        for attempt in (1, 2):
            async with self._clusters.pools.send(request, timeout) as response:
                answer = _Plain(response.status, await response.read(), response.headers.get("Date", ""))
            if answer.status != 401 or attempt == 2:
                break
            await self._clusters.pools.renew_credentials()
        return answer

    async def _group(self) -> tuple[Trouble | None, tuple[str, ...]]:
        try:
            answer = await self._get(f"/apis/{MACHINE_POOLS.group}")
        except TransportError as error:
            return Trouble(0, clean_message(str(error))), ()
        if answer.status != 200:
            return Trouble(answer.status, clean_message(answer.body[:200].decode(errors="replace"))), ()
        return None, tuple(each.version for each in _decoded(answer.body, _Group()).versions)

    async def _namespace_exists(self) -> bool | None:
        try:
            await self._leases.get(NAMESPACES, ObjectKey("", LEASE_NAMESPACE))
        except ApiError as error:
            return False if error.status == _NOT_FOUND else None
        except TransportError:
            return None
        return True

    async def _manager_lease(self) -> Lease | None:
        try:
            return decode_lease(await self._pools.get(LEASES, MANAGER_LEASE))
        except (ApiError, TransportError, msgspec.DecodeError):
            return None  # it is one sign of several: who may not see it is told by the others

    async def _right(self, right: Right) -> RightAnswer:
        names = self._wanted.names
        namespace = names.of_namespace(right.scope)
        reviewer = Reviewer(self._cluster_of(right), self._clock, timeout_seconds=REQUEST_SECONDS)
        try:
            if right.resource is None:
                allowed = all([await reviewer.may_i_get(path) for path in right.paths])
            else:
                key = ObjectKey(namespace, names.of_object(right.named))
                allowed = await reviewer.may_i(Call.on(right.verb, right.resource, key, right.subresource))
        except (ApiError, TransportError) as error:
            return RightAnswer(right, None, namespace, clean_message(str(error)))
        return RightAnswer(right, allowed, namespace)

    def _cluster_of(self, right: Right) -> Transport:
        if right.scope is Scope.LEASES or right.resource is NAMESPACES:
            return self._clusters.leases
        return self._clusters.own if right.room in {Room.ELECTION, Room.LISTEN} else self._clusters.pools

    async def _objects(self) -> Objects:
        pools, broken_pools, pools_trouble = await self._list(self._pools, MACHINE_POOLS, "", decode_machine_pool)
        leases, broken_leases, leases_trouble = await self._list(self._leases, LEASES, LEASE_NAMESPACE, decode_lease)
        broken = (*((MACHINE_POOLS.plural, name) for name in broken_pools), *((LEASES.plural, name) for name in broken_leases))
        return Objects(pools, leases, broken, pools_trouble, leases_trouble)

    async def _list(
        self, reader: Reader, resource: Resource, namespace: str, decode: Callable[[msgspec.Raw], T]
    ) -> tuple[dict[str, T], list[str], Trouble | None]:
        selector = f"metadata.name={self._wanted.pool}" if self._wanted.pool else ""
        try:
            raw = await _all_items(reader, resource, namespace, selector)
        except ApiError as error:
            return {}, [], Trouble(error.status, str(error))
        except TransportError as error:
            return {}, [], Trouble(0, clean_message(str(error)))
        decoded: dict[str, T] = {}
        broken: list[str] = []
        for item in raw:
            name = _name_of(item)
            try:
                decoded[name] = decode(item)
            except msgspec.DecodeError:
                broken.append(name)
        return decoded, broken, None


async def _all_items(reader: Reader, resource: Resource, namespace: str, selector: str) -> list[msgspec.Raw]:
    for attempt in range(1, _LISTS + 1):
        items: list[msgspec.Raw] = []
        token = ""
        try:
            while True:
                page = await reader.list_page(
                    resource, namespace=namespace, field_selector=selector, limit=PAGE_LIMIT, continue_token=token
                )
                items += page.items
                token = page.continue_token
                if not token:
                    return items
                await asyncio.sleep(0)
        except ApiError as error:
            if error.status != _EXPIRED or attempt == _LISTS:
                raise
    return []


class _Named(msgspec.Struct):
    name: Any = ""


class _Object(msgspec.Struct):
    metadata: _Named


def _name_of(item: msgspec.Raw) -> str:
    try:
        return str(msgspec.json.decode(item, type=_Object).metadata.name)
    except msgspec.DecodeError:
        return "?"


def _decoded(body: bytes, otherwise: T) -> T:
    try:
        return msgspec.json.decode(body, type=type(otherwise))
    except (msgspec.DecodeError, RecursionError):
        return otherwise


def _moved(before: Lease | None, after: Lease) -> bool:
    return before is not None and not same_instant(before.renew_time, after.renew_time)


def _skew(date: str, here: Any) -> float | None:  # noqa: ANN401 - a datetime
    try:
        there = email.utils.parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None
    return (there - here).total_seconds() if there.tzinfo is not None else None
