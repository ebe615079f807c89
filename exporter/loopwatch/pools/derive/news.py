"""What is worth an Event: a pool was marked Unknown by this process, or one that was seen Unknown has recovered.

Plain data and one pure step from sight to sight. It knows neither who leads nor how Events are written.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from typing import Final, NamedTuple

from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.model import STATUS_UNKNOWN, ready_status
from loopwatch.text import clean_message

STATUS_RECOVERED: Final = "MachinePoolStatusRecovered"
MARKED_MESSAGE: Final = "No heartbeat and no change of Ready within the grace period: Ready is now Unknown."
LONGEST_REASON: Final = 128


class EventType(enum.Enum):
    """The two types of an Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell of a pool, `count` times from `first_at` to `at`, as it stood at `resource_version`."""

    machinepool: str
    uid: str
    resource_version: str
    type: EventType
    reason: str
    message: str
    at: datetime.datetime
    first_at: datetime.datetime
    count: int = 1


class Seen(NamedTuple):
    """What of a pool's last sight matters for the next."""

    uid: str
    marks: int
    unknown: bool


class Told(NamedTuple):
    """An Event without its time and pool."""

    type: EventType
    reason: str
    message: str


def see(before: Seen | None, view: PoolView) -> tuple[Seen | None, tuple[Told, ...]]:
    """The pool's next Seen, None where there is no pool, and what is to be told.

    Unknown is remembered until True or False follows, also across a time without any Ready; another pool of the same name begins anew.
    """
    if view.pool is None:
        return (before if view.exists else None), ()
    uid, ready = view.pool.metadata.uid, view.pool.ready
    status = ready_status(ready)
    if before is None or before.uid != uid:
        before = Seen(uid, 0 if before is not None else view.marks, unknown=False)
    told = [Told(EventType.WARNING, STATUS_UNKNOWN, MARKED_MESSAGE)] if view.marks > before.marks else []
    recovered = before.unknown and status in {"true", "false"}
    if recovered and ready is not None:
        message = f"Ready is {ready.status} after Unknown: {clean_message(ready.reason, LONGEST_REASON)}"
        told.append(Told(EventType.NORMAL, STATUS_RECOVERED, message))
    unknown = status == "unknown" or (before.unknown and status == "absent")
    return Seen(uid, view.marks, unknown), tuple(told)
