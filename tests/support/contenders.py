"""Contenders for one Lease, the worst that a leader may do, and a referee who calls out when two of them act at one moment.

A contender acts whenever it can: at each moment at which anything happens in the world, and a hair before its deadline, it asks
`leading()`, sends a write, and that write takes as long as it may (lease duration − renew deadline). Whoever stands still sends nothing,
but what it sent before is under way. A contender that is told to give up has seen it coming, and sent nothing for that long; one that is
told to end has its requests cut.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

from loopwatch.election.act import ElectionLease
from loopwatch.election.derive import Times
from loopwatch.election.elector import Change, Elector
from loopwatch.kube.resources import ObjectKey
from loopwatch.kube.transport import Request
from tests.support.lease_api import HEALTHY, Fate, LeaseApi, WorldTransport
from tests.support.processes import Process, World

KEY = ObjectKey("loopwatch", "loopwatch-controller")
_HAIR = 1e-9


def healthy(_request: Request) -> Fate:
    """Every request arrives and is answered within 2 ms."""
    return HEALTHY


class Contender:
    """A process with an elector, and what it has under way. `changes` holds what it was told, with the moments."""

    def __init__(
        self,
        world: World,
        name: str,
        api: LeaseApi,
        *,
        times: Times | None = None,
        fate_of: Callable[[Request], Fate] = healthy,
        seed: int = 0,
        kind: type[Elector] = Elector,
    ) -> None:
        self.name, self.times = name, times or Times()
        self.process = Process(world, name, seed)
        self.transport = WorldTransport(self.process, api, fate_of)
        self.changes: list[tuple[float, Change]] = []
        self.turns: list[float] = []
        lease = ElectionLease(self.transport, self.process.clock, KEY, f"{name}_1", self.times)
        self.elector = kind(
            lease,
            self.process.clock,
            on_change=lambda change: self.changes.append((world.now, change)),
            turned=lambda: self.turns.append(world.now),
        )
        self.task = self.process.start(self.elector.run())
        self.acts_until = -math.inf
        self._blind_until = -math.inf
        self._ended = False

    def leads(self) -> bool:
        """It runs, and would be told that it leads."""
        return self.process.runs and self.elector.leading()

    @property
    def may_act(self) -> bool:
        """It has sight, and was not told to end."""
        return not self._ended and self.process.world.now >= self._blind_until

    def terminate(self) -> None:
        """SIGTERM: its writes are cut, then it leaves."""
        self.acts_until, self._ended = self.process.world.now, True
        self.process.terminate()

    def lose_sight(self, seconds: float) -> None:
        """Act no more; give up once nothing can be under way; have sight again `seconds` after that."""
        now = self.process.world.now
        give_up_at = now + self.times.act_timeout_seconds
        self._blind_until = max(self._blind_until, give_up_at + seconds)
        self.process.world.at(give_up_at, lambda: self.process.loop.call_soon(self._give_up))

    def _give_up(self) -> None:
        if not self.may_act and self.acts_until <= self.process.world.now:
            self.elector.give_up(self.times.lease_duration_seconds)


class Referee:
    """Watches a world. `fouls` says who acted while whose write was under way; `leaderless_since` is None while somebody leads."""

    def __init__(self, world: World) -> None:
        self.contenders: list[Contender] = []
        self.fouls: list[str] = []
        self.leaderless_since: float | None = world.now
        self._world = world
        self._looked_for: dict[str, float] = {}
        world.watch = self._look

    def _look(self) -> None:
        now = self._world.now
        for contender in self.contenders:
            self._look_again_before_the_deadline(contender)
            if contender.may_act and contender.leads():
                self.fouls += [
                    f"at {now:.3f} {contender.name} acts while a write of {other.name} is under way until {other.acts_until:.3f}"
                    for other in self.contenders
                    if other is not contender and other.acts_until > now + _HAIR
                ]
                contender.acts_until = now + contender.times.act_timeout_seconds
        if any(contender.leads() for contender in self.contenders):
            self.leaderless_since = None
        elif self.leaderless_since is None:
            self.leaderless_since = now

    def _look_again_before_the_deadline(self, contender: Contender) -> None:
        deadline = contender.elector.leads_until
        if math.isfinite(deadline) and self._looked_for.get(contender.name) != deadline:
            self._looked_for[contender.name] = deadline
            if deadline > self._world.now:
                self._world.at(max(math.nextafter(deadline, 0), self._world.now), lambda: None)
                self._world.at(deadline, lambda: None)


@dataclass(frozen=True)
class Weather:
    """How likely each misfortune is for one request."""

    lost: float = 0.0
    answer_lost: float = 0.0
    reset: float = 0.0
    reset_after_effect: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    answer_slow: float = 0.0
    disguised: float = 0.0
    refused: float = 0.0

    def fate(self, chance: random.Random) -> Fate:
        """What becomes of the next request."""
        kinds = [field.name for field in fields(self)]
        weights = [getattr(self, kind) for kind in kinds]
        kind = chance.choices([*kinds, "fine"], [*weights, max(1 - sum(weights), 0.05)])[0]
        there, back = chance.uniform(0.001, 0.05), chance.uniform(0.001, 0.05)
        fates = {
            "lost": Fate(arrives_after=None),
            "answer_lost": Fate(there, answer_after=None),
            "reset": Fate(arrives_after=None, reset=True),
            "reset_after_effect": Fate(there, answer_after=back, reset=True),
            "late": Fate(chance.uniform(0, 25), answer_after=back),
            "slow": Fate(chance.uniform(0, 3), answer_after=chance.uniform(0, 5)),
            "answer_slow": Fate(there, answer_after=chance.uniform(1, 4)),
            "disguised": Fate(there, answer_after=back, disguise=chance.choice((500, 502, 504))),
            "refused": Fate(there, refusal=chance.choice((429, 500, 503)), retry_after=chance.choice((None, "1")), answer_after=back),
        }
        return fates.get(kind, Fate(there, answer_after=back))


def some_weather(chance: random.Random) -> Weather:
    """From nearly fine to hardly anything going through."""
    severity = chance.choice((0.02, 0.1, 0.3))
    return Weather(*(chance.uniform(0, severity) for _ in fields(Weather)))


class Storm:
    """A world of two or three contenders, in which everything goes wrong until `calm_at`: made from a seed alone.

    Whole processes stand still, are killed, ended and started again, lose sight; requests are lost, late, answered falsely; partitions;
    strangers write to the Lease; wall clocks jump and stand still. From `calm_at` on each request is answered within 0.1 s, every process
    that lives runs, and at least one does.
    """

    DEFAULTS = Times()
    SHORT = Times(6, 4.0, 1.0)

    def __init__(self, seed: int, seconds: float = 120.0, kind: type[Elector] = Elector) -> None:
        self._chance = random.Random(seed)
        self._kind = kind
        self.world = World()
        self.api = LeaseApi(KEY.namespace)
        self.referee = Referee(self.world)
        self.calm_at = self.world.now + seconds
        self._weather = some_weather(self._chance)
        self._misfortunes_a_second = 1 / self._chance.choice((4.0, 10.0, 30.0))
        self._cut_off_until: dict[str, float] = {}
        self._fading: set[str] = set()
        self._times = self._chance.choice(((self.DEFAULTS,), (self.DEFAULTS,), (self.SHORT,), (self.DEFAULTS, self.SHORT)))
        self._born = 0
        for _ in range(self._chance.choice((2, 2, 3))):
            self.world.at(self.world.now + self._chance.uniform(0, 5), self._bear)
        self._plan_next()
        self.world.at(self.calm_at, self._calm_down)

    @property
    def contenders(self) -> list[Contender]:
        """All that ever lived."""
        return self.referee.contenders

    @property
    def longest(self) -> Times:
        """The longest of each setting in use."""
        return Times(*(max(getattr(times, field) for times in self._times) for field in Times.__struct_fields__))

    def run(self, until: float) -> None:
        """Let time pass up to `until`."""
        self.world.run(until)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.world.close()

    def _bear(self) -> None:
        self._born += 1
        name, chance = f"contender-{self._born}", random.Random(self._chance.random())

        def fate_of(request: Request) -> Fate:
            if self.world.now >= self.calm_at:
                return Fate(chance.uniform(0.001, 0.05), answer_after=chance.uniform(0.001, 0.05))
            if self.world.now < self._cut_off_until.get(name, 0.0):
                return Fate(arrives_after=None, reset=chance.random() < 0.5)
            if name in self._fading and request.method == "PATCH":
                self._fading.discard(name)
                self._cut_off_until[name] = self.world.now + 25
                return Fate(chance.uniform(0.001, 0.05), answer_after=chance.uniform(0.5, 3.5))
            return self._weather.fate(chance)

        times = self._chance.choice(self._times)
        seed = self._chance.randrange(2**32)
        self.contenders.append(Contender(self.world, name, self.api, times=times, fate_of=fate_of, seed=seed, kind=self._kind))

    def _plan_next(self) -> None:
        when = self.world.now + self._chance.expovariate(self._misfortunes_a_second)
        if when < self.calm_at:
            self.world.at(when, self._misfortune)

    def _misfortune(self) -> None:
        alive = [contender for contender in self.contenders if not contender.process.killed and not contender.task.done()]
        if alive:
            leaders = [contender for contender in alive if contender.elector.leading()]
            victim = self._chance.choice(leaders if leaders and self._chance.random() < 0.6 else alive)
            kinds = (self._stall, self._cut_off, self._fade, self._jump, self._touch, self._end, self._kill, self._blind)
            self._chance.choices(kinds, (2, 2, 1, 1, 1, 1, 1, 1))[0](victim)
        self._plan_next()

    def _left(self) -> float:
        return self.calm_at - self.world.now

    def _stall(self, victim: Contender) -> None:
        victim.process.stall(min(self._chance.choice((1.0, 6.0, 12.0, 30.0)) * self._chance.uniform(0.5, 1.5), self._left()))

    def _cut_off(self, victim: Contender) -> None:
        self._cut_off_until[victim.name] = self.world.now + self._chance.choice((3.0, 12.0, 25.0)) * self._chance.uniform(0.5, 1.5)

    def _fade(self, victim: Contender) -> None:
        """Its next write takes effect at once and is answered late, and nothing goes through after that."""
        self._fading.add(victim.name)

    def _jump(self, victim: Contender) -> None:
        victim.process.clock.jump_wall(self._chance.choice((-86400.0, -60.0, -2.0, 2.0, 60.0, 86400.0)))
        victim.process.clock.frozen_at = victim.process.clock.utcnow() if self._chance.random() < 0.3 else None

    def _touch(self, _victim: Contender) -> None:
        self.api.touch(*KEY)

    def _end(self, victim: Contender) -> None:
        victim.terminate()
        self.world.at(self.world.now + self._chance.uniform(0, min(5.0, self._left())), self._bear)

    def _kill(self, victim: Contender) -> None:
        victim.process.kill()
        self.world.at(self.world.now + self._chance.uniform(0, min(30.0, self._left())), self._bear)

    def _blind(self, victim: Contender) -> None:
        victim.lose_sight(self._chance.uniform(0, 30))

    def _calm_down(self) -> None:
        for contender in self.contenders:
            contender.transport.reset_all()
