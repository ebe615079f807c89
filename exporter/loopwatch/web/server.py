"""The listen address of a process: /metrics, /healthz, /readyz and, where there is one, the plain page.

It answers GET and HEAD, reflects nothing that it was sent, and no fault in an answer reaches the loops beside it. With a judge, whatever
is neither /healthz nor /readyz is answered only to those whom it allows: probes bring no token.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NoReturn

from aiohttp import web

from loopwatch.clock import Clock
from loopwatch.log import get_logger
from loopwatch.metrics import text
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Moment
from loopwatch.web import page as pages
from loopwatch.web.auth import Judges, Verdict
from loopwatch.web.health import Health
from loopwatch.web.protection import UNPROTECTED, Protection

SHUTDOWN_SECONDS = 0.5
"""How long an answer under way may take once the process ends: SIGTERM has to be done within 2 s."""
BACKLOG = 128
INDEX = "loopwatch serves /metrics, /healthz and /readyz here.\n"
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What is answered without a verdict."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ListenError(Exception):
    """The listen address can't be had; the text says why, and what to do."""


class Server:
    """Serves one process. `now` reads both clocks; `page` renders the plain page, None where the process has none.

    Without `protection` everything is open to whoever reaches the address, over plain HTTP.
    """

    def __init__(
        self,
        store: Store,
        health: Health,
        *,
        now: Callable[[], Moment],
        page: Callable[[], str] | None = None,
        protection: Protection = UNPROTECTED,
    ) -> None:
        self._store = store
        self._health = health
        self._now = now
        self._page = page
        self._protection = protection

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[int]:
        """Serve while the context is open, on every address where `host` is empty; yields the port (of 0, the one it got).

        Raises ListenError where the address can't be had.
        """
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        async with AsyncExitStack() as stack:
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            certificate = self._protection.certificate
            tls = certificate.context if certificate else None
            try:
                if host:
                    await web.TCPSite(runner, host, port, backlog=BACKLOG, ssl_context=tls).start()
                else:
                    await web.SockSite(runner, _on_every_address(port), backlog=BACKLOG, ssl_context=tls).start()
            except OSError as error:
                raise ListenError(_why_not(host, port, error)) from error
            yield int(runner.addresses[0][1])

    async def keep_listening(self, host: str, port: int, clock: Clock, retry_seconds: float) -> NoReturn:
        """Serve until cancelled; an address that can't be had is said once and tried again each `retry_seconds`."""
        logger = get_logger()
        refused = ""
        while True:
            try:
                async with self.listening(host, port) as bound:
                    logger.info("listening", address=f"{host}:{bound}")
                    while True:
                        await clock.sleep(retry_seconds)
            except ListenError as error:
                if str(error) != refused:
                    logger.warning("not listening; tried again until it works", problem=str(error), retry_seconds=retry_seconds)
                refused = str(error)
            await clock.sleep(retry_seconds)

    def _application(self) -> web.Application:
        judge = self._protection.judge
        application = web.Application(middlewares=[_plain_errors, *([_judged(judge)] if judge else ())])
        application.on_response_prepare.append(_guard)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/", self._root)
        if self._page:
            application.router.add_get("/page.css", _style)
        return application

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._store.render(self._now()), headers={"Content-Type": text.CONTENT_TYPE})

    async def _healthz(self, _request: web.Request) -> web.Response:
        stuck = self._health.loops.stuck()
        return _verdict(f"stuck: {', '.join(stuck)}" if stuck else "")

    async def _readyz(self, _request: web.Request) -> web.Response:
        missing = self._health.readiness.missing()
        return _verdict(f"not yet: {', '.join(missing)}" if missing else "")

    async def _root(self, _request: web.Request) -> web.Response:
        if not self._page:
            return web.Response(text=INDEX)
        body = self._page().encode("utf-8", errors="replace")
        return web.Response(body=body, content_type="text/html", charset="utf-8", headers=pages.HEADERS)


async def _style(_request: web.Request) -> web.Response:
    return web.Response(text=pages.STYLE, content_type="text/css")


def _verdict(problem: str) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    if problem:
        return web.Response(status=web.HTTPServiceUnavailable.status_code, text=f"{problem}\n", headers=headers)
    return web.Response(text="ok\n", headers=headers)


def _judged(judge: Judges) -> Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]:
    """A middleware that asks `judge` about each request for something that is there and not open."""

    @web.middleware
    async def judged(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in OPEN_PATHS or request.match_info.http_exception is not None:
            return await handler(request)
        verdict = await judge.judge(_token(request), request.path)
        return await handler(request) if verdict is Verdict.ALLOWED else _refusal(verdict)

    return judged


def _token(request: web.Request) -> str:
    """The bearer token; empty where there is none, or more than one Authorization."""
    sent = request.headers.getall("Authorization", [])
    scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.isascii() and token.isprintable() and " " not in token else ""


def _refusal(verdict: Verdict) -> web.Response:
    status, text, headers = _REFUSALS[verdict]
    return web.Response(status=status, text=text, headers={"Cache-Control": "no-store", **headers})


_REFUSALS = {
    Verdict.NOT_AUTHENTICATED: (
        401,
        "A bearer token that the API server accepts is needed here (--metrics-auth kubernetes).\n",
        {"WWW-Authenticate": 'Bearer realm="loopwatch"'},
    ),
    Verdict.DENIED: (
        403,
        "The token's user may not see this; a ClusterRole with the verb get on this path as nonResourceURL would allow it.\n",
        {},
    ),
    Verdict.UNDECIDED: (503, "The API server can't be asked whether the token's user may see this; try again.\n", {"Retry-After": "5"}),
}


@web.middleware
async def _plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """404 and 405 say what there is; nothing of the request comes back in them."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return web.Response(status=web.HTTPNotFound.status_code, text=INDEX)
    except web.HTTPMethodNotAllowed as error:
        return web.Response(status=error.status_code, text="Only GET and HEAD are answered.\n", headers={"Allow": "GET, HEAD"})


async def _guard(_request: web.BaseRequest, response: web.StreamResponse) -> None:
    response.headers["Server"] = "loopwatch"
    response.headers["X-Content-Type-Options"] = "nosniff"


def _on_every_address(port: int) -> socket.socket:
    """One socket for IPv4 and IPv6, as Go listens on `:PORT`; for IPv4 alone where the machine has no IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                raise
    return socket.create_server(("", port), family=socket.AF_INET, backlog=BACKLOG)


def _why_not(host: str, port: int, error: OSError) -> str:
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"can't listen on {where}: the port is in use; stop what listens there or give another with --listen-address (demo: --port)"
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return f"can't listen on {where}: {reason}; give another address with --listen-address (demo: --port)"
