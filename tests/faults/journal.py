"""What happened in a scenario, for whoever has to understand a failure: actions, writes, what processes logged, in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import structlog

KEPT = 20_000


class Journal:
    """Lines with the moment (seconds since the beginning) and who did it. `names` says whose loop a log line comes from."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._began = now, now()
        self._lines: deque[str] = deque(maxlen=KEPT)
        self.names: dict[asyncio.AbstractEventLoop, str] = {}
        self.closed = False
        """Nothing is noted any more: what is cancelled when a world ends says so in any order."""

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._now() - self._began

    def note(self, who: str, what: str) -> None:
        """One more line."""
        if not self.closed:
            self._lines.append(f"{self.now:9.3f}  {who:<16} {what}")

    def lines(self, last: int = KEPT) -> list[str]:
        """The last lines, oldest first."""
        return list(self._lines)[-last:]

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take what the product logs into the journal while the context is open, and print none of it."""
        before = structlog.get_config()
        everything = structlog.make_filtering_bound_logger(0)
        structlog.configure(processors=[self._take], wrapper_class=everything, cache_logger_on_first_use=False)
        try:
            yield
        finally:
            structlog.configure(**before)

    def _take(self, _logger: Any, level: str, event: MutableMapping[str, Any]) -> str:
        text = " ".join([f"{level}:", str(event.pop("event")), *(f"{name}={value}" for name, value in event.items())])
        try:
            who = self.names.get(asyncio.get_running_loop(), "?")
        except RuntimeError:
            who = "?"
        self.note(who, text)
        raise structlog.DropEvent
