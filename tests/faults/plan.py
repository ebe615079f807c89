"""A scenario made from a seed alone: who is there, and what goes wrong when. Data, so that it can be printed, replayed and cut down.

Each seed lets only some kinds of trouble happen (a swarm: with all of them at once each hides the others), at a rate of its own; so some
seeds are one partition after the other, and some are everything at once. The last part of each is calm.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from loopwatch.sandbox import faults
from loopwatch.sandbox.faults import Effect, Fault
from loopwatch.sandbox.runtime import behaviours
from loopwatch.settings.model import Mode
from tests.faults import troubles
from tests.faults.times import Times
from tests.faults.troubles import Misfortune, Trouble
from tests.faults.wire import Weather

STORM_GRACES = 8.0
CALM_GRACES = 4.2
"""Long enough for everything to be found again: a half-open watch (90 s with the defaults), a dead pool (90 s), an election."""
REAL_STORM_GRACES = 3.2
SHORTEST_CALM_SECONDS = 23.0
"""Some waits are 10 s whatever the settings are."""
USUAL_GRACES = (0.0, 0.02, 0.1, 0.3, 0.6, 1.1, 2.5)
DEADLY_GRACES = (0.0, 0.1, 0.6, 1.1, 2.5, 4.0)
DEADLY = (troubles.PodDown, troubles.PodCut, troubles.Partition)
"""What takes a pool's reporter away lasts longer: else few pools would ever be dead for a grace."""
USUAL_WEATHER = Weather()
Poollet = Literal["v0.5.0", "v0.4.0", "none"]


@dataclass(frozen=True)
class PodCast:
    """A pool and who reports for it. With `poollet` none, sidecars ask nobody (`--machinepoollet-healthz off`)."""

    pool: str
    poollet: Poollet
    sidecars: tuple[Mode, ...]
    starts: float

    @property
    def hosts(self) -> list[str]:
        """The names of its processes."""
        return [f"sidecar-{self.pool}-{number}" for number in range(len(self.sidecars))] + (
            [] if self.poollet == "none" else [f"poollet-{self.pool}"]
        )


@dataclass(frozen=True)
class Plan:
    """Everything that a seed decides. `storm` and `calm` are seconds."""

    seed: str
    times: Times
    pods: tuple[PodCast, ...]
    controllers: int
    mark_never_reported: bool
    storm: float
    calm: float
    misfortunes: tuple[Misfortune, ...]
    weather: Weather = USUAL_WEATHER

    @property
    def controller_hosts(self) -> list[str]:
        """Their names."""
        return [f"controller-{number}" for number in range(1, self.controllers + 1)]

    def without(self, dropped: Sequence[Misfortune]) -> Plan:
        """The same scenario, less these."""
        gone = set(map(id, dropped))
        return replace(self, misfortunes=tuple(each for each in self.misfortunes if id(each) not in gone))


def make(seed: str, *, most_controllers: int = 3, real: bool = False) -> Plan:
    """The scenario of a seed; `real`: for a real server, in real time: the short times, and only what can be made there."""
    chance = random.Random(f"plan {seed}")
    times = Times(0.1 if real else chance.choice((1.0, 1.0, 0.1)))
    pods = tuple(_pod(chance, f"{chr(ord('a') + number)}", times) for number in range(chance.choice((1, 2, 2, 3))))
    plan = Plan(
        seed=seed,
        times=times,
        pods=pods,
        controllers=min(chance.choice((1, 2, 2, 3)), most_controllers),
        mark_never_reported=chance.random() < 0.7,
        storm=(REAL_STORM_GRACES if real else STORM_GRACES) * times.grace,
        calm=max(CALM_GRACES * times.grace, SHORTEST_CALM_SECONDS),
        misfortunes=(),
        weather=Weather(chance.choice((0.01, 0.02, 0.2)), times.grace * chance.choice((0.005, 0.02))),
    )
    return replace(plan, misfortunes=_Troubles(plan, chance, real=real).misfortunes())


def _pod(chance: random.Random, name: str, times: Times) -> PodCast:
    poollet: Poollet = chance.choice(("v0.5.0", "v0.5.0", "v0.4.0", "v0.4.0", "none"))
    modes = chance.choice(
        (
            (),
            (Mode.AUTO,),
            (Mode.AUTO,),
            (Mode.AUTO,),
            (Mode.REPORT,),
            (Mode.REPORT,),
            (Mode.OBSERVE,),
            (Mode.AUTO, Mode.AUTO),
            (Mode.AUTO, Mode.REPORT),
            (Mode.OBSERVE, Mode.AUTO),
        )
    )
    return PodCast(f"pool-{name}", poollet, modes, starts=chance.choice((0.0, chance.uniform(0, times.grace))))


