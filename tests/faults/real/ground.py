"""A real API server as a ground: threads, a proxy, and the machine's time. Its methods are called on the main thread's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from loopwatch.clock import Clock
from loopwatch.kube.connection import ConnectionSettings, connect
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS
from loopwatch.kube.transport import Request, Response, Timeout, Transport
from loopwatch.sandbox.faults import Fault
from loopwatch.sandbox.server import write_kubeconfig
from tests.faults.ground import ELECTION, RESOURCES, Api, Cut, Document, End, Ground, Process
from tests.faults.journal import Journal
from tests.faults.paths import is_watch
from tests.faults.plan import Plan
from tests.faults.real.api import RealApi, Watching
from tests.faults.real.proxy import CLIENT, HANDLED_AT, FaultProxy
from tests.faults.real.threads import ThreadClock, ThreadProcess
from tests.faults.seeding import hash_of
from tests.faults.truth import Write
from tests.real_servers.client import Client, WatchEvent

T = TypeVar("T")
JUDGED_AFTER_SECONDS = 0.3
"""A write is judged when the proxy has surely read the answer that says who made it."""
HOLDER_SECONDS = 0.1
"""How much earlier or later an accepted write may have been than a watch told."""


class RealGround(Ground):
    """For one plan; use it as an async context manager."""

    def __init__(self, plan: Plan, proxy: FaultProxy, proxy_address: str, client: Client, folder: Path) -> None:
        super().__init__(Journal(time.monotonic), plan.times, plan.seed)
        self.processes: list[ThreadProcess] = []
        self._proxy, self._client = proxy, client
        self._kubeconfig = folder / f"seed-{plan.seed}.kubeconfig"
        write_kubeconfig(self._kubeconfig, proxy_address)
        self._api = RealApi(client)
        self._loop = asyncio.get_running_loop()
        self._objects: dict[tuple[str, str], Document] = {}
        self._held: deque[tuple[float, str]] = deque([(0.0, "")])
        self._watching: list[Watching] = []

    async def __aenter__(self) -> Self:
        """Empty the cluster and begin to look on."""
        self._clear()
        for resource, namespace in ((MACHINE_POOLS, ""), (LEASES, LEASE_NAMESPACE)):
            collection = resource.collection_path(namespace)
            self._watching.append(Watching(self._client, collection, self._telling(resource.plural)))
        election = LEASES.collection_path(ELECTION.namespace)
        self._watching.append(Watching(self._client, election, lambda event: self._call(self._elected, event)))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Everybody is gone, and so is what they made."""
        self._proxy.faults.clear()
        await asyncio.get_running_loop().run_in_executor(None, self._end)

    def _end(self) -> None:
        for process in self.processes:
            process.close()
        for watching in self._watching:
            watching.close()
        self._clear()

    def _clear(self) -> None:
        for resource, namespace in ((MACHINE_POOLS, ""), (LEASES, LEASE_NAMESPACE), (LEASES, ELECTION.namespace)):
            self._api.clear(resource, namespace)

    @property
    def now(self) -> float:
        """The machine's."""
        return time.monotonic()

    @property
    def api(self) -> Api:
        """Past the proxy."""
        return self._api

    def at(self, when: float, what: Callable[[], object]) -> None:
        """On the main thread's loop."""
        self._loop.call_soon_threadsafe(lambda: self._loop.call_later(max(when - self.now, 0.0), what))

    def new_process(self, client: str) -> ThreadProcess:
        """Its thread begins with its work."""
        process = ThreadProcess(client, hash_of(f"{self.seed} {client}"))
        self.journal.names[process.loop] = client
        self.processes.append(process)
        return process

    @contextlib.asynccontextmanager
    async def transport(self, process: Process, host: str, client: str) -> AsyncIterator[Transport]:
        """The product's own connection, through the proxy."""
        connection = await connect(ConnectionSettings(host, self._kubeconfig, environ={}), process.clock)
        try:
            yield _Told(connection, self, client)
        finally:
            await connection.close()

    def reset(self, client: str) -> None:
        """The proxy closes them."""
        self._proxy.reset(client)

    def ask(self, process: Process, question: Callable[[], T]) -> T | None:
        """In its thread."""
        return cast("ThreadProcess", process).ask(question)

    def new_clock(self, name: str) -> Clock:
        """The machine's."""
        return ThreadClock(hash_of(f"{self.seed} {name}"))

    def add_fault(self, fault: Fault) -> End:
        """In the table of the proxy."""
        rule = self._proxy.faults.add(fault)
        return lambda: self._proxy.faults.remove(rule)

    def partition(self, hosts: Sequence[str], resources: Sequence[str], cut: Cut) -> End:
        """By the proxy."""
        return self._proxy.partition([(host, resource) for host in hosts for resource in resources], cut)

    def stall_server(self, hosts: Sequence[str], seconds: float) -> End:  # noqa: ARG002 - it ends when it is told to
        """Nothing passes the proxy."""
        return self.partition(hosts, RESOURCES, "drop")

    def compact(self) -> None:
        """As far as watches go."""
        self._proxy.compact()

    def holders(self, at: float) -> set[str]:
        """Whom a watch of the election's Lease told of, about that time."""
        named: set[str] = set()
        for since, holder in reversed(self._held):
            if since <= at + HOLDER_SECONDS:
                named.add(holder)
            if since <= at - HOLDER_SECONDS:
                break
        return named

    def _telling(self, plural: str) -> Callable[[WatchEvent], None]:
        return lambda event: self._call(self._written, plural, event)

    def _call(self, what: Callable[..., object], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody looks on any more
            self._loop.call_soon_threadsafe(what, *arguments)

    def _written(self, plural: str, event: WatchEvent) -> None:
        self._loop.call_later(JUDGED_AFTER_SECONDS, self._judge, plural, event)

    def _judge(self, plural: str, event: WatchEvent) -> None:
        metadata = event.object["metadata"]
        key = (plural, metadata["name"])
        before = self._objects.pop(key, None)
        if event.type != "DELETED":
            self._objects[key] = event.object
        by = "" if event.type == "DELETED" else self._proxy.writers.get(metadata["resourceVersion"], "")
        self.on_write(Write(event.at, by, plural, key[1], before, self._objects.get(key)))

    def _elected(self, event: WatchEvent) -> None:
        if event.object["metadata"]["name"] == ELECTION.name:
            holder = "" if event.type == "DELETED" else (event.object.get("spec") or {}).get("holderIdentity") or ""
            self._held.append((event.at, holder))


class _Told:
    """A transport that tells the ground of what is sent and answered; see kube.transport.Transport."""

    def __init__(self, inner: Transport, ground: Ground, client: str) -> None:
        self._inner, self._ground, self._client = inner, ground, client

    @contextlib.asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncGenerator[_ToldResponse]:
        marked = Request(request.method, request.path, request.query, {**request.headers, CLIENT: self._client}, request.body)
        self._ground.on_send(self._client, request)
        async with self._inner.send(marked, timeout) as response:
            yield _ToldResponse(response, request, self._ground, self._client)

    async def renew_credentials(self) -> bool:
        return await self._inner.renew_credentials()

    async def close(self) -> None:
        await self._inner.close()


class _ToldResponse:
    def __init__(self, inner: Response, request: Request, ground: Ground, client: str) -> None:
        self._inner, self._request, self._ground, self._client = inner, request, ground, client
        if is_watch(request):
            self._tell()

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        body = await self._inner.read()
        self._tell()
        return body

    def chunks(self) -> AsyncIterator[bytes]:
        return self._inner.chunks()

    def _tell(self) -> None:
        handled_at = self._inner.headers.get(HANDLED_AT)
        if handled_at is not None:
            self._ground.on_answer(self._client, self._request, self._inner.status, float(handled_at))
