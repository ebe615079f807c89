"""The sidecar as a process: real sockets, real signals, and what it says where something can't be used."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from loopwatch.clock import SystemClock
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.machinepoollet import MachinepoolletHealthz
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Fault, Hang
from loopwatch.sandbox.runtime import Runtime
from loopwatch.sandbox.runtime.behaviours import Ok
from loopwatch.sandbox.server import serve, write_kubeconfig

POOL = "pool-a"
ENDS_WITHIN_SECONDS = 2.0
EXPORTER = Path(__file__).parents[3] / "exporter"


class Process:
    """`loopwatch sidecar …`, and what it said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said = ""

    async def says(self, words: str) -> None:
        """Wait for a line with these words on stderr."""
        while words not in self.said:
            assert self._process.stderr is not None
            line = await self._process.stderr.readline()
            assert line, f"it ended without {words!r}: {self.said}"
            self.said += line.decode()

    async def ends(self) -> int:
        """Its exit code, once it has ended; the rest of what it said is in `said`."""
        assert self._process.stderr is not None
        self.said += (await self._process.stderr.read()).decode()
        return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)


@contextlib.asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Process]:
    """The command with these arguments; killed where the test leaves it alive."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(EXPORTER), "PYTHONWARNINGS": "error"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "loopwatch",
        "sidecar",
        f"--machine-pool-name={POOL}",
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@contextlib.asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[ApiServer, list[str]]]:
    """An API server with the pool, and a runtime; the arguments that lead a sidecar to them."""
    clock = SystemClock()
    api = ApiServer(clock)
    api.create_namespace(LEASE_NAMESPACE)
    api.put_object(MACHINE_POOLS, {"metadata": {"name": POOL}, "spec": {"providerID": "provider://a"}})
    runtime = Runtime(folder / "iri.sock", clock, Ok({"small": 3}))
    await runtime.start()
    try:
        async with serve(api) as address:
            write_kubeconfig(folder / "kubeconfig", address)
            yield (
                api,
                [
                    f"--kubeconfig={folder / 'kubeconfig'}",
                    f"--machine-runtime-endpoint=unix:{folder / 'iri.sock'}",
                    "--machinepoollet-healthz=off",
                ],
            )
    finally:
        await runtime.stop()


def lease(api: ApiServer) -> object:
    return api.object(LEASES, ObjectKey(LEASE_NAMESPACE, POOL))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_reports_and_ends_within_two_seconds_leaving_everything_as_it_is(number: signal.Signals, tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, arguments), running(*arguments, "--listen-address=127.0.0.1:0") as process:
        await process.says("Ready is published")
        await process.says("listening")
        before = lease(api), api.object(MACHINE_POOLS, POOL)
        assert before[0] is not None
        process.signal(number)
        async with asyncio.timeout(ENDS_WITHIN_SECONDS):
            assert await process.ends() == 0
        assert (lease(api), api.object(MACHINE_POOLS, POOL)) == before
        assert "Traceback" not in process.said


async def test_a_process_ends_within_two_seconds_while_nothing_answers(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, arguments):
        api.faults.add(Fault(effect=Hang()))
        async with running(*arguments, "--listen-address=127.0.0.1:0") as process:
            await process.says("the machine runtime answers")
            process.signal(signal.SIGTERM)
            async with asyncio.timeout(ENDS_WITHIN_SECONDS):
                assert await process.ends() == 0


async def test_a_port_in_use_is_said_and_costs_no_heartbeat(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with cluster(tmp_path) as (api, arguments):
            times = ["--heartbeat-interval=300ms", "--heartbeat-status-timeout=200ms", "--heartbeat-lease-duration=1s"]
            async with running(*arguments, *times, f"--listen-address=127.0.0.1:{port}") as process:
                await process.says("the port is in use")
                await process.says("Ready is published")
                assert lease(api) is not None
                taken.close()
                await process.says("listening")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig=/nowhere/kubeconfig"], "/nowhere/kubeconfig"),
        (["--machine-runtime-endpoint=http://localhost:80"], "--machine-runtime-endpoint"),
        (["--machine-runtime-endpoint=unix:/dev/null"], "is no socket"),
    ],
)
async def test_what_can_not_be_used_is_one_line_and_exit_2(arguments: list[str], words: str, tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, usable), running(*usable, *arguments) as process:
        assert await process.ends() == 2
        assert words in process.said
        assert process.said.count("\n") == 1


@contextlib.asynccontextmanager
async def healthz(handler: web.RequestHandler | object) -> AsyncIterator[str]:
    """A machinepoollet's healthz that answers by `handler`; its URL."""
    application = web.Application()
    application.router.add_get("/healthz", handler)  # type: ignore[arg-type] # any of aiohttp's handlers
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/healthz"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("status", [200, 204, 302, 403, 404, 500, 503])
async def test_any_http_status_is_an_answer(status: int) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "http://127.0.0.1:9/"} if status == 302 else {})

    async with healthz(answer) as url, MachinepoolletHealthz(url) as asked:
        assert await asked.answers()
        assert await asked.answers()


async def test_nobody_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    async with MachinepoolletHealthz(f"http://127.0.0.1:{port}/healthz") as asked:
        assert not await asked.answers()


async def test_bytes_that_are_no_http_are_no_answer() -> None:
    async def garbage(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(garbage, "127.0.0.1", 0)
    async with server, MachinepoolletHealthz(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/healthz") as asked:
        assert not await asked.answers()


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    async with healthz(answer) as url, MachinepoolletHealthz(url) as asked:
        assert await asked.answers()
