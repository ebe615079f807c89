"""Never two that act at one moment, and never long nobody: of whole electors, under whatever goes wrong, and of broken ones.

The mutants at the end are what the properties are measured by: each breaks one rule of the elector, as its authors might have, and each
must be caught by one of the same functions that judge the real one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwatch.election import bodies, derive, elector
from loopwatch.election.derive import Election
from loopwatch.election.elector import Elector
from loopwatch.election.record import Record
from tests.support.contenders import Contender, Referee, Storm
from tests.support.lease_api import LeaseApi
from tests.support.processes import World

SEEDS = st.integers(0, 2**32)
SEEDS_TO_CATCH_A_MUTANT = 150
ROUND_SECONDS = 0.3
"""What a round of a read and a write may take in calm weather (four times 0.05 s), and a little."""


def two_act(seed: int, kind: type[Elector] = Elector) -> list[str]:
    """What the referee called out in one storm."""
    with Storm(seed, kind=kind) as storm:
        storm.run(storm.calm_at)
        return storm.referee.fouls


def nobody_leads(seed: int, kind: type[Elector] = Elector) -> list[str]:
    """Whether, once the API answers again, nobody leads after lease duration + 2 retry periods, or the lead is lost after that."""
    with Storm(seed, kind=kind) as storm:
        times = storm.longest
        storm.run(storm.calm_at + times.lease_duration_seconds + 2 * times.retry_period_seconds + ROUND_SECONDS)
        if storm.referee.leaderless_since is not None:
            return ["nobody leads"]
        transitions = [contender.elector.transitions for contender in storm.contenders]
        storm.run(storm.world.now + 3 * times.lease_duration_seconds)
        lost = transitions != [contender.elector.transitions for contender in storm.contenders]
        return ["the lead was lost in calm weather"] if lost else []


def late_takeover(seed: int, kind: type[Elector] = Elector) -> list[str]:
    """Whether a standby takes over later than lease duration + one retry period after the leader's last sign, all being well."""
    with World() as world:
        api, referee = LeaseApi("loopwatch"), Referee(world)
        leader, standby = (Contender(world, name, api, seed=seed + number, kind=kind) for number, name in enumerate(("a", "b")))
        referee.contenders += [leader, standby]
        world.run(world.now + 20)
        leader.process.kill()
        killed_at, times = world.now, leader.times
        world.run(killed_at + times.lease_duration_seconds + times.retry_period_seconds + ROUND_SECONDS)
        return [] if standby.leads() else [f"nobody leads {world.now - killed_at:g} s after the kill"]


Property = Callable[[int, type[Elector]], list[str]]


@settings(deadline=None, max_examples=50)
@given(SEEDS)
def test_never_do_two_act_at_one_moment(seed: int) -> None:
    assert two_act(seed) == []


@settings(deadline=None, max_examples=30)
@given(SEEDS)
def test_once_the_api_answers_somebody_leads_within_the_lease_duration_and_two_retry_periods_and_goes_on_leading(seed: int) -> None:
    assert nobody_leads(seed) == []


@settings(deadline=None, max_examples=20)
@given(SEEDS)
def test_a_killed_leader_is_followed_within_its_lease_duration_and_one_retry_period(seed: int) -> None:
    assert late_takeover(seed) == []


def caught(broken: Property, kind: type[Elector] = Elector) -> bool:
    """Whether some seed shows it."""
    return any(broken(seed, kind) for seed in range(SEEDS_TO_CATCH_A_MUTANT))


class Flag(Elector):
    """Leads by a flag that each step of the loop sets."""

    flag = False

    def leading(self) -> bool:
        """As the flag says."""
        return self.flag

    def _becomes(self, election: Election, reason: str) -> None:
        self.flag = derive.leading(election, self._clock.monotonic())
        super()._becomes(election, reason)


def test_a_flag_in_place_of_the_deadline_is_caught() -> None:
    assert caught(two_act, Flag)


def test_a_deadline_that_counts_from_the_answer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    written = derive.written

    def from_the_answer(election: Election, record: Record, now: float) -> Election:
        attempt = election.attempt
        late = msgspec.structs.replace(attempt, sent_at=now) if attempt else None
        return written(msgspec.structs.replace(election, attempt=late), record, now)

    monkeypatch.setattr(derive, "written", from_the_answer)
    assert caught(two_act)


def test_a_lost_answer_that_is_taken_for_a_success_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def believe(election: Election) -> Election:
        attempt = election.attempt
        return msgspec.structs.replace(
            election, renewed_at=attempt.sent_at if attempt and election.ours else election.renewed_at, in_doubt=False, attempt=None
        )

    monkeypatch.setattr(elector, "had_no_effect", lambda _error: True)
    monkeypatch.setattr(derive, "refused", believe)
    assert caught(two_act)


def test_a_lost_answer_that_is_not_read_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write had gone through; who does not read goes on with the old resourceVersion, and meets 409 for ever."""
    monkeypatch.setattr(elector, "had_no_effect", lambda _error: True)
    assert caught(nobody_leads)


def test_a_read_that_shows_one_of_two_lost_writes_must_not_count_from_the_later() -> None:
    """With a wall clock that stands still both carry the same renewTime: the older went through, before the later was sent."""
    sending = derive.sending

    def each_is_sole(election: Election, stamp: str, now: float) -> Election:
        return sending(msgspec.structs.replace(election, attempt=None), stamp, now)

    assert _counts_from(sending) < _counts_from(each_is_sole)


def _counts_from(sending: Callable[[Election, str, float], Election]) -> float:
    """The renewal credited to a holder whose first renewal arrived between a read that did not show it and the second's sending."""
    held = derive.seen(Election("a", derive.Times()), Record("1", "a", "T0", 15), 0.0)
    first = derive.seen(sending(held, "T1", 2.0), Record("1", "a", "T0", 15), 6.0)
    return derive.seen(sending(first, "T1", 7.0), Record("2", "a", "T1", 15), 8.0).renewed_at


def test_jitter_that_lengthens_a_wait_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As client-go does, which waits up to 2.2 retry periods."""
    rest_until = derive.rest_until

    def lengthened(election: Election, now: float, round_began: float, chance: float, retry_after: float | None = None) -> float:
        factor = 1 + 1.2 * chance
        return rest_until(election, now, round_began, (factor - derive.SHORTEST_WAIT) / (1 - derive.SHORTEST_WAIT), retry_after)

    monkeypatch.setattr(derive, "rest_until", lengthened)
    assert caught(late_takeover)


def test_a_patch_that_changes_nothing_and_counts_as_a_renewal_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock stands still and nobody sees to it that renewTime differs: the others see no life, and take over."""
    written = derive.written

    def whatever_came_of_it(election: Election, record: Record, now: float) -> Election:
        attempt = election.attempt
        careless = msgspec.structs.replace(attempt, base="") if attempt else None
        return written(msgspec.structs.replace(election, attempt=careless), record, now)

    monkeypatch.setattr(elector, "stamp", lambda now, _record: bodies.stamp(now, None))
    monkeypatch.setattr(derive, "written", whatever_came_of_it)
    assert caught(two_act)
