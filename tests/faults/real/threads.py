"""A process as a thread with an event loop: it can stand still while the others run, and end without another turn."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import random
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

ANSWER_SECONDS = 1.0


class ThreadClock:
    """The machine's monotonic clock, and a wall clock that can be moved."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._offset = datetime.timedelta()

    def monotonic(self) -> float:
        """The machine's."""
        return time.monotonic()

    def utcnow(self) -> datetime.datetime:
        """The machine's, plus every jump."""
        return datetime.datetime.now(datetime.UTC) + self._offset

    async def sleep(self, seconds: float) -> None:
        """On whichever loop runs."""
        await asyncio.sleep(max(seconds, 0.0))

    def random(self) -> float:
        """Seeded."""
        return self._random.random()

    def jump_wall(self, seconds: float) -> None:
        """Move the wall clock alone."""
        self._offset += datetime.timedelta(seconds=seconds)


class ThreadProcess:
    """One process; see ground.Process."""

    def __init__(self, name: str, seed: int) -> None:
        self.clock = ThreadClock(seed)
        self.stalled_until = 0.0
        self.killed = False
        self.loop = asyncio.new_event_loop()
        self._work: Future[Any] | None = None
        self._thread = threading.Thread(target=self._turn, name=name, daemon=True)

    @property
    def runs(self) -> bool:
        """Neither stalled nor dead."""
        return not self.killed and time.monotonic() >= self.stalled_until

    def start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a task in this process; its thread begins with it."""
        self._work = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._thread.start()
        return self._work

    def stall(self, seconds: float) -> None:
        """The loop does not turn for so long."""
        self.stalled_until = max(self.stalled_until, time.monotonic() + seconds)
        self.loop.call_soon_threadsafe(self._stand_still)

    def kill(self) -> None:
        """The loop never turns again."""
        self.killed = True
        self.loop.call_soon_threadsafe(self.loop.stop)

    def terminate(self) -> None:
        """Its task is cancelled."""
        if self._work is not None:
            self._work.cancel()

    def ask(self, question: Callable[[], T]) -> T | None:
        """An answer from within the process; None where none comes in time."""
        answer: Future[T] = Future()

        def give() -> None:
            answer.set_result(question())

        self.loop.call_soon_threadsafe(give)
        with contextlib.suppress(TimeoutError):
            return answer.result(ANSWER_SECONDS)
        return None

    def close(self) -> None:
        """Whatever it was doing is over."""
        self.stalled_until = 0.0
        self.kill()
        if self._thread.is_alive():
            self._thread.join()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                self.loop.run_until_complete(task)
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _stand_still(self) -> None:
        while not self.killed and (left := self.stalled_until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