class _Troubles:
    """Draws the misfortunes of a plan."""

    def __init__(self, plan: Plan, chance: random.Random, *, real: bool) -> None:
        self._plan, self._chance = plan, chance
        self._hosts = [*plan.controller_hosts, *(host for pod in plan.pods for host in pod.hosts)]
        kinds: dict[str, Callable[[], Trouble]] = {
            "api fault": self._api_fault,
            "more api faults": self._api_fault,
            "partition": self._partition,
            "stall": lambda: troubles.Stall(self._host()),
            "down": lambda: troubles.Down(self._host(), clean=chance.random() < 0.4),
            "pod down": lambda: troubles.PodDown(self._pool()),
            "server stall": troubles.ServerStall,
            "server down": troubles.ServerDown,
            "compaction": troubles.Compaction,
            "wall clock": lambda: troubles.WallJump(self._host(), chance.choice((-86400.0, -30.0, -1.0, 1.0, 30.0, 86400.0))),
            "runtime": self._runtime,
            "pod cut": lambda: troubles.PodCut(self._pool(), chance.choice(("runtime", "machinepoollet")), self._cut()),
            "pool gone": lambda: troubles.PoolGone(self._pool()),
            "lease gone": lambda: troubles.LeaseGone(self._pool()),
            "foreign condition": lambda: troubles.ForeignCondition(self._pool(), chance.choice(("Maintenance", "Network"))),
            "broken object": lambda: troubles.BrokenObject(self._pool(), chance.choice(("pool", "lease"))),
            "spec change": lambda: troubles.SpecChange(self._pool()),
        }
        if real:
            del kinds["broken object"]
        names = chance.sample(sorted(kinds), chance.choice((2, 4, 6, 8, len(kinds))))
        self._kinds = [kinds[name] for name in names]
        self._effects = chance.sample(_EFFECTS, chance.choice((1, 3, len(_EFFECTS))))

    def misfortunes(self) -> tuple[Misfortune, ...]:
        """In order of their beginnings; each is over when the storm is."""
        storm, grace = self._plan.storm, self._plan.times.grace
        between = grace * self._chance.choice((0.1, 0.25, 0.5))
        drawn = []
        at = self._chance.uniform(0, grace)
        while at < storm:
            trouble = self._chance.choice(self._kinds)()
            lengths = DEADLY_GRACES if isinstance(trouble, DEADLY) else USUAL_GRACES
            seconds = min(grace * self._chance.choice(lengths) * self._chance.uniform(0.5, 1.5), storm - at)
            drawn.append(Misfortune(round(at, 3), round(seconds, 3), trouble))
            at += self._chance.expovariate(1 / between)
        return tuple(drawn)

    def _host(self) -> str:
        """Controllers more often than their number."""
        return self._chance.choice(self._plan.controller_hosts if self._chance.random() < 0.4 else self._hosts)

    def _pool(self) -> str:
        return self._chance.choice(self._plan.pods).pool

    def _cut(self) -> Literal["drop", "refuse"]:
        return "drop" if self._chance.random() < 0.6 else "refuse"

    def _partition(self) -> Trouble:
        return troubles.Partition(self._host(), self._chance.choice(("*", "leases", "machinepools")), self._cut())

    def _runtime(self) -> Trouble:
        behaviour = self._chance.choice(
            (
                None,
                behaviours.Error(),
                behaviours.Hang(),
                behaviours.Slow(self._plan.times.status_timeout * self._chance.uniform(0.2, 1.5)),
                behaviours.WrongService(),
                behaviours.Silent(),
            )
        )
        return troubles.RuntimeTrouble(self._pool(), behaviour)

    def _api_fault(self) -> Trouble:
        effect = self._chance.choice(self._effects)(self._chance, self._plan.times)
        streams = isinstance(effect, faults.Cut | faults.Silence | faults.NoBookmarks | faults.Garbage | faults.Stale)
        everybody = self._chance.random() < 0.2
        client = "*" if everybody else f"{self._host()}.*"
        if isinstance(effect, faults.Garbage) and (everybody or client.startswith("poollet")):
            client = f"{self._chance.choice(self._plan.controller_hosts)}.*"  # the stand-in for upstream ends by it
        resource = self._chance.choice(("*", "leases", "machinepools"))
        verb = "watch" if streams else self._chance.choice(("*", "*", "get", "list", "watch", "patch", "create"))
        count = None if self._chance.random() < 0.7 else self._chance.randint(1, 4)
        return troubles.ApiFault(Fault(effect=effect, verb=verb, resource=resource, client=client, count=count))


_EFFECTS: tuple[Callable[[random.Random, Times], Effect], ...] = (
    lambda chance, times: faults.Latency(times.grace * chance.choice((0.01, 0.05, 0.2)) * chance.uniform(0.5, 1.5)),
    lambda chance, _: faults.Respond(429, retry_after_seconds=chance.choice((None, 1, 3, 10))),
    lambda chance, _: faults.Respond(chance.choice((500, 503, 504)), retry_after_seconds=chance.choice((None, None, 1))),
    lambda _chance, _: faults.Respond(502, html=True),
    lambda chance, _: faults.Hang(resume=chance.random() < 0.5),
    lambda chance, _: faults.LoseAnswer(applied=chance.random() < 0.7),
    lambda chance, _: faults.Cut(after_lines=chance.choice((0, 1, 5)), mid_line=chance.random() < 0.5),
    lambda chance, _: faults.Silence(after_lines=chance.choice((0, 0, 3))),
    lambda _chance, _: faults.Unauthorized(),
    lambda _chance, _: faults.Forbid(),
    lambda _chance, _: faults.NotServed(),
    lambda _chance, _: faults.Stale(),
    lambda _chance, _: faults.NoBookmarks(),
    lambda chance, _: faults.Garbage(after_lines=chance.choice((0, 2))),
)
