"""The sandbox's API server over HTTP, on loopback alone: what `loopwatch demo`, kubectl and the contract suite talk to.

It only carries requests to `ApiServer.handle` and answers back: a watch goes out one chunk a line, a lost answer and a cut stream
become a connection that breaks. Paths under /_sandbox/ are the control door. It refuses to listen on anything but loopback: whoever
reaches it is an admin.
"""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
from aiohttp import web

from loopwatch.kube.transport import Request
from loopwatch.sandbox import door
from loopwatch.sandbox.apiserver import Answer, AnswerLost, ApiServer, Identity, StreamCut

SHUTDOWN_SECONDS = 0.1
LARGEST_BODY_BYTES = 3 * 1024 * 1024
"""As the real server's limit of a request."""


@contextlib.asynccontextmanager
async def serve(api: ApiServer, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """Serve on a loopback port (0: a free one); gives the address, such as `http://127.0.0.1:40001`.

    ValueError for a host that is not loopback, OSError for a port that is taken. Leaving closes every connection at once.
    """
    if not ipaddress.ip_address(host).is_loopback:
        raise ValueError(f"host {host} is not loopback: the sandbox has no access control; use 127.0.0.1 or ::1")
    application = web.Application(client_max_size=LARGEST_BODY_BYTES)
    application.router.add_route("*", "/{path:.*}", _Handler(api).handle)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        shown = f"[{host}]" if ":" in host else host
        yield f"{'https' if tls else 'http'}://{shown}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def write_kubeconfig(path: Path, address: str, *, token: str | None = None, ca_file: Path | None = None) -> None:
    """A kubeconfig for `address`, readable by its owner alone; JSON, which every reader of YAML takes."""
    cluster: dict[str, str] = {"server": address} | ({"certificate-authority": str(ca_file)} if ca_file else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": cluster}],
        "users": [{"name": "sandbox", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
        "current-context": "sandbox",
    }
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(config)) + b"\n")


class _Handler:
    def __init__(self, api: ApiServer) -> None:
        self._api = api

    async def handle(self, request: web.Request) -> web.StreamResponse:
        asked = Request(request.method, request.path, tuple(request.query.items()), dict(request.headers), await request.read())
        if request.path.startswith(door.PREFIX):
            return _whole(door.answer(self._api, asked))
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        identity = Identity(request.headers.get("User-Agent", ""), token.strip() if scheme.lower() == "bearer" else None)
        try:
            answer = await self._api.handle(asked, identity)
        except AnswerLost:
            _break(request)
            return web.Response()
        return _whole(answer) if answer.stream is None else await _stream(request, answer)


async def _stream(request: web.Request, answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    stream = answer.stream
    if stream is None:
        return response
    try:
        await response.write(b"")  # sends the head: a client of a quiet watch must see that it was accepted
        async for line in stream:
            await response.write(line)
        await response.write_eof()
    except StreamCut:
        _break(request)
    except ConnectionError:
        pass  # the client went away: its business
    finally:
        await stream.aclose()
    return response


def _whole(answer: Answer) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body, headers=answer.headers)
    for warning in answer.warnings:
        response.headers.add("Warning", warning)
    return response


def _break(request: web.Request) -> None:
    """Close the connection without another byte."""
    if request.transport is not None:
        request.transport.abort()
