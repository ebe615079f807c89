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
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loopwatch.clock import Clock, SystemClock
from loopwatch.controller import Controller
from loopwatch.kube.connection import ConnectionSettings, connect
from loopwatch.kube.reflector import ReflectorTimes
from loopwatch.kube.transport import Transport
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.transport import SandboxTransport
from loopwatch.settings.model import ControllerSettings
from tests.acceptance.api import Kubectl
from tests.support.stepped import SteppedClock, SteppedLoop

KUBECONFIG = os.environ.get("LOOPWATCH_REAL_KUBECONFIG", "")
UPSTREAM_GRACE_SECONDS = 0.5
SCALE = 10.0 if KUBECONFIG else 1.0

Case = Callable[..., Awaitable[None]]


@dataclass
class World:
    """`seconds(x)` is x of upstream's suite on this world's scale. `api` is None on a real server."""

    clock: Clock
    kubectl: Kubectl
    transport: Callable[[str], Transport]
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
        chosen = replace(ControllerSettings(machine_pool_lifecycle_grace_period_seconds=self.grace_seconds), **settings)
        controller = Controller(chosen, self.transport(client), self.clock, self.reflector_times())
        async with running(controller.run()):
            yield controller

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
        await case(world, **named)


@contextlib.asynccontextmanager
async def _sandbox() -> AsyncIterator[World]:
    clock = SteppedClock()
    api = ApiServer(clock)
    kubectl = Kubectl(SandboxTransport(api, client="kubectl"), clock)
    await kubectl.ensure_namespace()
    yield World(clock, kubectl, lambda client: SandboxTransport(api, client=client), api)


@contextlib.asynccontextmanager
async def _real() -> AsyncIterator[World]:
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        opened = {}
        for client in ("kubectl", "controller", "sidecar", "sidecar-2", "machinepoollet"):
            opened[client] = await connect(ConnectionSettings(component=client, kubeconfig=Path(KUBECONFIG)), clock)
            stack.push_async_callback(opened[client].close)
        kubectl = Kubectl(opened["kubectl"], clock)
        await kubectl.ensure_namespace()
        await kubectl.clear()
        stack.push_async_callback(kubectl.clear)
        yield World(clock, kubectl, opened.__getitem__, None)


def _without_world(case: Case) -> Any:
    signature = inspect.signature(case)
    return signature.replace(parameters=[each for name, each in signature.parameters.items() if name != "world"])
