"""How the contract suite talks to an API server, whichever it is: plain HTTP, nothing of loopwatch's own client.

A claim is written once against `Cluster`. The sandbox and a real kube-apiserver differ here only in address and credentials, and in
what it takes to be refused (a fault there, impersonation here).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp
import msgspec

from loopwatch.kube.resources import ObjectKey, Resource
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Fault, Forbid

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
WAIT_SECONDS = 15.0
CLIENT = "contract/1.0"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with its whole body."""

    status: int
    headers: Mapping[str, str]
    warnings: list[str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body as an object."""
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded

    @property
    def reason(self) -> str:
        """The reason of a Status."""
        return str(self.json.get("reason", ""))

    @property
    def message(self) -> str:
        """The message of a Status."""
        return str(self.json.get("message", ""))

    @property
    def version(self) -> str:
        """The object's or list's resourceVersion."""
        return str(self.json["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        """The names of a list's items."""
        return [item["metadata"]["name"] for item in self.json["items"]]


class Stream:
    """A watch whose head has arrived."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    async def event(self) -> tuple[str, dict[str, Any]]:
        """The next event's type and object; fails where none comes within WAIT_SECONDS or the stream ends."""
        async with asyncio.timeout(WAIT_SECONDS):
            line = await self._response.content.readline()
        assert line.endswith(b"\n"), f"the stream ended: {line!r}"
        event: dict[str, Any] = msgspec.json.decode(line)
        return event["type"], event["object"]

    async def events(self, count: int) -> list[tuple[str, dict[str, Any]]]:
        """The next events."""
        return [await self.event() for _ in range(count)]

    async def rest(self) -> list[tuple[str, dict[str, Any]]]:
        """All events until the server ends the stream."""
        async with asyncio.timeout(WAIT_SECONDS):
            lines = (await self._response.content.read()).splitlines()
        decoded = [msgspec.json.decode(line) for line in lines]
        return [(event["type"], event["object"]) for event in decoded]


class Cluster(Protocol):
    """An API server under test; `kind` is `sandbox` or `real`."""

    kind: str

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; a body that is not bytes is encoded as JSON."""
        ...

    def watch(self, path: str, **query: str) -> contextlib.AbstractAsyncContextManager[Stream]:
        """Open a watch; it must be answered with 200."""
        ...

    def refused_user(self, user: str) -> Mapping[str, str]:
        """Headers with which requests are made as a user who may do nothing."""
        ...

    async def send_with_token(self, token: str, path: str) -> Reply:
        """GET with a bearer token and no other credentials."""
        ...


class HttpCluster:
    """An API server at an address."""

    def __init__(self, kind: str, address: str, tls: ssl.SSLContext | None = None, anonymous_tls: ssl.SSLContext | None = None) -> None:
        self.kind = kind
        self.address = address
        self._tls = tls
        self._anonymous_tls = anonymous_tls
        self._session = aiohttp.ClientSession(
            headers={"User-Agent": CLIENT}, skip_auto_headers=["Content-Type"], read_bufsize=2**22, trust_env=False
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await asyncio.sleep(0)  # one turn of the loop, no wait: aborted connections are told so in it

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """See Cluster."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = ({} if data is None else {"Content-Type": JSON}) | dict(headers or {})
        sent = {name: value for name, value in sent.items() if value}
        async with (
            asyncio.timeout(WAIT_SECONDS),
            self._session.request(method, self.address + path, params=query, headers=sent, data=data, ssl=self._tls or True) as response,
        ):
            return Reply(response.status, response.headers.copy(), response.headers.getall("Warning", []), await response.read())

    @contextlib.asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncGenerator[Stream]:
        """See Cluster."""
        params = {"watch": "1", **query}
        timeout = aiohttp.ClientTimeout(total=None)
        async with asyncio.timeout(WAIT_SECONDS):
            response = await self._session.get(self.address + path, params=params, ssl=self._tls or True, timeout=timeout)
        try:
            assert response.status == 200, await response.text()
            yield Stream(response)
        finally:
            if response.connection is not None and response.connection.transport is not None:
                response.connection.transport.abort()  # a closing TLS connection would outlive the test's event loop
            response.close()

    def refused_user(self, user: str) -> Mapping[str, str]:
        """By impersonation: the user holds no role."""
        return {"Impersonate-User": user}

    async def send_with_token(self, token: str, path: str) -> Reply:
        """Without the client certificate."""
        async with self._session.get(
            self.address + path, headers={"Authorization": f"Bearer {token}"}, ssl=self._anonymous_tls or True
        ) as response:
            return Reply(response.status, response.headers.copy(), [], await response.read())


class SandboxCluster(HttpCluster):
    """The sandbox over HTTP; refusals are faults."""

    def __init__(self, address: str, api: ApiServer) -> None:
        super().__init__("sandbox", address)
        self.api = api

    def refused_user(self, user: str) -> Mapping[str, str]:
        """By a fault that hits a client of its own."""
        self.api.faults.add(Fault(effect=Forbid(user=user), client="refused"))
        return {"User-Agent": "refused/1.0"}

    async def send_with_token(self, token: str, path: str) -> Reply:
        """With a sandbox that accepts another token alone."""
        self.api.tokens = {"the-right-one": "admin"}
        return await super().send_with_token(token, path)


def unique(prefix: str) -> str:
    """A name that no other test uses, so that a real server can be shared."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def new(resource: Resource, name: str, namespace: str = "", **fields: object) -> dict[str, Any]:
    """An object's body."""
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}


async def create(cluster: Cluster, resource: Resource, body: Mapping[str, Any]) -> Reply:
    """POST an object; it must be made."""
    reply = await cluster.send("POST", resource.collection_path(body["metadata"].get("namespace", "")), body)
    assert reply.status == 201, reply.body
    return reply


async def patch(
    cluster: Cluster, resource: Resource, key: ObjectKey, body: object, *, subresource: str = "", kind: str = MERGE_PATCH
) -> Reply:
    """PATCH an object."""
    return await cluster.send("PATCH", resource.object_path(key, subresource), body, headers={"Content-Type": kind})


async def get(cluster: Cluster, resource: Resource, key: ObjectKey) -> Reply:
    """GET an object."""
    return await cluster.send("GET", resource.object_path(key))
