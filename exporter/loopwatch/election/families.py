"""What a process exposes of its election: whether it leads at this moment, and how often that changed."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from loopwatch.metrics.family import Authority, Component, Family, Group, Kind
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Until


class LeadershipFacts(msgspec.Struct, frozen=True):
    """Whether this process may write: for good (no election), never (`--no-act`), or up to a deadline. `transitions` as the family says."""

    leading: bool | Until
    transitions: int = 0


class Elects(Protocol):
    """election.elector.Elector, as far as it is exposed."""

    @property
    def leads_until(self) -> float:
        """The monotonic deadline."""
        ...

    @property
    def transitions(self) -> int:
        """Beginnings and ends."""
        ...


_CONTROLLER: Final = (Component.CONTROLLER,)

LEADER_ELECTION: Final = Group(
    "leader election",
    (),
    (
        Family[LeadershipFacts](
            "loopwatch_leader_election_leading",
            Kind.GAUGE,
            "1 while this controller leads, and so acts; 0 with --no-act.",
            lambda facts: facts.leading if isinstance(facts.leading, Until) else int(facts.leading),
            Authority.OWN,
            exposed_by=_CONTROLLER,
        ),
        Family[LeadershipFacts](
            "loopwatch_leader_election_transitions_total",
            Kind.COUNTER,
            "Times this process began to lead plus times it ceased to, each counting one; a lead that lapsed for a moment counts two.",
            lambda facts: facts.transitions,
            Authority.OWN,
            exposed_by=_CONTROLLER,
        ),
    ),
)


def install(store: Store, elector: Elects) -> None:
    """Have the elector's deadline and count read before each scrape."""

    def collect() -> None:
        store.put(LEADER_ELECTION, (), LeadershipFacts(Until(elector.leads_until), elector.transitions))

    store.before_reading(collect)
