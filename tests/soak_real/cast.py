"""Who plays: processes' insides, each with a connection through its own proxy, that can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from loopwatch.clock import SystemClock
from loopwatch.controller import Clusters, Controller
from loopwatch.kube.connection import ConnectionSettings, connect
from loopwatch.kube.reflector import ReflectorTimes
from loopwatch.kube.transport import Transport
from loopwatch.sandbox.runtime import MemoryRuntime
from loopwatch.settings.model import ControllerSettings, Mode, SidecarSettings
from loopwatch.sidecar import Sidecar
from tests.support.proxy import FreezingProxy

GRACE_SECONDS: Final = 5.0
HEARTBEAT_SECONDS: Final = 1.0
LEASE_SECONDS: Final = 4
TIMES: Final = ReflectorTimes(read_seconds=9.0, watch_seconds=30.0, first_backoff_seconds=0.1, cap_backoff_seconds=3.0, settle_seconds=1.0)

Inside = Controller | Sidecar


@dataclass
class Player:
    """One process: `inside` is None while it is dead. `start` makes a new inside on the same connection."""

    name: str
    proxy: FreezingProxy
    start: Callable[[], Inside]
    inside: Inside | None = None
    task: asyncio.Task[None] | None = None

    def live(self) -> None:
        """Start it; without effect where it lives."""
        if self.task is None:
            self.inside = self.start()
            self.task = asyncio.create_task(self.inside.run(), name=self.name)

    async def die(self) -> None:
        """End it; its heartbeat and Ready stay as they are."""
        task, self.task, self.inside = self.task, None, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class Cast:
    """All players of one seed."""

    def __init__(self, kubeconfig: Path, folder: Path, stack: contextlib.AsyncExitStack) -> None:
        self.clock = SystemClock()
        self.controllers: list[Player] = []
        self.sidecars: dict[str, Player] = {}
        self.runtimes: dict[str, MemoryRuntime] = {}
        self._kubeconfig, self._folder, self._stack = kubeconfig, folder, stack

    @property
    def players(self) -> list[Player]:
        """Everybody."""
        return [*self.controllers, *self.sidecars.values()]

    async def add_controller(self, election: str) -> None:
        """One more controller; all of one `election` elect among themselves."""
        name = f"controller-{len(self.controllers)}"
        settings = ControllerSettings(
            machine_pool_lifecycle_grace_period_seconds=GRACE_SECONDS,
            leader_elect_lease_duration_seconds=3,
            leader_elect_renew_deadline_seconds=2.0,
            leader_elect_retry_period_seconds=0.5,
            leader_elect_resource_name=election,
            leader_elect_resource_namespace="default",
        )
        transport, proxy = await self._through_a_proxy(name)
        self.controllers.append(Player(name, proxy, lambda: Controller(settings, Clusters.one(transport), self.clock, TIMES)))

    async def add_sidecar(self, pool: str, mode: Mode) -> None:
        """The sidecar of a pool, and its runtime."""
        runtime = self.runtimes[pool] = MemoryRuntime(self.clock)
        settings = SidecarSettings(
            machine_pool_name=pool,
            mode=mode,
            heartbeat_interval_seconds=HEARTBEAT_SECONDS,
            heartbeat_lease_duration_seconds=LEASE_SECONDS,
            heartbeat_status_timeout_seconds=HEARTBEAT_SECONDS / 2,
        )
        transport, proxy = await self._through_a_proxy(f"sidecar-{pool}")
        self.sidecars[pool] = Player(f"sidecar-{pool}", proxy, lambda: Sidecar(settings, transport, runtime, None, self.clock, times=TIMES))

    async def connect(self, name: str) -> Transport:
        """A connection without a proxy: for whoever looks on."""
        connection = await connect(ConnectionSettings(component=name, kubeconfig=self._kubeconfig), self.clock)
        self._stack.push_async_callback(connection.close)
        return connection

    async def _through_a_proxy(self, name: str) -> tuple[Transport, FreezingProxy]:
        config: dict[str, Any] = yaml.safe_load(await asyncio.to_thread(self._kubeconfig.read_text))
        [cluster] = config["clusters"]
        server = urllib.parse.urlsplit(cluster["cluster"]["server"])
        proxy = FreezingProxy(str(server.hostname), int(server.port or 443))
        port = await self._stack.enter_async_context(proxy.listening())
        cluster["cluster"]["server"] = f"https://127.0.0.1:{port}"
        copy = self._folder / name
        await asyncio.to_thread(copy.write_text, yaml.safe_dump(config))
        connection = await connect(ConnectionSettings(component=name, kubeconfig=copy), self.clock)
        self._stack.push_async_callback(connection.close)
        return connection, proxy
