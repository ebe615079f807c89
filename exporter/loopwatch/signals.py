"""Ends a process's tasks on SIGTERM or SIGINT, at once and without a traceback."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def until_stopped(*work: Coroutine[Any, Any, None]) -> None:
    """Run all of `work` to its end, or until a stop signal comes, which cancels it; a failure of one ends all and is raised.

    A second signal changes nothing: what is ending ends.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(each) for each in work]
            stopper = tasks.create_task(_cancel_on(stop, running))
            await asyncio.wait(running)
            stopper.cancel()
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


async def _cancel_on(stop: asyncio.Event, running: list[asyncio.Task[None]]) -> None:
    await stop.wait()
    for task in running:
        task.cancel()
