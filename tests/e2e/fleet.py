"""A fleet of MachinePools on a real API server, moved and watched by one asyncio client: what mass silence is tried with.

Each pool has a Ready condition and a Lease; `renew` is a heartbeat. Times are time.monotonic(), and for what the audit log is compared
with, the wall clock of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

import aiohttp
import msgspec

from tests.e2e.watching import LEASES, POOLS
from tests.real_servers.apiserver import ApiServer
from tests.support.pools import ready_condition

WRITERS: Final = 24
MERGE: Final = {"Content-Type": "application/merge-patch+json"}
SLOW: Final = aiohttp.ClientTimeout(total=60)
WATCHING: Final = aiohttp.ClientTimeout(total=None, sock_read=600)


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Metadata(msgspec.Struct):
    name: str


class _Pool(msgspec.Struct):
    metadata: _Metadata
    status: _Status = _Status()


class _Event(msgspec.Struct):
    type: str
    object: _Pool


_decode: Final = msgspec.json.Decoder(_Event).decode


class Fleet:
    """`renewed` and `unknown` hold the moment of each pool's last answered heartbeat, and of its Ready=Unknown as the watch showed it.

    A pool in `reporting` has somebody who answers an Unknown with True at once, as machinepoollets and sidecars do; `true_again` says when.
    """

    def __init__(self, server: ApiServer, names: Sequence[str]) -> None:
        self.names = names
        self.renewed: dict[str, float] = {}
        self.unknown: dict[str, float] = {}
        self.true_again: dict[str, float] = {}
        self.reporting: set[str] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self._server = server
        self._session: aiohttp.ClientSession | None = None
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look on while the context is open."""
        client = self._server.client
        async with aiohttp.ClientSession(
            self._server.url, connector=aiohttp.TCPConnector(ssl=client.tls, limit=0), headers={"User-Agent": "fleet"}
        ) as self._session:
            watch = asyncio.create_task(self._watch())
            try:
                yield
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)

    async def create(self) -> None:
        """Pools with Ready=True, and Leases renewed once."""
        await self._each(self.names, self._create_one)

    async def renew(self, names: Iterable[str], *, over_seconds: float = 0.0) -> None:
        """A heartbeat of each: as fast as it goes, or spread evenly over a time."""
        listed = list(names)
        began, spacing = time.monotonic(), over_seconds / max(len(listed), 1)

        async def beat(number: int, name: str) -> None:
            await asyncio.sleep(began + number * spacing - time.monotonic())
            await self._send("PATCH", f"{LEASES}/{name}", {"spec": {"renewTime": _now()}})
            self.renewed[name] = time.monotonic()

        async with asyncio.TaskGroup() as beats:
            gate = asyncio.Semaphore(WRITERS)
            for number, name in enumerate(listed):
                beats.create_task(_through(gate, beat, number, name))

    async def when_unknown(self, names: Sequence[str], within_seconds: float) -> None:
        """Wait until each of these was seen Unknown; AssertionError with how many were."""
        wanted = set(names)
        try:
            async with asyncio.timeout(within_seconds):
                while not wanted <= self.unknown.keys():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{len(wanted & self.unknown.keys())} of {len(wanted)} are Unknown after {within_seconds:g} s") from None

    async def when_unknown_count(self, count: int, within_seconds: float) -> None:
        """Wait until that many pools were seen Unknown."""
        async with asyncio.timeout(within_seconds):
            while len(self.unknown) < count:
                self._changed.clear()
                await self._changed.wait()

    async def when_true_again(self, within_seconds: float) -> None:
        """Wait until every pool that reports and was seen Unknown is True again; AssertionError otherwise."""
        marked = self.reporting & self.unknown.keys()
        try:
            async with asyncio.timeout(within_seconds):
                while not marked <= self.true_again.keys():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            left = sorted(marked - self.true_again.keys())
            raise AssertionError(f"still Unknown {within_seconds:g} s later, though they report: {left}") from None

    def lateness(self, names: Iterable[str], grace_seconds: float) -> list[float]:
        """By how much each was seen Unknown after its own deadline: last answered heartbeat plus grace; shortest first."""
        return sorted(self.unknown[name] - self.renewed[name] - grace_seconds for name in names)

    async def _create_one(self, name: str) -> None:
        manifest = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "metadata": {"name": name}}
        await self._send("POST", POOLS, manifest | {"spec": {"providerID": f"fleet://{name}"}})
        await self._send("PATCH", f"{POOLS}/{name}/status", {"status": {"conditions": [ready_condition("True")]}})
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
        spec = {"holderIdentity": f"{name}_fleet", "leaseDurationSeconds": 40, "renewTime": _now()}
        await self._send("POST", LEASES, lease | {"spec": spec})
        self.renewed[name] = time.monotonic()

    async def _report(self, name: str) -> None:
        await self._send("PATCH", f"{POOLS}/{name}/status", {"status": {"conditions": [ready_condition("True")]}})

    async def _each(self, names: Sequence[str], act: Any) -> None:
        gate = asyncio.Semaphore(WRITERS)
        async with asyncio.TaskGroup() as acts:
            for name in names:
                acts.create_task(_through(gate, act, name))

    async def _send(self, method: str, path: str, body: dict[str, Any]) -> None:
        assert self._session is not None
        headers = MERGE if method == "PATCH" else {"Content-Type": "application/json"}
        async with self._session.request(method, path, data=msgspec.json.encode(body), headers=headers, timeout=SLOW) as response:
            assert response.status in (200, 201), f"{method} {path}: {response.status} {await response.text()}"
            await response.read()

    async def _watch(self) -> None:
        assert self._session is not None
        rest = b""
        async with self._session.get(f"{POOLS}?watch=1&timeoutSeconds=3600", timeout=WATCHING) as response:
            async for chunk in response.content.iter_any():
                at = time.monotonic()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._saw(_decode(line), at)
                self._changed.set()

    def _saw(self, event: _Event, at: float) -> None:
        name = event.object.metadata.name
        status = next((each.status for each in event.object.status.conditions if each.type == "Ready"), "")
        if status == "Unknown":
            self.unknown.setdefault(name, at)
            if name in self.reporting:
                task = asyncio.create_task(self._report(name))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)
        elif name in self.unknown and status == "True":
            self.true_again.setdefault(name, at)


async def _through(gate: asyncio.Semaphore, act: Any, *arguments: Any) -> None:
    async with gate:
        await act(*arguments)


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
