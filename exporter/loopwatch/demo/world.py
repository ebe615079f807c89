"""The demo's world: an API server in memory on a loopback port, and for each pool a runtime, a machinepoollet's process and a sidecar."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwatch.clock import Clock
from loopwatch.controller import Clusters, Controller
from loopwatch.demo.healthz import Healthz
from loopwatch.demo.story import POOLS, Deed
from loopwatch.iri.endpoint import socket_endpoint
from loopwatch.iri.grpc_probe import GrpcRuntimeProbe
from loopwatch.kube.connection import ConnectionSettings, connect
from loopwatch.kube.reflector import ReflectorTimes
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.machinepoollet import MachinepoolletHealthz
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.runtime import Runtime
from loopwatch.sandbox.runtime.behaviours import Error, Ok
from loopwatch.sandbox.server import serve, write_kubeconfig
from loopwatch.settings.model import ControllerSettings, Mode, SidecarSettings
from loopwatch.sidecar import Sidecar

INTERVAL_SECONDS: Final = 0.5
LEASE_SECONDS: Final = 2
STATUS_TIMEOUT_SECONDS: Final = 0.25
GRACE_SECONDS: Final = 2.5
"""A twentieth of the defaults, all of them, so that a minute's story takes three seconds."""
MACHINE_CLASSES: Final = {"t3-small": 8, "x3-xlarge": 2}
BROKEN: Final = Error("Unavailable", "libvirt: connection refused")


@dataclass(frozen=True, slots=True)
class Pool:
    """What stands beside one MachinePool."""

    runtime: Runtime
    machinepoollet: Healthz
    sidecar: Sidecar


class World:
    """Everything, running. `do` lets a deed of the story happen."""

    def __init__(self, api: ApiServer, controller: Controller, pools: dict[str, Pool]) -> None:
        self.controller = controller
        self.pools = pools
        self._api = api

    async def do(self, pool: str, deed: Deed) -> None:
        """Let it happen."""
        parts = self.pools[pool]
        match deed:
            case Deed.BREAK_RUNTIME:
                await parts.runtime.behave(BROKEN)
            case Deed.MEND_RUNTIME:
                await parts.runtime.behave(Ok(MACHINE_CLASSES))
            case Deed.KILL_MACHINEPOOLLET:
                await parts.machinepoollet.stop()
            case Deed.START_MACHINEPOOLLET:
                await parts.machinepoollet.start()
            case Deed.DELETE_POOL:
                self._api.delete_object(MACHINE_POOLS, pool)
                self._api.delete_object(LEASES, ObjectKey(LEASE_NAMESPACE, pool))
            case Deed.CREATE_POOL:
                create_pool(self._api, pool)


def create_pool(api: ApiServer, name: str) -> None:
    """A MachinePool as a machinepoollet applies it."""
    api.put_object(MACHINE_POOLS, {"metadata": {"name": name}, "spec": {"providerID": f"demo://{name}"}, "status": {"state": "Ready"}})


@contextlib.asynccontextmanager
async def open_world(folder: Path, clock: Clock) -> AsyncIterator[World]:
    """Start it all; `folder` (short: a socket's path has 107 bytes at most) takes sockets and the kubeconfig."""
    api = ApiServer(clock)
    api.create_namespace(LEASE_NAMESPACE)
    async with contextlib.AsyncExitStack() as stack:
        address = await stack.enter_async_context(serve(api, port=0))
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, address)
        transport = await connect(ConnectionSettings(kubeconfig=kubeconfig, component="controller"), clock)
        stack.push_async_callback(transport.close)
        settings = ControllerSettings(machine_pool_lifecycle_grace_period_seconds=GRACE_SECONDS, leader_elect=False)
        controller = Controller(settings, Clusters.one(transport), clock, _times())
        pools = {name: await _open_pool(stack, name, folder, kubeconfig, clock) for name in POOLS}
        for name in POOLS:
            create_pool(api, name)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [tasks.create_task(controller.run(), name="controller")]
        running += [tasks.create_task(pool.sidecar.run(), name=f"sidecar of {name}") for name, pool in pools.items()]
        try:
            yield World(api, controller, pools)
        finally:
            for task in running:
                task.cancel()


async def _open_pool(stack: contextlib.AsyncExitStack, name: str, folder: Path, kubeconfig: Path, clock: Clock) -> Pool:
    runtime = Runtime(folder / f"{name}.sock", clock, Ok(MACHINE_CLASSES))
    await runtime.start()
    stack.push_async_callback(runtime.stop)
    machinepoollet = Healthz()
    await machinepoollet.start()
    stack.push_async_callback(machinepoollet.stop)
    transport = await connect(ConnectionSettings(kubeconfig=kubeconfig, component="sidecar"), clock)
    stack.push_async_callback(transport.close)
    probe = GrpcRuntimeProbe(socket_endpoint(str(runtime.socket_path)), clock)
    stack.push_async_callback(probe.close)
    asked = await stack.enter_async_context(MachinepoolletHealthz(machinepoollet.url))
    settings = SidecarSettings(
        machine_pool_name=name,
        mode=Mode.AUTO,
        heartbeat_interval_seconds=INTERVAL_SECONDS,
        heartbeat_lease_duration_seconds=LEASE_SECONDS,
        heartbeat_status_timeout_seconds=STATUS_TIMEOUT_SECONDS,
    )
    return Pool(runtime, machinepoollet, Sidecar(settings, transport, probe, asked.answers, clock, times=_times()))


def _times() -> ReflectorTimes:
    """Back-offs as much shorter as the grace is."""
    return ReflectorTimes(first_backoff_seconds=0.05, cap_backoff_seconds=0.5)
