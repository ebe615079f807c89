"""A small HTTP server on loopback for the tests of the connection: it notes what it was asked and answers by a function."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from tests.unit.kube.certificates import Pair

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    client: str
    connection: int
    body: bytes


@dataclass
class ApiServer:
    """Answers `{}` until `handler` is set."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    handler: Handler | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Note and answer."""
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport else None
        subject = dict(entry[0] for entry in certificate["subject"]) if certificate else {}
        peer = transport.get_extra_info("peername")[1] if transport else 0
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.method, request.raw_path, headers, subject.get("commonName", ""), peer, await request.read()))
        if self.handler is None:
            return web.Response(body=b"{}", content_type="application/json")
        return await self.handler(request)

    @property
    def tokens(self) -> list[str]:
        """The Authorization of each request."""
        return [seen.headers.get("authorization", "") for seen in self.seen]


@contextlib.asynccontextmanager
async def serving(pair: Pair | None = None, clients: Path | None = None, port: int = 0) -> AsyncIterator[ApiServer]:
    """Serve on a free port; with `pair` by TLS, with `clients` (an authority) asking for a client certificate."""
    server = ApiServer()
    context = None
    if pair is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_OPTIONAL
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the real API server, written in Go, is not strict either
    runner = web.AppRunner(_application(server), shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
        await site.start()
        server.url = f"http{'s' if context else ''}://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()


def _application(server: ApiServer) -> web.Application:
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", server.answer)
    return application
