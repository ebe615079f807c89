"""The world that an acceptance case plays in: an API server, hands to move it, and our processes' insides running on it.

Written once, played twice. Without LOOPWATCH_REAL_KUBECONFIG it is the sandbox on a stepped clock, with upstream's times (grace 500 ms);
with it (`make e2e`) it is the kube-apiserver of that kubeconfig in real time, with every time ten times as long (grace 5 s).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import os
import tempfile
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from loopwatch.clock import Clock, SystemClock
from loopwatch.controller import Clusters, Controller
from loopwatch.iri.probe import RuntimeProbe
from loopwatch.kube.connection import ConnectionSettings, connect
from loopwatch.kube.reflector import ReflectorTimes
from loopwatch.kube.transport import Transport
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Fault, Silence
from loopwatch.sandbox.transport import SandboxTransport
from loopwatch.settings.model import ControllerSettings, SidecarSettings
from loopwatch.sidecar import Sidecar
from tests.acceptance.api import Kubectl
from tests.support.proxy import FreezingProxy
from tests.support.stepped import SteppedClock, SteppedLoop

KUBECONFIG = os.environ.get("LOOPWATCH_REAL_KUBECONFIG", "")
UPSTREAM_GRACE_SECONDS = 0.5
SCALE = 10.0 if KUBECONFIG else 1.0

Case = Callable[..., Awaitable[None]]
Machinepoollet = Callable[[], Awaitable[bool]]


@dataclass
class World:
    """`seconds(x)` is x of upstream's suite on this world's scale. `api` is None on a real server.

    `half_open(client)`: the connections that this client has open for watches (on a real server: all) go silent for good, without an end.
    """

    clock: Clock
    kubectl: Kubectl
    transport: Callable[[str], Transport]
    half_open: Callable[[str], None]
    api: ApiServer | None

    @staticmethod
    def seconds(upstream: float) -> float:
        """Upstream's times are made for a grace of 500 ms."""
        return upstream * SCALE

    @property
    def grace_seconds(self) -> float:
        """The grace period of this world."""
        return self.seconds(UPSTREAM_GRACE_SECONDS)

    def renew_time(self) -> str:
        """Now, as a reporter's wall clock says it, in microseconds."""
        return self.clock.utcnow().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    @contextlib.asynccontextmanager
    async def controller(self, *, client: str = "controller", **settings: Any) -> AsyncIterator[Controller]:
        """A controller at work, with the grace of this world unless told otherwise."""
        chosen = replace(ControllerSettings(machine_pool_lifecycle_grace_period_seconds=self.grace_seconds, leader_elect=False), **settings)
        controller = Controller(chosen, Clusters.one(self.transport(client)), self.clock, self.reflector_times())
        async with running(controller.run()):
            yield controller

    @contextlib.asynccontextmanager
    async def sidecar(
        self, name: str, runtime: RuntimeProbe, *, client: str = "sidecar", machinepoollet: Machinepoollet | None = None, **settings: Any
    ) -> AsyncIterator[Sidecar]:
        """A sidecar at work, with the times of upstream's heartbeat suite (interval 500 ms, lease 3 s, timeout 200 ms) on this scale."""
        chosen = SidecarSettings(
            machine_pool_name=name,
            heartbeat_interval_seconds=self.seconds(0.5),
            heartbeat_lease_duration_seconds=round(self.seconds(3)),
            heartbeat_status_timeout_seconds=self.seconds(0.2),
        )
        chosen = replace(chosen, **settings)
        sidecar = Sidecar(chosen, self.transport(client), runtime, machinepoollet, self.clock, times=self.reflector_times())
        async with running(sidecar.run()):
            yield sidecar

    def reflector_times(self) -> ReflectorTimes:
        """A reflector's usual times, as much shorter as the grace is shorter than 50 s."""
        factor = self.grace_seconds / 50
        usual = ReflectorTimes()
        return ReflectorTimes(**{name: getattr(usual, name) * factor for name in usual.__slots__})

    async def every(self, seconds: float, act: Callable[[int], Awaitable[None]]) -> None:
        """Do something again and again, on a fixed grid, until cancelled."""
        began, number = self.clock.monotonic(), 0
        while True:
            await act(number)
            number += 1
            await self.clock.sleep(began + number * seconds - self.clock.monotonic())

    async def passes(self, seconds: float) -> None:
        """Let time pass in this world."""
        await self.clock.sleep(seconds)

    async def until(self, true: Callable[[], bool], within_seconds: float) -> float:
        """Look again and again until it holds; the moment it did, or AssertionError."""
        began = self.clock.monotonic()
        while not true():
            assert self.clock.monotonic() - began < within_seconds, f"not within {within_seconds:g} s"
            await self.clock.sleep(self.seconds(0.005))
        return self.clock.monotonic()


