"""Plans written by hand: small clusters with one thing going wrong, for mutants and for what a seed once found."""

from __future__ import annotations

from loopwatch.settings.model import Mode
from tests.faults.plan import Plan, PodCast
from tests.faults.scenario import Outcome
from tests.faults.times import Times
from tests.faults.troubles import Misfortune, Trouble

TIMES = Times(1.0)
REPORTED = PodCast("pool-a", "v0.4.0", (Mode.REPORT,), 0.0)
"""A pool whose sidecar reports for a machinepoollet that can't."""


def story(
    *misfortunes: Misfortune,
    pods: tuple[PodCast, ...] = (REPORTED,),
    controllers: int = 1,
    storm: float = 200.0,
    calm: float = 130.0,
    mark_never_reported: bool = True,
) -> Plan:
    """A plan with the default times; `storm` and `calm` are seconds."""
    return Plan("story", TIMES, pods, controllers, mark_never_reported, storm, calm, misfortunes)


def each(every: float, first: float, last: float, seconds: float, trouble: Trouble) -> list[Misfortune]:
    """The same trouble again and again."""
    count = int((last - first) / every) + 1
    return [Misfortune(first + number * every, seconds, trouble) for number in range(count)]


def told(outcome: Outcome) -> str:
    """What a failed assertion shows."""
    return "\n".join([str(outcome.failure), *outcome.journal.lines(60)])
