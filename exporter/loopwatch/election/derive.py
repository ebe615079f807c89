"""Who leads, and what to do about it: one state, and the next step.

    leading   until the sending of our last renewal that the API took, plus the renew deadline. Nothing else makes a leader.
    taking    a Lease that nobody holds, or that has not changed for its duration, as seen and timed here.

Why there are never two. A leader's last renewal was sent at s and took effect at a ≥ s. It may send a write until s + renew deadline,
and such a write takes at most lease duration − renew deadline: all is over at s + lease duration. Another process sees the change at a
or later, waits the lease duration from then, and its own write is refused if anything happened meanwhile (resourceVersion). With
15 s / 10 s: renewed at 0, no new write from 10 on, none under way from 15 on; the other, which saw the renewal at 0.3, takes at 15.3.
It rests on monotonic clocks that run at one rate; where in a stall, or at what wall time, anything happens does not matter.

A reply that was lost is not judged: `in_doubt` asks for a read first. A write that such a read shows to be there counts from its sending,
but only if no other was sent on the same version: of two, nobody can tell which it was.

A Lease that vanished is not free either: whoever held it leads until its deadline, and so the wait begins anew; only its leader makes it
again at once, and a process that never saw one. Two holes are left, both made by hand: emptying the holder of a Lease that somebody leads
by, and deleting it just before a replica starts.

Pure: moments are monotonic seconds, chance is passed in. It refuses to read any time that stands in the Lease.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from loopwatch.election.record import Record

NEVER: Final = float("-inf")
ALWAYS: Final = float("inf")
SHORTEST_WAIT: Final = 0.8
"""A wait is 0.8 to 1.0 of the retry period. Jitter only shortens it: what lengthens a wait (client-go: up to 2.2 times) eats into the
renew deadline, and makes every takeover later than the settings say."""


class Times(msgspec.Struct, frozen=True):
    """As set; the defaults are those of every Kubernetes component. `settings.election_checks` says how they must relate."""

    lease_duration_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0

    @property
    def request_timeout_seconds(self) -> float:
        """What each request may take. One that hangs leaves as much again for the second try, before the deadline: 2 + 4 + 4 = 10 s."""
        return (self.renew_deadline_seconds - self.retry_period_seconds) / 2

    @property
    def act_timeout_seconds(self) -> float:
        """What a write may take that was begun while leading: 5 s with the defaults. Safety rests on it."""
        return self.lease_duration_seconds - self.renew_deadline_seconds

    @property
    def longest_turn_seconds(self) -> float:
        """The longest turn of the loop: a wait, then two tries of a read and a write each."""
        return self.lease_duration_seconds + 4 * self.request_timeout_seconds


class Step(enum.Enum):
    """What to write, if anything; which read comes first is `must_look`."""

    WAIT = "wait"
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    RELEASE = "release"


class Attempt(msgspec.Struct, frozen=True):
    """Our last write that may have renewed: on which version (empty: of a Lease that was not there), its renewTime, and when it was sent.

    `sole` says that no earlier write of ours may still be under way.
    """

    base: str
    stamp: str
    sent_at: float
    sole: bool


class Election(msgspec.Struct, frozen=True):
    """What one process knows. `record` is None where there is no Lease, and before the first read.

    `unchanged_since` is the moment at which this version was first seen here, or its absence where there had been a Lease.
    `abstain_until`: until then this process does not contend.
    """

    identity: str
    times: Times
    record: Record | None = None
    unchanged_since: float = NEVER
    renewed_at: float = NEVER
    attempt: Attempt | None = None
    in_doubt: bool = False
    abstain_until: float = NEVER

    @property
    def ours(self) -> bool:
        """The Lease names this process, as far as is known: not the same as leading."""
        return self.record is not None and self.record.holder == self.identity

    @property
    def leads_until(self) -> float:
        """The deadline."""
        return self.renewed_at + self.times.renew_deadline_seconds


def leading(election: Election, now: float) -> bool:
    """The one question; ask it right before each write."""
    return now < election.leads_until


def abstaining(election: Election, now: float) -> bool:
    """Whether this process gave the Lease up and does not contend yet."""
    return now < election.abstain_until


def must_look(election: Election, now: float) -> bool:
    """A holder that is in no doubt writes unread, one request a renewal; everybody else who contends reads before it decides."""
    return election.in_doubt or not (election.ours or abstaining(election, now))


def free_at(election: Election) -> float:
    """The moment from which the Lease, as last seen, may be taken; NEVER where it already may.

    The longer of two durations counts, the published and our own: a Lease edited by hand to one second must not cost its leader the lead.
    """
    record = election.record
    if record is not None and record.holder in {"", election.identity}:
        return NEVER
    published = record.duration_seconds if record else 0
    return election.unchanged_since + max(election.times.lease_duration_seconds, published)


def step(election: Election, now: float, round_began: float) -> Step:
    """What to write now; WAIT where nothing is, or where this round's renewal is in already."""
    if abstaining(election, now):
        return Step.RELEASE if election.ours else Step.WAIT
    if election.ours:
        return Step.WAIT if election.renewed_at >= round_began else Step.RENEW
    if election.record is None and leading(election, now):
        return Step.CREATE
    if now < free_at(election):
        return Step.WAIT
    return Step.CREATE if election.record is None else Step.TAKE


