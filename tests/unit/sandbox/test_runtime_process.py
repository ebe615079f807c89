"""`python -m loopwatch.sandbox.runtime`: the same runtime as a process that tests stop and kill for real."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from loopwatch.clock import SystemClock
from loopwatch.iri.endpoint import socket_endpoint
from loopwatch.iri.grpc_probe import GrpcRuntimeProbe
from loopwatch.sandbox.runtime import behaviours
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour

START_SECONDS = 20.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="lw") as name:
        yield Path(name)


@asynccontextmanager
async def a_runtime(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "loopwatch.sandbox.runtime",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ready(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        raise TypeError("started without a pipe")
    async with asyncio.timeout(START_SECONDS):
        return await process.stdout.readline()


def order(file: Path, behaviour: AnyBehaviour) -> None:
    file.with_suffix(".new").write_bytes(behaviours.render(behaviour))
    file.with_suffix(".new").replace(file)


async def test_it_does_as_the_file_says_at_each_call_and_stops_cleanly_on_sigterm(folder: Path) -> None:
    socket, file = folder / "iri.sock", folder / "behaviour.json"
    order(file, behaviours.Ok({"small": 4}))
    probe = GrpcRuntimeProbe(socket_endpoint(str(socket)), SystemClock())
    async with a_runtime("--socket", str(socket), "--behaviour-file", str(file)) as process:
        assert await ready(process) == f"listening on {socket}\n".encode()
        assert (await probe.status(5.0)).machine_classes == (("small", 4),)
        order(file, behaviours.Error("DataLoss", "disk"))
        assert (await probe.status(5.0)).message == "rpc error: code = DataLoss desc = disk"
        file.write_text("{")
        assert "--behaviour-file" in (await probe.status(5.0)).message
        order(file, behaviours.Http1())
        async with asyncio.timeout(START_SECONDS):
            while "http1.x" not in (await probe.status(5.0)).message:
                await SystemClock().sleep(0.02)
        order(file, behaviours.Ok({"small": 5}))
        async with asyncio.timeout(START_SECONDS):
            while not (await probe.status(5.0)).succeeded:
                await SystemClock().sleep(0.02)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(START_SECONDS):
            _, stderr = await process.communicate()
        assert (process.returncode, stderr) == (0, b"")
    await probe.close()
    assert not socket.exists()


async def test_killed_it_leaves_the_socket_and_a_successor_is_seen_at_once(folder: Path) -> None:
    socket = folder / "iri.sock"
    probe = GrpcRuntimeProbe(socket_endpoint(str(socket)), SystemClock())
    async with a_runtime("--socket", str(socket)) as process:
        await ready(process)
        assert (await probe.status(5.0)).succeeded
        process.kill()
        await process.wait()
    assert socket.is_socket()
    assert (await probe.status(5.0)).code == "Unavailable"
    async with a_runtime("--socket", str(socket)) as process:
        await ready(process)
        assert (await probe.status(5.0)).succeeded
    await probe.close()


async def test_a_path_that_is_taken_is_said_in_one_line_and_exit_2(folder: Path) -> None:
    file = folder / "iri.sock"
    file.write_text("precious")
    async with a_runtime("--socket", str(file)) as process, asyncio.timeout(START_SECONDS):
        stdout, stderr = await process.communicate()
        assert (process.returncode, stdout) == (2, b"")
        assert stderr == f"{file} is there but is no socket; remove it, or name another path\n".encode()
