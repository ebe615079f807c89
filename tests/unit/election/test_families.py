"""What a process shows of its election: the same deadline that `leading()` asks, and a count of beginnings and ends."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from loopwatch.election.families import LEADER_ELECTION, LeadershipFacts, install
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Moment

LEADING, TRANSITIONS = "loopwatch_leader_election_leading", "loopwatch_leader_election_transitions_total"


@dataclass
class Elected:
    """An elector as far as it is exposed."""

    leads_until: float = float("-inf")
    transitions: int = 0


def at(seconds: float) -> Moment:
    return Moment(seconds, seconds)


def test_a_scrape_sees_the_lead_end_at_its_deadline_without_anybody_telling_it() -> None:
    store, elected = Store(LEADER_ELECTION), Elected()
    install(store, elected)
    assert f"{LEADING} 0\n{'# HELP'}".encode() in store.render(at(100))
    elected.leads_until, elected.transitions = 110.0, 1
    page = store.render(at(109.999)).decode()
    assert f"\n{LEADING} 1\n" in page
    assert f"\n{TRANSITIONS} 1\n" in page
    assert store.value(LEADING, {}, at(109.999)) == 1
    assert store.value(LEADING, {}, at(110)) == 0
    assert f"\n{LEADING} 0\n" in store.render(at(110)).decode()


@pytest.mark.parametrize("leading", [True, False])
def test_without_election_the_lead_is_for_good_or_never(leading: bool) -> None:
    store = Store(LEADER_ELECTION)
    store.put(LEADER_ELECTION, (), LeadershipFacts(leading=leading))
    assert store.value(LEADING, {}, at(1e9)) == int(leading)
    assert store.value(TRANSITIONS, {}, at(1e9)) == 0
