"""The probe that calls the machine runtime over gRPC.

One channel lives as long as it is of use. gRPC's own reconnecting is tuned down (a default channel makes no attempt for up to two minutes
after a long outage), and where it can't help, a new channel is opened: the socket was made again (a living connection would go on talking
to whoever still holds the removed one), or calls go on failing. So a runtime that is back is seen by the next call.

It refuses to retry within a call (the caller's interval is the retry), to wait for a connection longer than for an answer, and to hang:
the deadline is gRPC's, and an asyncio timeout stands behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from loopwatch.clock import Clock
from loopwatch.iri import messages
from loopwatch.iri.endpoint import (
    WELL_KNOWN_SOCKETS,
    Endpoint,
    IdentityOf,
    KindOf,
    SocketIdentity,
    first_socket,
    path_kind,
    socket_identity,
)
from loopwatch.iri.probe import CODES, ProbeResult, deadline_exceeded, failed

FAILURES_BEFORE_REOPENING = 3
"""So many Unavailable or DeadlineExceeded in a row, and each further call gets a channel of its own."""
STUCK_SECONDS = 0.5
"""How much later than the deadline a call is given up although gRPC has not ended it."""

CHANNEL_OPTIONS: Sequence[tuple[str, int]] = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Also how long one attempt may take until the server's first frame: with 500 ms a runtime on a loaded host that needs a second for it
    # is never reached at all (measured), so it gets as long as a default probe.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    # A new channel must not inherit the old one's back-off.
    ("grpc.use_local_subchannel_pool", 1),
    # Like everything that is said to a neighbour in the pod: HTTPS_PROXY is not for it.
    ("grpc.enable_http_proxy", 0),
)

OpenChannel = Callable[[str], grpc.aio.Channel]

_REOPENING_CODES = frozenset({"Unavailable", "DeadlineExceeded"})
_LIBRARY_ERRORS = (grpc.RpcError, grpc.aio.BaseError, OSError, RuntimeError, ValueError, TypeError)


def open_channel(target: str) -> grpc.aio.Channel:
    """A channel as this module needs it; it connects at the first call."""
    return grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS)


def go_code(code: grpc.StatusCode) -> str:
    """Go's name of a code."""
    number: int = code.value[0]
    return CODES[number]


class GrpcRuntimeProbe:
    """A RuntimeProbe on a real socket. It belongs to the event loop that makes the first call.

    With `endpoint` None the well-known sockets are looked for at each call until one is there, and again once it is gone.
    """

    def __init__(
        self,
        endpoint: Endpoint | None,
        clock: Clock,
        *,
        well_known_sockets: Sequence[str] = WELL_KNOWN_SOCKETS,
        kind_of: KindOf = path_kind,
        identity_of: IdentityOf = socket_identity,
        open_channel: OpenChannel = open_channel,
    ) -> None:
        self._endpoint = endpoint
        self._looked_for = () if endpoint else tuple(well_known_sockets)
        self._clock = clock
        self._kind_of = kind_of
        self._identity_of = identity_of
        self._open_channel = open_channel
        self._channel: grpc.aio.Channel | None = None
        self._identity: SocketIdentity | None = None
        self._failures = 0
        self._closed = False

    async def status(self, timeout_seconds: float) -> ProbeResult:
        """Call Status once; see RuntimeProbe."""
        answer = await self._call(messages.STATUS_PATH, messages.encode_status_request(), timeout_seconds)
        if isinstance(answer, ProbeResult):
            return answer
        try:
            return ProbeResult("OK", machine_classes=messages.decode_status_response(answer))
        except messages.UndecodableAnswer as error:
            return failed("Internal", f"grpc: failed to unmarshal the received message: {error}")

    async def version(self, timeout_seconds: float | None) -> ProbeResult:
        """Call Version once: does this runtime speak the interface at all? None waits without a deadline, as upstream does at its start."""
        answer = await self._call(messages.VERSION_PATH, messages.encode_version_request(""), timeout_seconds)
        if isinstance(answer, ProbeResult):
            return answer
        try:
            messages.decode_version_response(answer)
        except messages.UndecodableAnswer as error:
            return failed("Internal", f"grpc: failed to unmarshal the received message: {error}")
        return ProbeResult("OK")

    async def close(self) -> None:
        """Close the channel; a call under way, and each later one, ends as Canceled."""
        self._closed = True
        await self._drop_channel()

    async def _call(self, path: str, request: bytes, timeout_seconds: float | None) -> bytes | ProbeResult:
        if self._closed:
            return failed("Canceled", "grpc: the client connection is closing")
        deadline = None if timeout_seconds is None else self._clock.monotonic() + timeout_seconds
        self._look_for_socket()
        if self._endpoint is None:
            return failed("Unavailable", f"no machine runtime socket: looked for {', '.join(self._looked_for)}")
        try:
            channel = await self._usable_channel(self._endpoint)
            answer = await self._exchange(channel, path, request, deadline)
        except _LIBRARY_ERRORS as error:
            await self._drop_channel()
            answer = failed("Unknown", f"{type(error).__name__}: {error}")
        broken = isinstance(answer, ProbeResult) and answer.code in _REOPENING_CODES
        self._failures = self._failures + 1 if broken else 0
        return answer

    async def _exchange(self, channel: grpc.aio.Channel, path: str, request: bytes, deadline: float | None) -> bytes | ProbeResult:
        left = None if deadline is None else max(deadline - self._clock.monotonic(), 0.0)
        try:
            async with asyncio.timeout(None if left is None else left + STUCK_SECONDS):
                # Bytes in, bytes out: gRPC would log what its deserializer raises, and hide it.
                call: Any = channel.unary_unary(path)(request, timeout=left, wait_for_ready=False)
                answer: bytes = await call
                return answer
        except TimeoutError:
            await self._drop_channel()
            return deadline_exceeded()
        except grpc.aio.AioRpcError as error:
            return _refused(error)
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            return failed("Canceled", "grpc: the client connection is closing")

    async def _usable_channel(self, endpoint: Endpoint) -> grpc.aio.Channel:
        identity = self._identity_of(endpoint.socket_path) if endpoint.socket_path else None
        made_again = identity is not None and identity != self._identity
        if made_again or self._failures >= FAILURES_BEFORE_REOPENING:
            await self._drop_channel()
        self._identity = identity or self._identity
        if self._channel is None:
            self._channel = self._open_channel(endpoint.target)
        return self._channel

    def _look_for_socket(self) -> None:
        if not self._looked_for:
            return
        known = first_socket([self._endpoint.socket_path], self._kind_of) if self._endpoint else None
        # Where nothing is found the old endpoint stays: its connection may live on without a file.
        self._endpoint = known or first_socket(self._looked_for, self._kind_of) or self._endpoint

    async def _drop_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


def _refused(error: grpc.aio.AioRpcError) -> ProbeResult:
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and details == "Deadline Exceeded":
        return deadline_exceeded()
    return failed(go_code(code), details)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
