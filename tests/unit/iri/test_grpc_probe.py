"""loopwatch.iri.grpc_probe without a network: what it does with channels, and that nothing gRPC does escapes as an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from loopwatch.iri import messages
from loopwatch.iri.endpoint import Endpoint, PathKind, SocketIdentity
from loopwatch.iri.grpc_probe import STUCK_SECONDS, GrpcRuntimeProbe
from loopwatch.iri.probe import ProbeResult
from tests.support.stepped import SteppedClock, stepped

SOCKET = Endpoint("unix:/run/a.sock", "/run/a.sock")
GOOD_ANSWER = messages.encode_status_response([("small", 4)])
GOOD = ProbeResult("OK", machine_classes=(("small", 4),))
Answer = Callable[[], Awaitable[bytes]]


def rpc_error(code: grpc.StatusCode, details: str | None = "gone") -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


async def good() -> bytes:
    return GOOD_ANSWER


def raises(error: BaseException) -> Answer:
    async def answer() -> bytes:
        raise error

    return answer


async def stuck() -> bytes:
    await asyncio.Event().wait()
    raise AssertionError("never reached")


class FakeChannel:
    """A channel whose calls end as the wire says; it notes what it was asked."""

    def __init__(self, wire: Wire, target: str) -> None:
        self._wire = wire
        self.target = target
        self.closed = False

    def unary_unary(self, path: str) -> Callable[..., Awaitable[bytes]]:
        """As grpc.aio.Channel: what calls the method at `path`."""

        def call(request: bytes, *, timeout: float | None, wait_for_ready: bool) -> Awaitable[bytes]:
            self._wire.calls.append((path, request, timeout, wait_for_ready))
            return self._wire.answer()

        return call

    async def close(self) -> None:
        """As grpc.aio.Channel."""
        self.closed = True


class Wire:
    """What all channels of a test share."""

    def __init__(self) -> None:
        self.answer: Answer = good
        self.calls: list[tuple[str, bytes, float | None, bool]] = []
        self.channels: list[FakeChannel] = []
        self.identity: SocketIdentity | None = (1, 1, 1)
        self.sockets: set[str] = set()

    def open_channel(self, target: str) -> Any:
        """A new channel to `target`."""
        self.channels.append(FakeChannel(self, target))
        return self.channels[-1]

    def identity_of(self, _path: str) -> SocketIdentity | None:
        """Whatever the path, what the test says."""
        return self.identity

    def kind_of(self, path: str) -> PathKind:
        """A socket where the test says so."""
        return PathKind.SOCKET if path in self.sockets else PathKind.ABSENT

    def probe(self, endpoint: Endpoint | None = SOCKET) -> GrpcRuntimeProbe:
        """A probe on this wire."""
        return GrpcRuntimeProbe(
            endpoint,
            SteppedClock(),
            well_known_sockets=("/run/broker", "/run/provider"),
            kind_of=self.kind_of,
            identity_of=self.identity_of,
            open_channel=self.open_channel,
        )


@stepped
async def test_an_answer_brings_the_classes_over_one_channel_that_is_kept() -> None:
    wire = Wire()
    probe = wire.probe()
    assert [await probe.status(5.0) for _ in range(10)] == [GOOD] * 10
    assert wire.calls == [(messages.STATUS_PATH, b"", 5.0, False)] * 10
    assert [channel.target for channel in wire.channels] == ["unix:/run/a.sock"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (rpc_error(grpc.StatusCode.UNAVAILABLE), "Unavailable", "rpc error: code = Unavailable desc = gone"),
        (
            rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"),
            "DeadlineExceeded",
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
        ),
        (
            rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "libvirt: slow"),
            "DeadlineExceeded",
            "rpc error: code = DeadlineExceeded desc = libvirt: slow",
        ),
        (
            rpc_error(grpc.StatusCode.UNAVAILABLE, "Deadline Exceeded"),
            "Unavailable",
            "rpc error: code = Unavailable desc = Deadline Exceeded",
        ),
        (rpc_error(grpc.StatusCode.CANCELLED, ""), "Canceled", "rpc error: code = Canceled desc = "),
        (rpc_error(grpc.StatusCode.INTERNAL, None), "Internal", "rpc error: code = Internal desc = "),
        (rpc_error(grpc.StatusCode.UNAUTHENTICATED, "a\nb"), "Unauthenticated", "rpc error: code = Unauthenticated desc = a b"),
        (grpc.aio.UsageError("Channel is closed."), "Unknown", "rpc error: code = Unknown desc = UsageError: Channel is closed."),
        (grpc.aio.InternalError("batch"), "Unknown", "rpc error: code = Unknown desc = InternalError: batch"),
        (RuntimeError("no poller"), "Unknown", "rpc error: code = Unknown desc = RuntimeError: no poller"),
        (OSError(24, "Too many open files"), "Unknown", "rpc error: code = Unknown desc = OSError: [Errno 24] Too many open files"),
        (asyncio.CancelledError(), "Canceled", "rpc error: code = Canceled desc = grpc: the client connection is closing"),
    ],
)
@stepped
async def test_whatever_goes_wrong_is_an_outcome_with_gos_words(error: BaseException, code: str, message: str) -> None:
    wire = Wire()
    wire.answer = raises(error)
    result = await wire.probe().status(5.0)
    assert (result.code, result.message, result.machine_classes) == (code, message, ())


@stepped
async def test_an_answer_that_cannot_be_decoded_is_internal() -> None:
    wire = Wire()

    async def nonsense() -> bytes:
        return b"\xff"

    wire.answer = nonsense
    assert (await wire.probe().status(5.0)).message == (
        "rpc error: code = Internal desc = grpc: failed to unmarshal the received message: 1 bytes are no StatusResponse"
    )


@stepped
async def test_a_library_that_never_ends_the_call_is_given_up_shortly_after_the_deadline() -> None:
    wire, loop = Wire(), asyncio.get_running_loop()
    probe = wire.probe()
    wire.answer = stuck
    began = loop.time()
    assert (await probe.status(5.0)).code == "DeadlineExceeded"
    assert loop.time() - began == pytest.approx(5.0 + STUCK_SECONDS)
    wire.answer = good
    assert await probe.status(5.0) == GOOD
    assert [channel.closed for channel in wire.channels] == [True, False]


@stepped
async def test_a_broken_library_gets_a_new_channel_at_once() -> None:
    wire = Wire()
    probe = wire.probe()
    wire.answer = raises(grpc.aio.UsageError("Channel is closed."))
    await probe.status(5.0)
    wire.answer = good
    assert await probe.status(5.0) == GOOD
    assert [channel.closed for channel in wire.channels] == [True, False]


@stepped
async def test_cancelling_the_caller_cancels_the_probe() -> None:
    wire = Wire()
    wire.answer = stuck
    task = asyncio.create_task(wire.probe().status(5.0))
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
@stepped
async def test_after_three_failures_in_a_row_each_call_gets_a_channel_of_its_own(code: grpc.StatusCode) -> None:
    wire = Wire()
    probe = wire.probe()
    wire.answer = raises(rpc_error(code))
    opened = []
    for _ in range(6):
        await probe.status(5.0)
        opened.append(len(wire.channels))
    assert opened == [1, 1, 1, 2, 3, 4]
    wire.answer = good
    await probe.status(5.0)
    await probe.status(5.0)
    assert len(wire.channels) == 5
    assert [channel.closed for channel in wire.channels] == [True, True, True, True, False]


@stepped
async def test_a_runtime_that_answers_with_errors_keeps_its_channel() -> None:
    wire = Wire()
    probe = wire.probe()
    wire.answer = raises(rpc_error(grpc.StatusCode.INTERNAL))
    for _ in range(10):
        await probe.status(5.0)
    assert len(wire.channels) == 1


@stepped
async def test_any_other_outcome_ends_the_row_of_failures() -> None:
    wire = Wire()
    probe = wire.probe()
    for _ in range(5):
        wire.answer = raises(rpc_error(grpc.StatusCode.UNAVAILABLE))
        await probe.status(5.0)
        await probe.status(5.0)
        wire.answer = good
        await probe.status(5.0)
    assert len(wire.channels) == 1


@stepped
async def test_a_socket_that_was_made_again_gets_a_new_channel_and_one_that_was_only_removed_does_not() -> None:
    wire = Wire()
    probe = wire.probe()
    await probe.status(5.0)
    wire.identity = None
    await probe.status(5.0)
    wire.identity = (1, 1, 1)
    await probe.status(5.0)
    assert len(wire.channels) == 1
    wire.identity = (1, 1, 2)
    await probe.status(5.0)
    await probe.status(5.0)
    assert [channel.closed for channel in wire.channels] == [True, False]


@stepped
async def test_a_network_endpoint_has_no_file_to_watch() -> None:
    wire = Wire()
    probe = wire.probe(Endpoint("dns:///localhost:1"))
    await probe.status(5.0)
    wire.identity = (2, 2, 2)
    await probe.status(5.0)
    assert [channel.target for channel in wire.channels] == ["dns:///localhost:1"]


@stepped
async def test_without_an_endpoint_the_sockets_are_looked_for_at_each_call() -> None:
    wire = Wire()
    probe = wire.probe(None)
    missing = "rpc error: code = Unavailable desc = no machine runtime socket: looked for /run/broker, /run/provider"
    assert await probe.status(5.0) == ProbeResult("Unavailable", missing)
    assert wire.calls == []
    wire.sockets = {"/run/provider"}
    assert await probe.status(5.0) == GOOD
    wire.sockets = {"/run/provider", "/run/broker"}
    await probe.status(5.0)
    wire.sockets, wire.identity = {"/run/broker"}, (1, 2, 2)
    await probe.status(5.0)
    wire.sockets, wire.identity = set(), None
    await probe.status(5.0)
    assert [channel.target for channel in wire.channels] == ["unix:/run/provider", "unix:/run/broker"]


@stepped
async def test_after_closing_every_call_is_canceled_and_the_channel_is_closed() -> None:
    wire = Wire()
    probe = wire.probe()
    await probe.status(5.0)
    await probe.close()
    await probe.close()
    assert wire.channels[0].closed
    assert (await probe.status(5.0)).message == "rpc error: code = Canceled desc = grpc: the client connection is closing"
    assert len(wire.channels) == 1


@stepped
async def test_version_asks_whether_the_interface_is_spoken_and_may_wait_for_ever() -> None:
    wire = Wire()
    probe = wire.probe()

    async def version() -> bytes:
        return messages.encode_version_response("libvirt", "0.1.2")

    wire.answer = version
    assert await probe.version(None) == ProbeResult("OK")
    assert wire.calls == [(messages.VERSION_PATH, b"", None, False)]
    wire.answer = raises(rpc_error(grpc.StatusCode.UNIMPLEMENTED, "unknown service"))
    assert (await probe.version(1.0)).message == "rpc error: code = Unimplemented desc = unknown service"

    async def nonsense() -> bytes:
        return b"\xff"

    wire.answer = nonsense
    assert (await probe.version(1.0)).code == "Internal"
