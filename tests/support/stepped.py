"""An event loop whose time is stepped: when nothing is ready, it jumps to the next timer.

Minutes of heartbeats run in milliseconds, deterministically, and `asyncio.sleep`, `asyncio.timeout` and `loop.call_later` all see the
same time. It refuses to hang: with nothing ready, no timer and nothing readable it raises. Threads and subprocesses don't belong
on it, and real sockets only where both ends live on this loop.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import random
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

START = datetime.datetime(2026, 5, 1, 12, 0, 0, tzinfo=datetime.UTC)
DELIVERY_SECONDS = 0.002  # how long the kernel may take to hand bytes from one end on this loop to the other, before time jumps
REAL_WAIT_SECONDS = 5.0  # how long bytes between two ends on this loop may take before it counts as a deadlock


class Deadlock(RuntimeError):
    """Every task waits, and nothing will ever wake one."""


class _JumpingSelector(selectors.DefaultSelector):
    """Looks for ready files first; only when there are none does time move."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(REAL_WAIT_SECONDS)
            if not ready:
                raise Deadlock("every task waits and there is no timer left to jump to")
            return ready
        if len(self.get_map()) > 1:  # more than the loop's own pipe: real sockets
            ready = super().select(DELIVERY_SECONDS)
            if ready:
                return ready
        self.now += max(timeout, 0.0)
        return []


class SteppedLoop(asyncio.SelectorEventLoop):
    """The loop; `time()` is virtual and starts at 1000 so that a forgotten 0 shows."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        self._jumping.now = 1000.0
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds."""
        return self._jumping.now


class SteppedClock:
    """The Clock on a SteppedLoop; its wall clock can be moved on its own (`jump_wall`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, seed: int = 0) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._random = random.Random(seed)
        self._wall = START
        self._began = self._loop.time()

    def monotonic(self) -> float:
        """The loop's time."""
        return self._loop.time()

    def utcnow(self) -> datetime.datetime:
        """START plus what passed, plus every jump."""
        return self._wall + datetime.timedelta(seconds=self._loop.time() - self._began)

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(max(seconds, 0.0))

    def random(self) -> float:
        """Seeded."""
        return self._random.random()

    def jump_wall(self, seconds: float) -> None:
        """Move the wall clock alone, as NTP or an operator would."""
        self._wall += datetime.timedelta(seconds=seconds)


def stepped(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on a SteppedLoop; pytest sees a plain function with the same arguments."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        with asyncio.Runner(loop_factory=SteppedLoop) as runner:
            runner.run(_as_coroutine(test, arguments, named))

    return run


async def _as_coroutine(test: Callable[..., Awaitable[None]], arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    await test(*arguments, **named)
