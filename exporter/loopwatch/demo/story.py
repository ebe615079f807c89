"""The story that the demo plays, as data: what happens to which pool, and what Ready must then show.

Pure. A step names a deed of the world (`world.World.do`) and the states that must follow, in order; `judge` compares what was seen with
the whole story, nothing more and nothing less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

GONE: Final = "gone"
"""What stands for a pool that has no series."""

COUNTED: Final = ("true", "false", "unknown")


class Deed(Enum):
    """What can be done to a pool."""

    BREAK_RUNTIME = "the machine runtime fails"
    MEND_RUNTIME = "the machine runtime is back"
    KILL_MACHINEPOOLLET = "the machinepoollet dies"
    START_MACHINEPOOLLET = "the machinepoollet is back"
    DELETE_POOL = "the MachinePool is deleted"
    CREATE_POOL = "the MachinePool is made again"


@dataclass(frozen=True, slots=True)
class Step:
    """One deed, and the states of Ready that must be seen after it: true, false, unknown, absent, or GONE."""

    pool: str
    deed: Deed
    then: str


POOLS: Final = ("berlin", "dresden", "walldorf")
STORY: Final = (
    Step("berlin", Deed.BREAK_RUNTIME, "false"),
    Step("berlin", Deed.MEND_RUNTIME, "true"),
    Step("dresden", Deed.KILL_MACHINEPOOLLET, "unknown"),
    Step("dresden", Deed.START_MACHINEPOOLLET, "true"),
    Step("walldorf", Deed.DELETE_POOL, GONE),
    Step("walldorf", Deed.CREATE_POOL, "true"),
)


def expected(pool: str) -> list[str]:
    """The states that a pool must pass through in one telling, from its start at true."""
    return ["true", *(step.then for step in STORY if step.pool == pool)]


def passed_through(seen: Sequence[str]) -> list[str]:
    """The states seen, one after the other, without repetitions, and without what comes before a pool first reports."""
    changes: Iterator[str] = (state for number, state in enumerate(seen) if number == 0 or state != seen[number - 1])
    return [state for state in changes if state != "absent"]


def expected_transitions(pool: str) -> dict[str, int]:
    """How often Ready must have turned to each status since the pool's series began: what ready_transitions_total counts."""
    states = expected(pool)
    last_life = states[len(states) - states[::-1].index(GONE) :] if GONE in states else states
    return {status: last_life.count(status) for status in COUNTED}


def judge(seen: Mapping[str, Sequence[str]], transitions: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What is wrong, a sentence each; empty where each pool passed through its states and no other.

    `seen` is what scrapes showed; `transitions` the counters at the end, which also know the blips between two scrapes: a pool that is
    marked Unknown and answers within milliseconds looks True all the time.
    """
    wrong = []
    for pool in POOLS:
        should, did = expected(pool), passed_through(seen.get(pool, ()))
        while did and did[0] == GONE:
            did = did[1:]
        if did != should:
            wrong.append(f"{pool}: expected {' → '.join(should)}, /metrics showed {' → '.join(did) or 'nothing'}")
        counted = {status: transitions.get(pool, {}).get(status, 0) for status in COUNTED}
        if counted != expected_transitions(pool):
            wrong.append(f"{pool}: expected transitions {_told(expected_transitions(pool))}, /metrics counted {_told(counted)}")
    return wrong


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} to {status}" for status, count in counts.items())
