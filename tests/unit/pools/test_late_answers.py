"""A mark's answer that the watch has overtaken is old news: it makes nothing of what came after the mark unseen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

from loopwatch.controller import Clusters, Controller
from loopwatch.kube.reflector import ReflectorTimes
from loopwatch.kube.resources import LEASE_NAMESPACE, MACHINE_POOLS
from loopwatch.kube.transport import Request, Timeout
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.transport import SandboxResponse, SandboxTransport
from loopwatch.settings.model import ControllerSettings
from tests.support.pools import ready_condition
from tests.support.stepped import SteppedClock, stepped

POOL = "pool-a"
GRACE = 50.0
LATE_SECONDS = 4.0


class SlowWay(SandboxTransport):
    """A client whose patches reach the server at once, and whose answers to them travel for seconds."""

    @contextlib.asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncGenerator[SandboxResponse]:
        """As it was answered, late."""
        async with super().send(request, timeout) as response:
            if request.method == "PATCH":
                await asyncio.sleep(LATE_SECONDS)
            yield response


class Marked:
    """A pool without a reporter, and a controller that marks it once its grace is over."""

    def __init__(self) -> None:
        clock = SteppedClock()
        self.api = ApiServer(clock)
        self.api.create_namespace(LEASE_NAMESPACE)
        self.report("True")
        settings = ControllerSettings(machine_pool_lifecycle_grace_period_seconds=GRACE, leader_elect=False)
        self.controller = Controller(settings, Clusters.one(SlowWay(self.api, client="controller")), clock, ReflectorTimes())

    def report(self, status: str) -> None:
        """Somebody writes Ready, with a reason of his own."""
        body = {"metadata": {"name": POOL}, "spec": {}, "status": {"conditions": [ready_condition(status)]}}
        self.api.put_object(MACHINE_POOLS, body)

    @property
    def ready(self) -> str:
        """What the API server holds."""
        pool = self.api.object(MACHINE_POOLS, POOL)
        assert pool is not None
        return str(pool["status"]["conditions"][0]["status"])


@contextlib.asynccontextmanager
async def marked_a_moment_ago() -> AsyncIterator[Marked]:
    """The mark is accepted, and its answer is on its way."""
    world = Marked()
    running = asyncio.create_task(world.controller.run())
    try:
        await asyncio.sleep(GRACE + 1.0)
        assert world.ready == "Unknown"
        yield world
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@stepped
async def test_a_pool_that_came_back_before_the_answer_is_seen_so_and_marked_again_when_it_falls_silent() -> None:
    async with marked_a_moment_ago() as world:
        world.report("True")
        await asyncio.sleep(LATE_SECONDS)
        known = world.controller.observer.pool(POOL)
        assert known is not None
        assert known.ready is not None
        assert known.ready.status == "True"
        assert world.controller.observer.views[POOL].marks == 1
        await asyncio.sleep(GRACE)
        assert world.ready == "Unknown"


@stepped
async def test_a_pool_that_was_deleted_before_the_answer_stays_gone() -> None:
    async with marked_a_moment_ago() as world:
        world.api.delete_object(MACHINE_POOLS, POOL)
        await asyncio.sleep(LATE_SECONDS)
        assert POOL not in world.controller.observer.views


@stepped
async def test_a_pool_that_was_made_again_before_the_answer_has_no_marks() -> None:
    async with marked_a_moment_ago() as world:
        world.api.delete_object(MACHINE_POOLS, POOL)
        world.report("True")
        await asyncio.sleep(LATE_SECONDS)
        view = world.controller.observer.views[POOL]
        assert view.marks == 0
        assert not view.marked_unknown
