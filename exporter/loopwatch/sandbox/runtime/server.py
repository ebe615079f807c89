"""The sandbox runtime as a real gRPC server on a unix socket.

It keeps out of one trap (facts: gRPC over a unix socket): a server that stops removes the path even when a newer one is bound there, so
two servers never overlap on one path: `start` refuses where something answers, and each change waits until the old server has ended.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from loopwatch.clock import Clock
from loopwatch.iri import messages
from loopwatch.iri.endpoint import socket_endpoint
from loopwatch.iri.probe import CODES
from loopwatch.sandbox.runtime.behaviours import (
    HUGE_REPLY_BYTES,
    AnyBehaviour,
    Error,
    Hang,
    Huge,
    Ok,
    Slow,
    SocketBehaviour,
    Undecodable,
    WrongService,
)
from loopwatch.sandbox.runtime.raw import RawServer

CONNECT_SECONDS = 1.0
_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class SocketTaken(RuntimeError):
    """Something else is at the path: a server that answers, or a file that is no socket."""


class Runtime:
    """A machine runtime on `socket_path`; `behaviour_of_call`, where given, is asked at each call what to do."""

    def __init__(
        self,
        socket_path: Path,
        clock: Clock,
        behaviour: AnyBehaviour | None = None,
        behaviour_of_call: Callable[[], AnyBehaviour] | None = None,
    ) -> None:
        self.socket_path = socket_path
        self._clock = clock
        self._behaviour: AnyBehaviour = behaviour or Ok()
        self._behaviour_of_call = behaviour_of_call or (lambda: self._behaviour)
        self._grpc_server: Any = None  # grpcio ships no types
        self._raw_server: RawServer | None = None
        self.status_calls = 0
        self.version_calls = 0

    @property
    def running(self) -> bool:
        """True from `start` to `stop` or `kill`."""
        return self._grpc_server is not None or self._raw_server is not None

    async def start(self) -> None:
        """Listen on the path, over a dead server's socket if there is one. SocketTaken where a living one is there."""
        if self.running:
            raise SocketTaken(f"this runtime already listens on {self.socket_path}: stop it first")
        await self._refuse_what_is_not_ours()
        if isinstance(self._behaviour, SocketBehaviour):
            self._raw_server = RawServer(self._behaviour, self._clock)
            await self._raw_server.start(self.socket_path)
            return
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((_Service(self),))
        server.add_insecure_port(socket_endpoint(str(self.socket_path)).target)
        await server.start()
        self._grpc_server = server

    async def stop(self, grace_seconds: float = 0.0) -> None:
        """End as on SIGTERM: calls under way get `grace_seconds`, and the path is gone afterwards. Without effect where it has ended."""
        if self.running:
            await self._end(grace_seconds)
            self.socket_path.unlink(missing_ok=True)

    async def kill(self) -> None:
        """End as on SIGKILL: connections are cut, and the socket's file stays behind. Without effect where it has ended."""
        if not self.running:
            return
        aside = self.socket_path.with_name(self.socket_path.name + ".killed")
        self.socket_path.rename(aside)  # else the ending server would remove it
        await self._end(0.0)
        aside.rename(self.socket_path)

    async def behave(self, behaviour: AnyBehaviour) -> None:
        """Do so from the next call on. Becoming, or ceasing to be, something else than a gRPC server means a new socket."""
        if behaviour == self._behaviour:
            return
        another_server = isinstance(behaviour, SocketBehaviour) or isinstance(self._behaviour, SocketBehaviour)
        self._behaviour = behaviour
        if another_server and self.running:
            await self.stop()
            await self.start()

    async def status(self, context: grpc.aio.ServicerContext) -> bytes:
        """Answer one Status call as told."""
        self.status_calls += 1
        behaviour = self._behaviour_of_call()
        if isinstance(behaviour, Error):
            await context.abort(_STATUS_CODES[CODES.index(behaviour.code)], behaviour.details)
        if isinstance(behaviour, Hang):
            await asyncio.Event().wait()  # the client's deadline, or the end of the server, cancels it
        if isinstance(behaviour, Slow):
            await self._clock.sleep(behaviour.seconds)
        if isinstance(behaviour, Huge):
            return messages.encode_status_response([("x" * HUGE_REPLY_BYTES, 1)])
        if isinstance(behaviour, Undecodable):
            return b"\xff\xff\xff"
        if isinstance(behaviour, Ok | Slow):
            return messages.encode_status_response(behaviour.machine_classes.items())
        await context.abort(grpc.StatusCode.UNAVAILABLE, f"about to become {type(behaviour).__name__}")
        raise AssertionError("abort always raises")

    async def version(self) -> bytes:
        """Answer one Version call."""
        self.version_calls += 1
        return messages.encode_version_response("loopwatch-sandbox", "0.0.0")

    def offers_the_service(self) -> bool:
        """False where it is told to be a server of another service."""
        return not isinstance(self._behaviour_of_call(), WrongService)

    async def _end(self, grace_seconds: float) -> None:
        if self._grpc_server:
            server, self._grpc_server = self._grpc_server, None
            await server.stop(grace_seconds or None)
        if self._raw_server:
            raw_server, self._raw_server = self._raw_server, None
            await raw_server.stop()

    async def _refuse_what_is_not_ours(self) -> None:
        try:
            mode = self.socket_path.stat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(mode):
            raise SocketTaken(f"{self.socket_path} is there but is no socket; remove it, or name another path")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, writer = await asyncio.open_unix_connection(self.socket_path)
        except (ConnectionRefusedError, FileNotFoundError):
            return  # a dead server's: the new one binds over it
        writer.close()
        raise SocketTaken(f"a living server answers on {self.socket_path}; stop it first")


class _Service(grpc.GenericRpcHandler):  # type: ignore[misc] # grpcio ships no types
    """Finds the method of a call: the two that the interface's clients here use, as bytes in and bytes out."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """The handler, or None: Unimplemented."""
        if not self._runtime.offers_the_service():
            return None
        handler = {messages.STATUS_PATH: self._status, messages.VERSION_PATH: self._version}.get(handler_call_details.method)
        return handler and grpc.unary_unary_rpc_method_handler(handler)

    async def _status(self, _request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return await self._runtime.status(context)

    async def _version(self, _request: bytes, _context: grpc.aio.ServicerContext) -> bytes:
        return await self._runtime.version()
