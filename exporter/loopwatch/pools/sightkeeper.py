"""Keeps sight: reads each resource where nothing else did, and ends a lease watch that has gone quiet.

A read is a list with `limit=1`, consistent, so it proves that the API of that resource answers now. One goes out where no answer came for
half of the sight's window; it is never backed off beyond that window, Retry-After or not, since without it nothing could be decided.
"""

from __future__ import annotations

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
        """Ask for ever, half a window after the last answer; after a failure sooner, with jitter."""
        while True:
            self._each_turn()
            rest = self._last + self._window / 2 - self._clock.monotonic()
            if rest > 0:
                await self._clock.sleep(rest)
            elif not await self._ask():
                await self._clock.sleep(self._window / 4 * (0.5 + self._clock.random() / 2))

    async def _ask(self) -> bool:
        try:
            await self._reader.list_page(self._resource, namespace=self._namespace, limit=1, timeout_seconds=self._window)
        except (ApiError, TransportError) as error:
            name = self._resource.plural
            self._repeated.say(self._log.warning, NO_ANSWER, about=name, resource=name, error=str(error))
            return False
        self._repeated.forget(NO_ANSWER, self._resource.plural)
        self.answered(self._clock.monotonic())
        return True
