"""A machinepoollet's process as far as a sidecar sees it: a port that answers while the process lives."""

from __future__ import annotations

from aiohttp import web

HOST = "127.0.0.1"


class Healthz:
    """Listens on one loopback port, the same after each start."""

    def __init__(self) -> None:
        self._port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it answers, once started for the first time."""
        return f"http://{HOST}:{self._port}/healthz"

    async def start(self) -> None:
        """The process lives."""
        application = web.Application()
        application.router.add_get("/healthz", _answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self._port).start()
        self._port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """The process is dead; without effect where it is."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()


async def _answer(_request: web.Request) -> web.Response:
    return web.Response(text="ok")
