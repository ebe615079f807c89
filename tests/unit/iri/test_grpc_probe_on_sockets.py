"""The probe against real servers on real unix sockets: every way a runtime can be wrong, and how soon it is seen again (case 45)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import grpc.aio
import pytest

from loopwatch.clock import SystemClock
from loopwatch.iri import messages
from loopwatch.iri.endpoint import Endpoint, socket_endpoint
from loopwatch.iri.grpc_probe import GrpcRuntimeProbe
from loopwatch.iri.probe import CODES, ProbeResult
from loopwatch.sandbox.runtime import Runtime, behaviours
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour

GOOD = ProbeResult("OK", machine_classes=(("large", 1), ("small", 4)))
WELL = behaviours.Ok({"small": 4, "large": 1})
SECONDS = 5.0
SHORT_SECONDS = 0.2


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="lw") as folder:
        yield Path(folder) / "iri.sock"


@pytest.fixture
async def runtime(path: Path) -> AsyncIterator[Runtime]:
    runtime = Runtime(path, SystemClock(), WELL)
    await runtime.start()
    yield runtime
    await runtime.stop()


@pytest.fixture
async def probe(path: Path) -> AsyncIterator[GrpcRuntimeProbe]:
    probe = GrpcRuntimeProbe(socket_endpoint(str(path)), SystemClock())
    yield probe
    await probe.close()


async def a_call_arrived(runtime: Runtime) -> None:
    for _ in range(100_000):
        if runtime.status_calls:
            return
        await asyncio.sleep(0)
    pytest.fail("no call arrived")


async def test_a_good_runtime_tells_its_classes(runtime: Runtime, probe: GrpcRuntimeProbe) -> None:
    assert await probe.status(SECONDS) == GOOD
    assert await probe.version(SECONDS) == ProbeResult("OK")
    assert (runtime.status_calls, runtime.version_calls) == (1, 1)


@pytest.mark.parametrize(
    ("behaviour", "code", "said"),
    [
        (behaviours.Error("PermissionDenied", "not you"), "PermissionDenied", "not you"),
        (behaviours.Error("DeadlineExceeded", "libvirt did not answer"), "DeadlineExceeded", "libvirt did not answer"),
        (behaviours.Hang(), "DeadlineExceeded", "context deadline exceeded"),
        (behaviours.Slow(30.0), "DeadlineExceeded", "context deadline exceeded"),
        (behaviours.Huge(), "ResourceExhausted", "4194304"),
        (behaviours.Undecodable(), "Internal", "failed to unmarshal"),
        (behaviours.WrongService(), "Unimplemented", ""),
        (behaviours.Http1(), "Unavailable", "http1.x server"),
        (behaviours.Garbage(), "Unavailable", "Failed parsing HTTP/2"),
        (behaviours.Closing(), "Unavailable", ""),
        (behaviours.Silent(), "DeadlineExceeded", "context deadline exceeded"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, behaviours.Behaviour) else "",
)
async def test_a_wrong_runtime_is_classified_and_a_good_one_seen_by_the_next_call(
    runtime: Runtime, probe: GrpcRuntimeProbe, behaviour: AnyBehaviour, code: str, said: str
) -> None:
    assert await probe.status(SECONDS) == GOOD
    await runtime.behave(behaviour)
    result = await probe.status(SHORT_SECONDS)
    assert result.code == code
    assert result.message.startswith(f"rpc error: code = {code} desc = ")
    assert said in result.message
    assert result.message.isprintable()
    await runtime.behave(WELL)
    assert await probe.status(SECONDS) == GOOD


async def test_a_slow_runtime_within_the_timeout_is_a_good_one(runtime: Runtime, probe: GrpcRuntimeProbe) -> None:
    await runtime.behave(behaviours.Slow(0.05, WELL.machine_classes))
    assert await probe.status(SECONDS) == GOOD


@pytest.mark.parametrize("code", CODES[1:])
async def test_each_code_of_the_runtime_arrives_under_gos_name(runtime: Runtime, probe: GrpcRuntimeProbe, code: str) -> None:
    await runtime.behave(behaviours.Error(code, "<b>why</b>\nsecond line"))
    assert await probe.status(SECONDS) == ProbeResult(code, f"rpc error: code = {code} desc = <b>why</b> second line")


async def test_a_restart_between_two_calls_is_never_seen(runtime: Runtime, probe: GrpcRuntimeProbe) -> None:
    for end in (runtime.kill, runtime.stop):
        assert await probe.status(SECONDS) == GOOD
        await end()
        await runtime.start()
        assert await probe.status(SECONDS) == GOOD


@pytest.mark.parametrize("failures", [1, 2, 3, 40])
async def test_after_an_outage_of_any_length_the_first_call_sees_the_runtime(
    runtime: Runtime, probe: GrpcRuntimeProbe, failures: int
) -> None:
    assert await probe.status(SECONDS) == GOOD
    await runtime.kill()
    assert [(await probe.status(SECONDS)).code for _ in range(failures)] == ["Unavailable"] * failures
    await runtime.start()
    assert await probe.status(SECONDS) == GOOD


async def test_a_socket_removed_and_made_again_is_seen_although_the_old_server_lives_on(runtime: Runtime, probe: GrpcRuntimeProbe) -> None:
    assert await probe.status(SECONDS) == GOOD
    await runtime.behave(behaviours.Hang())
    runtime.socket_path.rename(runtime.socket_path.with_suffix(".old"))  # the old server is still there, hung, and connected
    assert (await probe.status(SHORT_SECONDS)).code == "DeadlineExceeded"
    successor = Runtime(runtime.socket_path, SystemClock(), WELL)
    await successor.start()
    assert await probe.status(SECONDS) == GOOD
    await successor.stop()


async def test_no_socket_yet_is_unavailable_and_says_where(path: Path, probe: GrpcRuntimeProbe) -> None:
    result = await probe.status(SECONDS)
    assert result.code == "Unavailable"
    assert str(path) in result.message
    runtime = Runtime(path, SystemClock(), WELL)
    await runtime.start()
    assert await probe.status(SECONDS) == GOOD
    await runtime.stop()


async def test_a_well_known_socket_that_appears_later_is_found(path: Path) -> None:
    probe = GrpcRuntimeProbe(None, SystemClock(), well_known_sockets=(str(path.with_name("other.sock")), str(path)))
    assert "looked for" in (await probe.status(SECONDS)).message
    runtime = Runtime(path, SystemClock(), WELL)
    await runtime.start()
    assert await probe.status(SECONDS) == GOOD
    await runtime.stop()
    await probe.close()


async def test_a_path_with_characters_that_uris_escape_is_reached(path: Path) -> None:
    odd = path.with_name("100% ü?#.sock")
    runtime = Runtime(odd, SystemClock(), WELL)
    await runtime.start()
    probe = GrpcRuntimeProbe(socket_endpoint(str(odd)), SystemClock())
    assert await probe.status(SECONDS) == GOOD
    await probe.close()
    await runtime.stop()


@contextlib.asynccontextmanager
async def network_server(port: int = 0) -> AsyncIterator[int]:
    async def status(_request: bytes, _context: grpc.aio.ServicerContext) -> bytes:
        return messages.encode_status_response([("small", 4), ("large", 1)])

    server = grpc.aio.server()
    handlers = {"Status": grpc.unary_unary_rpc_method_handler(status)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(messages.SERVICE, handlers),))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(None)


async def test_a_network_endpoint_is_seen_again_after_a_long_outage_and_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with network_server() as port:
        probe = GrpcRuntimeProbe(Endpoint(f"dns:///127.0.0.1:{port}"), SystemClock())
        assert await probe.status(SECONDS) == GOOD
    for _ in range(20):
        assert (await probe.status(SECONDS)).code == "Unavailable"
    async with network_server(port):
        assert await probe.status(SECONDS) == GOOD
    await probe.close()


async def test_a_runtime_whose_first_frame_takes_a_second_is_still_reached(runtime: Runtime, path: Path) -> None:
    clock = SystemClock()
    relays: list[asyncio.Task[None]] = []

    async def relay_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.append(asyncio.ensure_future(relay(reader, writer)))

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await clock.sleep(0.8)  # a real wait: it is the time that a loaded host takes to answer
        onward_reader, onward_writer = await asyncio.open_unix_connection(runtime.socket_path)
        await asyncio.gather(pump(reader, onward_writer), pump(onward_reader, writer))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the probe closes both directions at once
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    late = path.with_name("late.sock")
    server = await asyncio.start_unix_server(relay_late, late)
    probe = GrpcRuntimeProbe(socket_endpoint(str(late)), clock)
    assert await probe.status(SECONDS) == GOOD
    await probe.close()
    server.close()
    await asyncio.gather(*relays)


async def test_closing_while_a_call_runs_ends_it_as_canceled(runtime: Runtime, probe: GrpcRuntimeProbe) -> None:
    await runtime.behave(behaviours.Hang())
    call = asyncio.create_task(probe.status(SECONDS))
    await a_call_arrived(runtime)
    await probe.close()
    assert (await call).code == "Canceled"


@pytest.mark.usefixtures("runtime")
async def test_starting_a_program_while_grpc_runs_disturbs_neither(probe: GrpcRuntimeProbe, capfd: pytest.CaptureFixture[str]) -> None:
    assert await probe.status(SECONDS) == GOOD
    process = await asyncio.create_subprocess_exec("true", stdout=subprocess.DEVNULL)
    assert await process.wait() == 0
    assert subprocess.run(["true"], check=True).returncode == 0  # noqa: ASYNC221, S607 - exec plugins are started so
    assert await probe.status(SECONDS) == GOOD
    assert capfd.readouterr() == ("", "")


A_RUNTIME_THAT_COMES_AND_GOES = """
import asyncio, sys
from pathlib import Path
from loopwatch.clock import SystemClock
from loopwatch.iri.endpoint import socket_endpoint
from loopwatch.iri.grpc_probe import GrpcRuntimeProbe
from loopwatch.sandbox.runtime import Runtime

async def main():
    path = Path(sys.argv[1])
    runtime, probe = Runtime(path, SystemClock()), GrpcRuntimeProbe(socket_endpoint(str(path)), SystemClock())
    for _ in range(30):
        await runtime.start()
        print((await probe.status(5.0)).code, end=" ")
        await runtime.stop()
    await probe.close()

asyncio.run(main())
"""


async def test_a_runtime_that_comes_and_goes_makes_grpc_write_nothing_to_stderr(path: Path) -> None:
    program = [sys.executable, "-W", "error", "-c", A_RUNTIME_THAT_COMES_AND_GOES, str(path)]
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*program, stdout=pipe, stderr=pipe, env=environment)
    async with asyncio.timeout(30.0):
        assert await process.communicate() == (b"OK " * 30, b"")
