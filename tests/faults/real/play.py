"""Plays plans on a real API server, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from tests.faults.cluster import Cluster
from tests.faults.invariants import Broken, Observer
from tests.faults.plan import Plan
from tests.faults.real.ground import RealGround
from tests.faults.real.proxy import FaultProxy
from tests.faults.scenario import Outcome
from tests.real_servers.apiserver import ApiServer

STEP_SECONDS = 0.1
LOOKS = 8
BETWEEN_LOOKS_SECONDS = 0.37


class Stage:
    """A server and the proxy before it."""

    def __init__(self, server: ApiServer, proxy: FaultProxy, address: str, folder: Path) -> None:
        self._server, self._proxy, self._address, self._folder = server, proxy, address, folder

    async def play(self, plan: Plan) -> Outcome:
        """From the beginning to the end, or to the first broken invariant."""
        began = time.process_time()
        ground = RealGround(plan, self._proxy, self._address, self._server.client, self._folder)
        with ground.journal.listening():
            async with ground:
                cluster = Cluster(plan, ground)
                observer = Observer(cluster)
                cluster.begin()
                observer.begin()
                with contextlib.suppress(Broken):
                    await self._look_on(observer, ground.now + plan.storm + plan.calm)
                    observer.look_at_the_end(await self._differences(observer))
                ground.journal.closed = True
        return Outcome(plan, observer.failure, ground.journal, observer.marks.accepted_marks, time.process_time() - began)

    @staticmethod
    async def _look_on(observer: Observer, until: float) -> None:
        while observer.now < until:
            observer.stop_if_broken()
            await asyncio.sleep(STEP_SECONDS)

    @staticmethod
    async def _differences(observer: Observer) -> list[str]:
        """Those that last: a heartbeat a second is always on its way to somebody."""
        differences: list[str] = []
        for _ in range(LOOKS):
            differences = observer.differences()
            if not differences:
                break
            await asyncio.sleep(BETWEEN_LOOKS_SECONDS)
        return differences


@contextlib.asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """A kube-apiserver and its proxy, for as long as the context is open."""
    with tempfile.TemporaryDirectory(prefix="loopwatch-") as name:
        folder = Path(name)
        with ApiServer(folder / "server", audit=False) as server:
            proxy = FaultProxy(server.url, server.client.tls)
            async with proxy.listening() as address:
                yield Stage(server, proxy, address, folder)
