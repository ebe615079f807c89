"""Keeps sight: reads each resource where nothing else did, and ends a lease watch that has gone quiet.

A read is a list with `limit=1`, consistent, so it proves that the API of that resource answers now. One goes out where no answer came for
half of the sight's window, and is never backed off beyond that window, Retry-After or not, since without it nothing could be decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import Resource
from loopwatch.kube.transport import TransportError
from loopwatch.log import Repeated, get_logger
from loopwatch.pools.derive.sight import SIGHT_FRACTION

NO_ANSWER: Final = "the API does not answer; nothing is marked without sight"
QUIET_FRACTION: Final = 2 * SIGHT_FRACTION
"""With a grace of 50 s a lease watch may be quiet for 20 s, two heartbeats, while a pool lives."""


class SightKeeper:
    """One resource's reads. `answered(at)` is told of each 200, by whoever asked."""

    def __init__(
        self,
        resource: Resource,
        reader: Reader,
        clock: Clock,
        *,
        grace_seconds: float,
        namespace: str = "",
        answered: Callable[[float], None],
        each_turn: Callable[[], None],
    ) -> None:
        self._resource, self._reader, self._clock, self._namespace = resource, reader, clock, namespace
        self._window = grace_seconds * SIGHT_FRACTION
        self._tell, self._each_turn = answered, each_turn
        self._last = clock.monotonic() - self._window
        self._log = get_logger()
        self._repeated = Repeated(clock)

    def answered(self, at: float) -> None:
        """A read of this resource, a list page or the opening of a watch, was answered with 200."""
        self._last = max(self._last, at)
        self._tell(at)

    async def run(self) -> None:
        """Ask for ever, half a window after the last answer; while none comes another asks beside it, each quarter of a window.

        A read that hangs on a dead connection would else take the whole window with it, and a slow server's answer would be thrown away.
        """
        async with asyncio.TaskGroup() as reads:
            while True:
                self._each_turn()
                rest = self._last + self._window / 2 - self._clock.monotonic()
                if rest <= 0:
                    reads.create_task(self._ask())
                    rest = self._window / 4 * (0.5 + self._clock.random() / 2)
                await self._clock.sleep(rest)

    async def _ask(self) -> None:
        name = self._resource.plural
        try:
            await self._reader.list_page(self._resource, namespace=self._namespace, limit=1, timeout_seconds=self._window)
        except (ApiError, TransportError) as error:
            self._repeated.say(self._log.warning, NO_ANSWER, about=name, resource=name, error=str(error))
            return
        self._repeated.forget(NO_ANSWER, name)
        self.answered(self._clock.monotonic())
