"""Plays the story: for ever with a page to watch it on, or once with a verdict."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Final

from loopwatch.clock import Clock, SystemClock
from loopwatch.demo import page as rows_of
from loopwatch.demo.lines import Lines
from loopwatch.demo.scraping import Scraper
from loopwatch.demo.story import POOLS, STORY, judge
from loopwatch.demo.world import GRACE_SECONDS, World, open_world
from loopwatch.metrics import process
from loopwatch.metrics.family import Component
from loopwatch.settings.model import DemoSettings
from loopwatch.signals import until_stopped
from loopwatch.web import page
from loopwatch.web.server import Server

HOST: Final = "127.0.0.1"
TITLE: Final = "loopwatch demo: three MachinePools on a cluster in memory"
PAUSE_SECONDS: Final = 3.0
"""Between steps when somebody watches; in `--once` the story goes on as soon as a step was seen."""
LONGEST_STEP_SECONDS: Final = 4 * GRACE_SECONDS
"""What a step may take to show in /metrics: a death shows after one grace and two ticks, all else sooner."""
SETTLED_SECONDS: Final = 2 * GRACE_SECONDS
"""How long the last state must hold in `--once`: a pool that only seems to live turns Unknown within it."""


async def run(settings: DemoSettings, clock: Clock | None = None) -> int:
    """The exit code: 0, or 1 where `--once` did not see what it should have."""
    clock = clock or SystemClock()
    verdicts: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="lw-") as folder:
        await until_stopped(_play(settings, clock, Path(folder), verdicts))
    if not settings.once:
        return 0
    return _conclude(verdicts[0] if verdicts else ["the story was interrupted"])


async def _play(settings: DemoSettings, clock: Clock, folder: Path, verdicts: list[list[str]]) -> None:
    _say(f"loopwatch demo: {len(POOLS)} MachinePools, a heartbeat each half second, Unknown after {GRACE_SECONDS:g} s of silence")
    async with contextlib.AsyncExitStack() as stack:
        world = await stack.enter_async_context(open_world(folder, clock))
        lines = Lines(world.controller.observer, clock, _say)
        lag = process.install(world.controller.store, Component.CONTROLLER, clock)

        def render() -> str:
            return page.render(TITLE, rows_of.rows(world), reversed(lines.last))

        server = Server(world.controller.store, world.controller.health, now=world.controller.observer.moment, page=render)
        port = await stack.enter_async_context(server.listening(HOST, settings.port))
        _say(f"page http://{HOST}:{port}/   metrics http://{HOST}:{port}/metrics   (Ctrl-C ends it)")
        scraper = Scraper(f"http://{HOST}:{port}/metrics", clock)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        beside = [tasks.create_task(scraper.run()), tasks.create_task(lag.run())]
        try:
            await _tell(world, lines, scraper, clock, verdicts, once=settings.once)
        finally:
            for task in beside:
                task.cancel()


async def _tell(world: World, lines: Lines, scraper: Scraper, clock: Clock, verdicts: list[list[str]], *, once: bool) -> None:
    """Until the end of one telling, or for ever."""
    in_time = all([await _shows(scraper, pool, "true", clock) for pool in POOLS])
    while True:
        for step in STORY:
            if not once:
                await clock.sleep(PAUSE_SECONDS)
            elif not in_time:
                break
            lines.tell(f"{step.pool:<10} {step.deed.value}")
            await world.do(step.pool, step.deed)
            in_time = await _shows(scraper, step.pool, step.then, clock)
        if once:
            await clock.sleep(SETTLED_SECONDS)
            verdicts.append(judge(scraper.seen, scraper.transitions))
            return


async def _shows(scraper: Scraper, pool: str, state: str, clock: Clock) -> bool:
    """Wait until /metrics shows the state; False where it does not in time."""
    give_up_at = clock.monotonic() + LONGEST_STEP_SECONDS
    while scraper.now(pool) != state:
        if clock.monotonic() > give_up_at:
            return False
        await clock.sleep(0.05)
    return True


def _conclude(wrong: list[str]) -> int:
    for sentence in wrong:
        _say(f"wrong: {sentence}")
    _say("FAILED: the story did not go as told" if wrong else f"OK: {len(STORY)} steps, each transition seen in /metrics, and no other")
    return 1 if wrong else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
