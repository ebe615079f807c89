"""Several processes in one test, each on an event loop of its own, in one virtual time; any of them can stand still while the others run.

A process that is stalled (SIGSTOP, a starved node, a long garbage collection) runs nothing, but its clock goes on, and what its network
and timers brought meanwhile is waiting when it goes on: that is what asyncio then meets in a real process, answer and timeout both due.
Wall clocks belong to the processes and jump on their own. Nothing waits for real; a run depends on its seeds alone.
"""

from __future__ import annotations

import asyncio
import datetime
import heapq
import itertools
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, Self

from tests.support.stepped import START

BEGIN = 1000.0
"""The monotonic time at which every world begins, so that a forgotten 0 shows."""


class World:
    """The time that all share, what happens in it, and who lives in it. `watch` is called at each moment at which anything happened."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.processes: list[Process] = []
        self.living: list[Process] = []
        self.watch: Callable[[], None] = lambda: None
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def at(self, when: float, what: Callable[[], object]) -> None:
        """Have `what` happen at `when`, in nobody's process."""
        heapq.heappush(self._events, (max(when, self.now), next(self._order), what))

    def run(self, until: float) -> None:
        """Let time pass."""
        while True:
            self._settle()
            moment = self._next()
            if moment is None or moment > until:
                self.now = until
                return
            self.now = max(moment, self.now)
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()

    def close(self) -> None:
        """Cancel what still runs, close every loop, and raise what a task failed with."""
        failures = [error for process in self.processes for error in process.failures()]
        for process in self.processes:
            process.close()
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settle(self) -> None:
        for process in self.living:
            if process.runs and process.loop.due():
                process.turn()
        self.watch()

    def _next(self) -> float | None:
        moments = [moment for process in self.living if (moment := process.next_timer()) is not None]
        if self._events:
            moments.append(self._events[0][0])
        return min(moments, default=None)


class _NeverWaiting(selectors.DefaultSelector):
    """Says that it is idle where a loop would wait: here nothing becomes ready by itself, and so no file is ever looked at."""

    def __init__(self, idle: Callable[[], None]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """At once."""
        if timeout != 0:
            self._idle()
        return []


class _Loop(asyncio.SelectorEventLoop):
    """An event loop on the world's time, turned by hand: `run_forever` returns as soon as nothing is ready."""

    def __init__(self, world: World) -> None:
        super().__init__(_NeverWaiting(self.stop))
        self._world = world

    def time(self) -> float:
        return self._world.now

    def due(self) -> bool:
        """Whether anything could run now."""
        if self._ready:  # type: ignore[attr-defined]
            return True
        moment = self.next_timer()
        return moment is not None and moment <= self._world.now

    def next_timer(self) -> float | None:
        """When the next timer is due; one that was cancelled may stand there too."""
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return scheduled[0].when() if scheduled else None


class Process:
    """One process: a loop, tasks, a clock. It runs from its creation on."""

    def __init__(self, world: World, name: str, seed: int = 0) -> None:
        self.name = name
        self.world = world
        self.loop = _Loop(world)
        self.clock = ProcessClock(world, seed)
        self.stalled_until = BEGIN
        self.killed = False
        self._tasks: list[asyncio.Task[Any]] = []
        world.processes.append(self)
        world.living.append(self)

    @property
    def runs(self) -> bool:
        """Neither stalled nor dead."""
        return not self.killed and self.world.now >= self.stalled_until

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task in this process."""
        task = self.loop.create_task(work)
        self._tasks.append(task)
        return task

    def stall(self, seconds: float) -> None:
        """Stand still from now on."""
        self.stalled_until = max(self.stalled_until, self.world.now + seconds)
        self.world.at(self.stalled_until, lambda: None)

    def kill(self) -> None:
        """SIGKILL: it never runs again."""
        if not self.killed:
            self.killed = True
            self.world.living = [process for process in self.world.living if process is not self]

    def terminate(self) -> None:
        """SIGTERM: every task is cancelled, and may still do what it does when cancelled."""
        for task in self._tasks:
            self.loop.call_soon(task.cancel)

    def turn(self) -> None:
        """Run what is ready, until nothing is."""
        self.loop.run_forever()

    def next_timer(self) -> float | None:
        """When this process next has something to do by itself; never while it stands still."""
        return self.loop.next_timer() if self.runs else None

    def failures(self) -> list[BaseException]:
        """What its tasks raised."""
        ended = [task for task in self._tasks if task.done() and not task.cancelled()]
        return [error for task in ended if (error := task.exception()) is not None]

    def close(self) -> None:
        """End every task; a request that one still sends while it is cancelled is cancelled as well."""
        while alive := asyncio.all_tasks(self.loop):
            for task in alive:
                task.cancel()
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
        self.loop.close()


class ProcessClock:
    """A process's Clock. `jump_wall` moves its wall clock; while `frozen_at` is set the wall clock stands still there."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self._offset = datetime.timedelta()
        self.frozen_at: datetime.datetime | None = None

    def monotonic(self) -> float:
        """The world's time: it goes on while the process stands still."""
        return self._world.now

    def utcnow(self) -> datetime.datetime:
        """START plus what passed, plus every jump."""
        return self.frozen_at or START + datetime.timedelta(seconds=self._world.now - BEGIN) + self._offset

    async def sleep(self, seconds: float) -> None:
        """Wait in the world's time."""
        await asyncio.sleep(max(seconds, 0.0))

    def random(self) -> float:
        """Seeded."""
        return self._random.random()

    def jump_wall(self, seconds: float) -> None:
        """Move the wall clock alone."""
        self._offset += datetime.timedelta(seconds=seconds)