def sending(election: Election, stamp: str, now: float) -> Election:
    """A CREATE, TAKE or RENEW with this renewTime is about to be sent: from here on nobody knows what the Lease says."""
    base = election.record.version if election.record else ""
    return msgspec.structs.replace(election, attempt=Attempt(base, stamp, now, sole=election.attempt is None), in_doubt=True)


def releasing(election: Election) -> Election:
    """A RELEASE is about to be sent; it renews nothing."""
    return msgspec.structs.replace(election, in_doubt=True)


def refused(election: Election) -> Election:
    """The write certainly had no effect, and the refusal says nothing about the Lease (no right, throttled, not sent)."""
    return msgspec.structs.replace(election, in_doubt=False)


def written(election: Election, record: Record, now: float) -> Election:
    """A write was answered with the Lease as it is now. What changed nothing renewed nothing: nobody else can have seen it."""
    attempt = election.attempt
    return _saw(election, record, now, attempt if attempt and record.version != attempt.base else None)


def seen(election: Election, record: Record | None, now: float) -> Election:
    """A consistent read showed the Lease; None where it said that there is none. A lost write of ours may show in it."""
    attempt = election.attempt
    through = attempt and attempt.sole and record and record.renew_time == attempt.stamp and record.version != attempt.base
    return _saw(election, record, now, attempt if through else None)


def gave_up(election: Election, until: float) -> Election:
    """Stop leading now, and don't contend before `until`."""
    return msgspec.structs.replace(election, renewed_at=NEVER, abstain_until=until)


def stood_aside(election: Election, until: float) -> Election:
    """Don't contend before `until`: for a process that could not act if it led. Without effect on one that holds the Lease."""
    if election.ours:
        return election
    return msgspec.structs.replace(election, abstain_until=max(election.abstain_until, until))


def rest_until(election: Election, now: float, round_began: float, chance: float, retry_after: float | None = None) -> float:
    """The moment of the next round. `chance` is in [0, 1).

    Rounds keep the retry period from beginning to beginning, so that slow answers don't thin out the renewals. A contender comes earlier
    where the Lease may be taken earlier, and later where the server asks for it (Retry-After, seconds); a holder never comes later.
    """
    if abstaining(election, now) and not election.ours and not election.in_doubt:
        return election.abstain_until
    due = round_began + election.times.retry_period_seconds * (SHORTEST_WAIT + (1 - SHORTEST_WAIT) * chance)
    if election.ours:
        return due
    free = free_at(election)
    if now < free < due:
        due = free
    return max(due, now + (retry_after or 0.0))


def _saw(election: Election, record: Record | None, now: float, renewed_by: Attempt | None) -> Election:
    """The Lease is known again. Held by another, or by nobody, it ends our lead at once; where it vanished the deadline still holds."""
    before, attempt = election.record, election.attempt
    same = (before.version if before else None) == (record.version if record else None)
    renewed_at = election.renewed_at
    if record and record.holder != election.identity:
        renewed_at = NEVER
    elif renewed_by and not abstaining(election, now):
        renewed_at = renewed_by.sent_at
    return msgspec.structs.replace(
        election,
        record=record,
        unchanged_since=election.unchanged_since if same else now,
        renewed_at=renewed_at,
        # On a version that is past nothing can happen any more.
        attempt=None if record and attempt and record.version != attempt.base else attempt,
        in_doubt=False,
    )
