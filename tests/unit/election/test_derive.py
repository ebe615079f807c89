"""The pure decisions: until when one leads, what one may take and when, and what an answer or its absence proves."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.election import derive
from loopwatch.election.derive import ALWAYS, NEVER, Election, Step, Times
from loopwatch.election.record import Record

ME, OTHER = "me", "other"
BEGIN = Election(ME, Times())
FLOATS = st.floats(0, 1e6)


def held_by(holder: str, version: str = "1", renew_time: str = "T0", duration: int = 15) -> Record:
    return Record(version, holder, renew_time, duration, 0)


def renewed(at: float, version: str = "2") -> Election:
    """A process that held version 1, and sent a renewal at `at` that was answered a second later."""
    sent = derive.sending(derive.seen(BEGIN, held_by(ME), at - 1), "T1", at)
    return derive.written(sent, held_by(ME, version, "T1"), at + 1)


def test_a_lead_is_counted_from_the_sending_of_the_renewal_and_ends_at_the_deadline_itself() -> None:
    election = renewed(100)
    assert election.leads_until == 110
    assert derive.leading(election, 109.999)
    assert not derive.leading(election, 110)


def test_holding_the_lease_is_not_leading() -> None:
    found = derive.seen(BEGIN, held_by(ME), 5)
    assert found.ours
    assert not derive.leading(found, 5)
    assert derive.step(found, 5, 5) is Step.RENEW


def test_nobodys_lease_is_taken_and_no_lease_is_made() -> None:
    assert derive.step(derive.seen(BEGIN, None, 5), 5, 5) is Step.CREATE
    assert derive.step(derive.seen(BEGIN, held_by(""), 5), 5, 5) is Step.TAKE


def test_anothers_lease_is_free_once_it_stood_still_for_its_duration_as_timed_here() -> None:
    election = derive.seen(derive.seen(BEGIN, held_by(OTHER), 5), held_by(OTHER), 17)
    assert derive.free_at(election) == 20
    assert derive.step(election, 19.999, 19) is Step.WAIT
    assert derive.step(election, 20, 20) is Step.TAKE


def test_any_new_version_begins_the_wait_anew() -> None:
    election = derive.seen(derive.seen(BEGIN, held_by(OTHER, "1"), 5), held_by(OTHER, "2"), 17)
    assert derive.free_at(election) == 32


@pytest.mark.parametrize(("published", "expected"), [(40, 45), (1, 20), (0, 20), (-7, 20)])
def test_the_longer_of_the_published_and_our_own_duration_counts(published: int, expected: float) -> None:
    assert derive.free_at(derive.seen(BEGIN, held_by(OTHER, duration=published), 5)) == expected


def test_seeing_another_holder_or_none_ends_a_lead_at_once() -> None:
    for holder in (OTHER, ""):
        assert not derive.leading(derive.seen(renewed(100), held_by(holder, "3"), 102), 102)


def test_a_lease_that_vanished_is_free_a_whole_duration_later_but_its_leader_makes_it_again_at_once() -> None:
    stranger = derive.seen(derive.seen(BEGIN, held_by(OTHER), 5), None, 8)
    assert derive.free_at(stranger) == 23
    assert derive.free_at(derive.seen(stranger, None, 12)) == 23
    leader = derive.seen(renewed(100), None, 102)
    assert derive.leading(leader, 102)
    assert derive.step(leader, 102, 102) is Step.CREATE


def test_a_holder_whose_lead_had_lapsed_waits_when_its_lease_vanished() -> None:
    """Another may have taken over and lead since."""
    assert derive.free_at(derive.seen(renewed(100), None, 111)) == 126


def test_a_lease_that_came_back_is_judged_by_what_it_says() -> None:
    vanished = derive.seen(derive.seen(BEGIN, held_by(OTHER), 5), None, 8)
    assert derive.step(derive.seen(vanished, held_by("", "9"), 9), 9, 9) is Step.TAKE
    gone_again = derive.seen(derive.seen(vanished, held_by("", "9"), 9), None, 10)
    assert derive.free_at(gone_again) == 25


def test_until_a_write_is_answered_it_must_be_read_back() -> None:
    held = derive.seen(BEGIN, held_by(ME), 0)
    assert not derive.must_look(held, 1)
    assert derive.must_look(derive.sending(held, "T1", 1), 1)
    assert derive.must_look(derive.releasing(held), 1)
    assert not derive.must_look(derive.refused(derive.sending(held, "T1", 1)), 1)


def test_who_does_not_hold_the_lease_reads_before_it_decides() -> None:
    assert derive.must_look(BEGIN, 0)
    assert derive.must_look(derive.seen(BEGIN, held_by(OTHER), 0), 1)
    assert derive.must_look(derive.seen(BEGIN, None, 0), 1)


def test_a_lost_renewal_that_a_read_shows_counts_from_its_sending() -> None:
    lost = derive.sending(derive.seen(BEGIN, held_by(ME), 0), "T1", 2)
    found = derive.seen(lost, held_by(ME, "2", "T1"), 7)
    assert found.renewed_at == 2
    assert not found.in_doubt


@pytest.mark.parametrize(
    "shown",
    [held_by(ME, "1", "T0"), held_by(ME, "2", "T0"), held_by(OTHER, "2", "T1"), held_by(ME, "1", "T1"), None],
    ids=["unchanged", "touched by a stranger", "taken by another", "the same version", "gone"],
)
def test_a_lost_renewal_that_a_read_does_not_show_counts_for_nothing(shown: Record | None) -> None:
    lost = derive.sending(derive.seen(BEGIN, held_by(ME), 0), "T1", 2)
    assert derive.seen(lost, shown, 7).renewed_at == NEVER


def test_of_two_lost_writes_on_one_version_none_is_credited_by_a_read() -> None:
    first = derive.seen(derive.sending(derive.seen(BEGIN, held_by(ME), 0), "T1", 2), held_by(ME), 6)
    second = derive.sending(first, "T2", 7)
    assert derive.seen(second, held_by(ME, "2", "T2"), 12).renewed_at == NEVER


def test_a_lost_write_on_a_version_that_is_past_can_no_longer_happen() -> None:
    lost = derive.sending(derive.seen(BEGIN, held_by(ME), 0), "T1", 2)
    touched = derive.seen(lost, held_by(ME, "5", "T0"), 6)
    again = derive.sending(touched, "T2", 7)
    assert derive.seen(again, held_by(ME, "6", "T2"), 12).renewed_at == 7


def test_an_answer_counts_whatever_else_was_under_way() -> None:
    first = derive.seen(derive.sending(derive.seen(BEGIN, held_by(ME), 0), "T1", 2), held_by(ME), 6)
    assert derive.written(derive.sending(first, "T2", 7), held_by(ME, "2", "T2"), 8).renewed_at == 7


def test_an_answer_that_shows_no_new_version_or_another_holder_renewed_nothing() -> None:
    sent = derive.sending(derive.seen(BEGIN, held_by(ME), 0), "T1", 2)
    assert derive.written(sent, held_by(ME, "1", "T1"), 3).renewed_at == NEVER
    assert derive.written(sent, held_by(OTHER, "2", "T1"), 3).renewed_at == NEVER


def test_giving_up_ends_the_lead_lets_go_and_contends_no_more_until_the_time_is_over() -> None:
    election = derive.gave_up(renewed(100), 120)
    assert not derive.leading(election, 102)
    assert derive.step(election, 102, 102) is Step.RELEASE
    released = derive.written(derive.releasing(election), held_by("", "3"), 103)
    assert derive.step(released, 103, 103) is Step.WAIT
    assert not derive.must_look(released, 119)
    assert derive.rest_until(released, 103, 103, 0.5) == 120
    assert derive.must_look(released, 120)
    assert derive.step(derive.seen(released, held_by("", "3"), 120), 120, 120) is Step.TAKE


def test_a_renewal_that_was_under_way_when_the_lead_was_given_up_does_not_bring_it_back() -> None:
    under_way = derive.sending(renewed(100), "T2", 102)
    late = derive.written(derive.gave_up(under_way, 120), held_by(ME, "3", "T2"), 104)
    assert not derive.leading(late, 104)
    assert not derive.leading(late, 121)
    read_back = derive.seen(derive.gave_up(under_way, 120), held_by(ME, "3", "T2"), 104)
    assert not derive.leading(read_back, 104)


def test_this_rounds_renewal_is_enough() -> None:
    election = renewed(100)
    assert derive.step(election, 101, 100) is Step.WAIT
    assert derive.step(election, 102, 101.5) is Step.RENEW


@given(st.floats(0, 1, exclude_max=True), FLOATS, st.floats(0, 30))
def test_jitter_only_shortens_a_wait_and_by_a_fifth_at_most(chance: float, began: float, took: float) -> None:
    held = derive.seen(BEGIN, held_by(ME), began)
    due = derive.rest_until(held, began + took, began, chance)
    assert began + 1.6 - 1e-6 <= due <= began + 2.0 + 1e-6


def test_a_contender_comes_at_the_moment_at_which_the_lease_may_be_taken_and_never_in_the_past() -> None:
    election = derive.seen(BEGIN, held_by(OTHER), 5)
    assert derive.rest_until(election, 19.5, 19, 0.9) == 20
    assert derive.rest_until(election, 20.5, 20, 0.5) == pytest.approx(21.8)
    assert derive.rest_until(election, 6, 6, 0.5) == pytest.approx(7.8)


def test_a_contender_waits_as_the_server_asks_and_a_holder_does_not() -> None:
    assert derive.rest_until(derive.seen(BEGIN, held_by(OTHER), 5), 6, 6, 0.5, retry_after=30) == 36
    assert derive.rest_until(derive.seen(BEGIN, held_by(ME), 5), 6, 6, 0.5, retry_after=30) == pytest.approx(7.8)


def test_who_abstains_but_still_holds_the_lease_tries_to_let_go_each_period() -> None:
    election = derive.gave_up(renewed(100), ALWAYS)
    assert derive.rest_until(election, 102, 102, 0.5) == pytest.approx(103.8)
    assert derive.rest_until(derive.releasing(election), 102, 102, 0.5) == pytest.approx(103.8)


def test_who_gives_up_while_it_makes_a_lease_that_vanished_looks_after_it_soon() -> None:
    """Its CREATE may go through yet, and the Lease would then name a process that does not contend."""
    making = derive.gave_up(derive.sending(derive.seen(renewed(100), None, 102), "T2", 102), 120)
    assert derive.must_look(making, 103)
    assert derive.rest_until(making, 103, 103, 0.5) == pytest.approx(104.8)


@given(st.lists(st.tuples(st.sampled_from(["see", "send", "answer", "lose", "refuse", "give up"]), st.floats(0, 12)), max_size=30))
def test_a_lead_never_reaches_beyond_the_renew_deadline_after_the_last_sending(events: list[tuple[str, float]]) -> None:
    """Whatever comes in whatever order: the deadline is that of a write of ours, and of one that is no older than the last but a few."""
    election, now, version, sent_at = derive.seen(BEGIN, held_by(ME, "0"), 0.0), 0.0, 0, NEVER
    for event, wait in events:
        now += wait
        if event == "send":
            sent_at, election = now, derive.sending(election, f"T{now}", now)
        elif event == "answer" and election.attempt:
            version += 1
            election = derive.written(election, held_by(ME, str(version), election.attempt.stamp), now)
        elif event == "see":
            election = derive.seen(election, held_by(ME, str(version)), now)
        elif event == "lose":
            version += 1
            election = derive.seen(election, held_by(OTHER, str(version)), now)
        elif event == "refuse":
            election = derive.refused(election)
        elif event == "give up":
            election = derive.gave_up(election, now + 15)
        assert election.renewed_at <= sent_at
        if event in {"lose", "give up"}:
            assert not derive.leading(election, now)


def test_the_times_of_the_defaults_are_those_that_the_texts_say() -> None:
    times = Times()
    assert (times.request_timeout_seconds, times.act_timeout_seconds, times.longest_turn_seconds) == (4, 5, 31)


def test_what_is_known_is_never_changed_in_place() -> None:
    before = msgspec.structs.replace(BEGIN)
    derive.seen(BEGIN, held_by(OTHER), 1)
    derive.sending(BEGIN, "T", 1)
    assert before == BEGIN
