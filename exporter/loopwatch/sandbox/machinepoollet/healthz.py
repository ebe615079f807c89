"""The stand-in's healthz: upstream's checks, in memory and as HTTP on loopback.

Two checks: `ping`, which never fails, and `machine-events`, which fails before the runtime was asked for its machines once, and when that
has not succeeded for the relist threshold. A lease or a condition that can't be written shows nowhere here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from loopwatch.clock import Clock

RELIST_PERIOD_SECONDS = 1.0
LOOPBACK = "127.0.0.1"


class MachineEvents:
    """Asks the runtime for its machines every second and remembers when it last answered."""

    def __init__(self, list_machines: Callable[[], Awaitable[bool]], clock: Clock, threshold_seconds: float) -> None:
        self._list_machines = list_machines
        self._clock = clock
        self._threshold = threshold_seconds
        self._listed_at: float | None = None

    @property
    def healthy(self) -> bool:
        """True where the last success is not older than the threshold."""
        return self._listed_at is not None and self._clock.monotonic() - self._listed_at <= self._threshold

    async def run(self) -> None:
        """Relist until cancelled."""
        while True:
            await self._clock.sleep(RELIST_PERIOD_SECONDS)
            began = self._clock.monotonic()
            if await self._list_machines():
                self._listed_at = began


@asynccontextmanager
async def served(healthz: Callable[[], Awaitable[int]], port: int) -> AsyncIterator[str]:
    """`healthz` and `/readyz` over HTTP while the context is open; gives the address of `/healthz`. Port 0 takes a free one."""

    async def answer(_request: web.Request) -> web.Response:
        status = await healthz()
        return web.Response(status=status, text="ok" if status == 200 else "[-]machine-events failed: reason withheld\n")

    async def ready(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    application = web.Application()
    application.add_routes([web.get("/healthz", answer), web.get("/readyz", ready)])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, port)
        await site.start()
        yield f"http://{LOOPBACK}:{runner.addresses[0][1]}/healthz"
    finally:
        await runner.cleanup()
