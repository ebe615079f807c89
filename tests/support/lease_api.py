"""An API server for Leases alone, and a network to it that can do everything a network can.

The server is one synchronous call per request, so that a test says at which moment each takes effect; its answers are those of
kube-apiserver 1.36 for what election asks. The network gives each request a `Fate`: how long it travels, what becomes of the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from loopwatch.kube.transport import Request, Timeout, TransportError
from tests.support.processes import Process, World

_PATH = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
Lease = dict[str, Any]


class LeaseApi:
    """Leases by namespace and name, in the namespaces that exist. `effects` holds each write that took effect: method and object."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = set(namespaces)
        self.leases: dict[tuple[str, str], Lease] = {}
        self.effects: list[tuple[str, Lease]] = []
        self._version = 100

    def handle(self, request: Request) -> tuple[int, bytes]:
        """Status and body; what is written has taken effect on return."""
        match = _PATH.fullmatch(request.path)
        if match is None:
            return self._failure(404, "NotFound", "the server could not find the requested resource")
        namespace, name = match.group(1, 2)
        if request.method == "POST" and name is None:
            return self._create(namespace, msgspec.json.decode(request.body or b""))
        lease = self.leases.get((namespace, name or ""))
        if lease is None:
            return self._failure(404, "NotFound", f'leases.coordination.k8s.io "{name}" not found')
        if request.method == "GET":
            return 200, msgspec.json.encode(lease)
        assert request.method == "PATCH", request.method
        assert request.headers["Content-Type"] == "application/merge-patch+json"
        return self._patch(lease, msgspec.json.decode(request.body or b""))

    def touch(self, namespace: str, name: str) -> None:
        """Somebody else changes an annotation: a new version, and a conflict for whoever remembers the old one."""
        if lease := self.leases.get((namespace, name)):
            lease["metadata"]["resourceVersion"] = self._next_version()

    def _create(self, namespace: str, lease: Lease) -> tuple[int, bytes]:
        if namespace not in self.namespaces:
            return self._failure(404, "NotFound", f'namespaces "{namespace}" not found')
        key = (namespace, lease["metadata"]["name"])
        if key in self.leases:
            return self._failure(409, "AlreadyExists", f'leases.coordination.k8s.io "{key[1]}" already exists')
        return self._store("POST", key, lease, 201)

    def _patch(self, lease: Lease, patch: Mapping[str, Any]) -> tuple[int, bytes]:
        metadata = lease["metadata"]
        expected = patch.get("metadata", {}).get("resourceVersion", metadata["resourceVersion"])
        if expected != metadata["resourceVersion"]:
            message = "the object has been modified; please apply your changes to the latest version and try again"
            return self._failure(409, "Conflict", message)
        changed = {**lease, "spec": {field: value for field, value in {**lease["spec"], **patch["spec"]}.items() if value is not None}}
        if changed["spec"] == lease["spec"]:
            return 200, msgspec.json.encode(lease)  # a patch that changes nothing makes no new version
        return self._store("PATCH", (metadata["namespace"], metadata["name"]), changed, 200)

    def _store(self, method: str, key: tuple[str, str], lease: Lease, status: int) -> tuple[int, bytes]:
        spec = lease["spec"]
        if not all(_MICRO_TIME.fullmatch(spec[field]) for field in ("acquireTime", "renewTime")):
            return self._failure(400, "BadRequest", "parsing time: MicroTime has six digits")
        if spec["leaseDurationSeconds"] <= 0 or not 0 <= spec["leaseTransitions"] < 2**31:
            return self._failure(422, "Invalid", "must be greater than 0")
        lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": self._next_version()}}
        self.leases[key] = lease
        self.effects.append((method, lease))
        return status, msgspec.json.encode(lease)

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _failure(self, status: int, reason: str, message: str) -> tuple[int, bytes]:
        return status, msgspec.json.encode({"kind": "Status", "code": status, "reason": reason, "message": message})


@dataclass(frozen=True)
class Fate:
    """What becomes of one request. Delays are seconds.

    `arrives_after` None: it never reaches the server. `refusal`: the server answers so, and does nothing. `answer_after` None: the answer
    is lost, and the client waits until its timeout; `reset`: the client sees the connection break in place of an answer; `disguise`: the
    effect is there, the answer is this status (a proxy's 504).
    """

    arrives_after: float | None = 0.001
    refusal: int | None = None
    retry_after: str | None = None
    answer_after: float | None = 0.001
    reset: bool = False
    disguise: int | None = None


HEALTHY = Fate()


class _Response:
    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body


class WorldTransport:
    """One process's way to the server, through `fate_of`; what is under way can be broken off by `reset_all`."""

    def __init__(self, process: Process, api: LeaseApi, fate_of: Callable[[Request], Fate]) -> None:
        self.sent: list[tuple[float, Request]] = []
        self._process, self._api, self._fate_of = process, api, fate_of
        self._waiting: set[asyncio.Future[_Response]] = set()
        self._connection = 0

    @contextlib.asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncIterator[_Response]:
        """Send once; `timeout` is the exchange's business, but it must have one."""
        assert timeout.total is not None
        future: asyncio.Future[_Response] = self._process.loop.create_future()
        self.sent.append((self._world.now, request))
        self._waiting.add(future)
        fate = self._fate_of(request)
        if fate.arrives_after is not None:
            connection = self._connection
            self._world.at(self._world.now + fate.arrives_after, lambda: self._arrives(request, fate, future, connection))
        elif fate.reset:
            self._fails(future)
        try:
            yield await future
        finally:
            self._waiting.discard(future)

    async def renew_credentials(self) -> bool:
        """There are none."""
        return False

    async def close(self) -> None:
        """Nothing to close."""

    def reset_all(self) -> None:
        """Every connection breaks, and what was on its way is lost."""
        self._connection += 1
        for future in list(self._waiting):
            self._fails(future)

    @property
    def _world(self) -> World:
        return self._process.world

    def _arrives(self, request: Request, fate: Fate, future: asyncio.Future[_Response], connection: int) -> None:
        if connection != self._connection:
            return
        if fate.refusal is None:
            status, body = self._api.handle(request)
        else:
            status, body = fate.refusal, b""
        if fate.answer_after is None:
            return
        when = self._world.now + fate.answer_after
        if fate.reset:
            self._world.at(when, lambda: self._fails(future))
            return
        headers = {"Retry-After": fate.retry_after} if fate.retry_after else {}
        answer = _Response(fate.disguise or status, b"" if fate.disguise else body, headers)
        self._world.at(when, lambda: self._process.loop.call_soon(_give, future, answer))

    def _fails(self, future: asyncio.Future[_Response]) -> None:
        self._process.loop.call_soon(_break, future)


def _give(future: asyncio.Future[_Response], answer: _Response) -> None:
    if not future.done():
        future.set_result(answer)


def _break(future: asyncio.Future[_Response]) -> None:
    if not future.done():
        future.set_exception(TransportError("connection reset by peer"))
