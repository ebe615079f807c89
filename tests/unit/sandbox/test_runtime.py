"""The sandbox runtime: what it is told to do, how it ends, and that the one in memory ends like the one on a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from loopwatch.clock import SystemClock
from loopwatch.iri.endpoint import socket_endpoint
from loopwatch.iri.grpc_probe import GrpcRuntimeProbe
from loopwatch.iri.probe import ProbeResult, RuntimeProbe
from loopwatch.sandbox.runtime import MemoryRuntime, Runtime, SocketTaken, behaviours
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour
from tests.support.stepped import SteppedClock, stepped

EVERY_BEHAVIOUR: tuple[AnyBehaviour, ...] = (
    behaviours.Ok({"small": 4, "large": 1}),
    behaviours.Error("FailedPrecondition", "no host"),
    behaviours.Hang(),
    behaviours.Slow(0.02, {"small": 1}),
    behaviours.Slow(30.0),
    behaviours.Huge(),
    behaviours.Undecodable(),
    behaviours.WrongService(),
    behaviours.Http1(),
    behaviours.Garbage(),
    behaviours.Silent(),
    behaviours.Closing(),
)


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="lw") as folder:
        yield Path(folder) / "iri.sock"


def left_behind(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())


def probe_of(path: Path) -> GrpcRuntimeProbe:
    return GrpcRuntimeProbe(socket_endpoint(str(path)), SystemClock())


async def test_it_starts_ends_and_starts_again_and_counts_calls(path: Path) -> None:
    runtime, probe = Runtime(path, SystemClock(), behaviours.Ok({"small": 4})), probe_of(path)
    for round_number in (1, 2, 3):
        await runtime.start()
        assert (await probe.status(5.0)).machine_classes == (("small", 4),)
        await runtime.stop()
        assert left_behind(path) == []
        assert not runtime.running
        assert runtime.status_calls == round_number
    await probe.close()


@pytest.mark.parametrize("behaviour", [behaviours.Ok(), behaviours.Silent()], ids=["grpc", "raw"])
async def test_killed_it_leaves_its_file_and_binds_over_it_when_it_comes_back(path: Path, behaviour: AnyBehaviour) -> None:
    runtime = Runtime(path, SystemClock(), behaviour)
    await runtime.start()
    await runtime.kill()
    assert left_behind(path) == ["iri.sock"]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_unix_connection(path)
    await runtime.start()
    _, writer = await asyncio.open_unix_connection(path)
    writer.close()
    await writer.wait_closed()
    await runtime.stop()
    assert left_behind(path) == []


async def test_ending_what_has_ended_changes_nothing(path: Path) -> None:
    runtime, other = Runtime(path, SystemClock()), Runtime(path, SystemClock())
    await other.start()
    await runtime.stop()
    await runtime.kill()
    assert left_behind(path) == ["iri.sock"]
    await other.stop()


@pytest.mark.parametrize("behaviour", [behaviours.Ok(), behaviours.Silent()], ids=["grpc", "raw"])
async def test_two_servers_never_overlap_on_one_path(path: Path, behaviour: AnyBehaviour) -> None:
    runtime, intruder = Runtime(path, SystemClock(), behaviour), Runtime(path, SystemClock())
    await runtime.start()
    with pytest.raises(SocketTaken, match="a living server answers on"):
        await intruder.start()
    with pytest.raises(SocketTaken, match="already listens on"):
        await runtime.start()
    await runtime.stop()
    await intruder.start()
    await intruder.stop()


async def test_what_is_there_and_no_socket_is_left_alone_and_said(path: Path) -> None:
    runtime = Runtime(path.parent, SystemClock())
    with pytest.raises(SocketTaken, match="is no socket; remove it, or name another path"):
        await runtime.start()
    assert not runtime.running
    assert left_behind(path) == []


async def test_a_call_under_way_gets_the_grace(path: Path) -> None:
    runtime, probe = Runtime(path, SystemClock(), behaviours.Slow(0.05, {"small": 4})), probe_of(path)
    await runtime.start()
    call = asyncio.create_task(probe.status(5.0))
    for _ in range(100_000):
        if runtime.status_calls:
            break
        await asyncio.sleep(0)
    await runtime.stop(grace_seconds=5.0)
    assert (await call).machine_classes == (("small", 4),)
    await probe.close()


async def test_version_is_answered_while_status_hangs(path: Path) -> None:
    runtime, probe = Runtime(path, SystemClock(), behaviours.Hang()), probe_of(path)
    await runtime.start()
    assert (await probe.status(0.1)).code == "DeadlineExceeded"
    assert await probe.version(5.0) == ProbeResult("OK")
    await probe.close()
    await runtime.stop()


async def test_each_call_may_ask_what_to_do(path: Path) -> None:
    orders: list[AnyBehaviour] = [behaviours.Ok(), behaviours.Error("Aborted", "x"), behaviours.WrongService(), behaviours.Garbage()]
    runtime, probe = Runtime(path, SystemClock(), behaviour_of_call=lambda: orders[0]), probe_of(path)
    await runtime.start()
    codes = []
    while orders:
        codes.append((await probe.status(5.0)).code)
        del orders[0]
    assert codes == ["OK", "Aborted", "Unimplemented", "Unavailable"]
    await probe.close()
    await runtime.stop()


@pytest.mark.parametrize("behaviour", EVERY_BEHAVIOUR, ids=repr)
async def test_in_memory_each_behaviour_ends_as_it_does_on_a_socket(path: Path, behaviour: AnyBehaviour) -> None:
    clock = SystemClock()
    real, memory, probe = Runtime(path, clock, behaviour), MemoryRuntime(clock, behaviour), probe_of(path)
    await real.start()
    on_the_socket, in_memory = await probe.status(0.2), await memory.status(0.2)
    versions = (await probe.version(0.2)).code, (await memory.version(0.2)).code
    calls = (real.status_calls, real.version_calls), (memory.status_calls, memory.version_calls)
    await probe.close()
    await real.stop()
    assert (in_memory.code, in_memory.machine_classes) == (on_the_socket.code, on_the_socket.machine_classes)
    assert versions[0] == versions[1]
    assert calls[0] == calls[1]


async def test_in_memory_being_gone_and_back_ends_as_it_does_on_a_socket(path: Path) -> None:
    clock = SystemClock()
    real, memory, probe = Runtime(path, clock), MemoryRuntime(clock), probe_of(path)
    pairs: list[tuple[Runtime | MemoryRuntime, RuntimeProbe]] = [(real, probe), (memory, memory)]
    await real.start()
    seen: dict[str, list[str]] = {}
    for runtime, client in pairs:
        codes = seen.setdefault(type(runtime).__name__, [])
        for change in (runtime.stop, runtime.start, runtime.kill, runtime.start):
            await change()
            codes.append((await client.status(5.0)).code)
    assert seen["Runtime"] == seen["MemoryRuntime"] == ["Unavailable", "OK", "Unavailable", "OK"]
    await probe.close()
    await real.stop()


@stepped
async def test_in_memory_time_is_the_clocks() -> None:
    clock = SteppedClock()
    runtime = MemoryRuntime(clock, behaviours.Slow(3.0, {"small": 1}))
    began = clock.monotonic()
    assert (await runtime.status(5.0)).succeeded
    assert clock.monotonic() - began == 3.0
    for behaviour in (behaviours.Slow(5.0), behaviours.Slow(3600.0), behaviours.Hang(), behaviours.Silent()):
        await runtime.behave(behaviour)
        began = clock.monotonic()
        assert (await runtime.status(5.0)).code == "DeadlineExceeded"
        assert clock.monotonic() - began == 5.0


@stepped
async def test_in_memory_a_silent_socket_is_waited_for_until_it_speaks() -> None:
    clock = SteppedClock()
    runtime = MemoryRuntime(clock, behaviours.Silent())
    waiting = asyncio.create_task(runtime.version(None))
    await clock.sleep(3600.0)
    assert not waiting.done()
    await runtime.kill()
    assert (await waiting).code == "Unavailable"


@pytest.mark.parametrize("behaviour", EVERY_BEHAVIOUR, ids=repr)
def test_a_behaviour_is_json_and_back(behaviour: AnyBehaviour) -> None:
    assert behaviours.parse(behaviours.render(behaviour)) == behaviour


@pytest.mark.parametrize("text", [b"", b"{", b"{}", b'{"kind":"lazy"}', b'{"kind":"slow"}', b'{"kind":"error","code":"OK"}', b"[]"])
def test_json_that_names_no_behaviour_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="no behaviour"):
        behaviours.parse(text)