@contextlib.asynccontextmanager
async def running(*work: Awaitable[None]) -> AsyncIterator[None]:
    """`work` runs while the context is open; that it ends by itself, or fails, fails the test."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield
        for task in tasks:
            assert not task.done(), f"ended by itself: {task}"
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result


def acceptance(case: Case) -> Callable[..., None]:
    """Play an async case on the world that this run has; the case gets a World, and whatever else pytest gives it."""

    @functools.wraps(case)
    def play(**named: Any) -> None:
        with asyncio.Runner(loop_factory=None if KUBECONFIG else SteppedLoop) as runner:
            runner.run(_played(case, named))

    # pytest takes a function's arguments for fixtures; the world is none of its.
    del play.__wrapped__
    play.__signature__ = _without_world(case)  # type: ignore[attr-defined]  # inspect reads it
    return play


async def _played(case: Case, named: dict[str, Any]) -> None:
    async with _real() if KUBECONFIG else _sandbox() as world, running(world.kubectl.look_on()):
        await world.kubectl.eyes_open()
        await case(world, **named)


@contextlib.asynccontextmanager
async def _sandbox() -> AsyncIterator[World]:
    clock = SteppedClock()
    api = ApiServer(clock)
    kubectl = Kubectl(SandboxTransport(api, client="kubectl"), clock)
    await kubectl.ensure_namespaces()

    def half_open(client: str) -> None:
        api.faults.add(Fault(effect=Silence(), verb="watch", client=client, count=2))

    yield World(clock, kubectl, lambda client: SandboxTransport(api, client=client), half_open, api)


@contextlib.asynccontextmanager
async def _real() -> AsyncIterator[World]:
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loopwatch-")))
        opened: dict[str, Transport] = {}
        proxies: dict[str, FreezingProxy] = {}
        for client in ("kubectl", "controller", "sidecar", "sidecar-2", "machinepoollet"):
            kubeconfig, proxies[client] = await _through_a_proxy(stack, folder / client)
            connection = await connect(ConnectionSettings(component=client, kubeconfig=kubeconfig), clock)
            stack.push_async_callback(connection.close)
            opened[client] = connection
        kubectl = Kubectl(opened["kubectl"], clock)
        await kubectl.ensure_namespaces()
        await kubectl.clear()
        stack.push_async_callback(kubectl.clear)
        yield World(clock, kubectl, opened.__getitem__, lambda client: proxies[client].freeze(), None)


async def _through_a_proxy(stack: contextlib.AsyncExitStack, copy: Path) -> tuple[Path, FreezingProxy]:
    """The kubeconfig of this run with a proxy's port in the place of the server's: its certificate is for loopback, whatever the port."""
    config = yaml.safe_load(await asyncio.to_thread(Path(KUBECONFIG).read_text))
    [cluster] = config["clusters"]
    server = urllib.parse.urlsplit(cluster["cluster"]["server"])
    proxy = FreezingProxy(str(server.hostname), int(server.port or 443))
    port = await stack.enter_async_context(proxy.listening())
    cluster["cluster"]["server"] = f"https://127.0.0.1:{port}"
    await asyncio.to_thread(copy.write_text, yaml.safe_dump(config))
    return copy, proxy


def _without_world(case: Case) -> Any:
    signature = inspect.signature(case)
    return signature.replace(parameters=[each for name, each in signature.parameters.items() if name != "world"])
