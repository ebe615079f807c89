"""What the demo prints: each transition of Ready as one line, with time, pool, and reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from loopwatch.clock import Clock
from loopwatch.pools.model import Condition
from loopwatch.pools.observe import PoolsObserver
from loopwatch.text import clean_message

KEPT_LINES: Final = 12
LONGEST_MESSAGE_BYTES: Final = 120


class Lines:
    """Prints through `say`, and keeps the last lines for the page."""

    def __init__(self, observer: PoolsObserver, clock: Clock, say: Callable[[str], None]) -> None:
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
        self._observer, self._clock, self._say = observer, clock, say
        self._states: dict[str, str] = {}
        observer.subscribe(self._changed)

    def tell(self, text: str) -> None:
        """One line, with the time before it."""
        line = f"{self._clock.utcnow():%H:%M:%S}  {text}"
        self.last.append(line)
        self._say(line)

    def _changed(self, name: str) -> None:
        view = self._observer.views.get(name)
        ready = view.pool.ready if view and view.pool else None
        state = "gone" if view is None or view.pool is None else ready.status if ready else "absent"
        before = self._states.get(name)
        if state == before or (before is None and state == "gone"):
            return
        self._states[name] = state
        self.tell(f"{name:<10} Ready {f'{before} → ' if before else ''}{state}{_why(ready)}")


def _why(ready: Condition | None) -> str:
    return f"  {ready.reason}: {clean_message(ready.message, LONGEST_MESSAGE_BYTES)}" if ready else ""
