"""What a sidecar may do at this moment: report, stand by, observe, or wait.

Whoever reports vouches for a machinepoollet, so nothing is reported before its process answered once, nor while it is silent (two ticks
running), nor for a pool that is known not to exist. Where nothing is known of the pool, a lease that exists is kept, and none is created.
Beyond that the mode decides:

    report    report at once, whoever holds the lease (as upstream)
    observe   never write
    auto      report where nobody does: the lease does not exist, or stood still in sight for two intervals (for three, where another
              sidecar was seen to renew it). A machinepoollet seen to renew, now or ever later, ends it: observe until the process
              ends, since its silence is exactly what the lifecycle must see.

Pure: each function takes a Duty, what was seen and when (monotonic seconds), and gives the next Duty. It writes nothing, asks nobody, and
refuses to take an unanswered API for an answer: a pool is absent only where an answer said so.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from loopwatch.pools.derive import lease_sight
from loopwatch.pools.derive.lease_sight import Holder, LeaseSight
from loopwatch.pools.model import Lease
from loopwatch.settings.model import Mode

MISSES_ALLOWED: Final = 1
"""One unanswered tick may be a busy process; the second in a row stops the reports."""
STILL_INTERVALS: Final = 2
STILL_INTERVALS_BESIDE_SIDECAR: Final = 3
"""A sidecar that was seen to renew is given one interval more than a lease of which nothing is known."""
NOT_AT_ALL: Final = float("inf")
_ROUNDING_SECONDS: Final = 1e-6
"""Sums of moments are floats: two intervals may read as a hair less."""


class State(enum.StrEnum):
    """The states, as `loopwatch_heartbeat_state` names them."""

    WAITING = "waiting"
    REPORTING = "reporting"
    STANDBY = "standby"
    OBSERVING = "observing"
    STOPPED = "stopped"


class Presence(enum.Enum):
    """Whether the MachinePool exists; UNKNOWN until an answer said either."""

    UNKNOWN = "unknown"
    PRESENT = "present"
    ABSENT = "absent"


class Duty(msgspec.Struct, frozen=True):
    """`vouched`: the machinepoollet's process answered at least once (or was not to be asked). `misses`: unanswered ticks running.

    `has_reported`: this process has held the lease.
    """

    mode: Mode
    sight: LeaseSight
    vouched: bool
    misses: int = 0
    pool: Presence = Presence.UNKNOWN
    has_reported: bool = False
    state: State = State.WAITING

    @property
    def reporting(self) -> bool:
        """True where lease and Ready may be written."""
        return self.state is State.REPORTING

    @property
    def silent(self) -> bool:
        """True while the machinepoollet does not answer."""
        return self.misses > MISSES_ALLOWED

    @property
    def watching(self) -> bool:
        """True where the lease decides whether to report: it must be kept in sight."""
        undecided = self.state in {State.WAITING, State.STANDBY}
        return undecided and self.mode is Mode.AUTO and _held_back(self) is None

    @property
    def still_seconds_needed(self) -> float:
        """How long the lease must stand still in sight before a sidecar in `auto` takes it."""
        return self.sight.interval_seconds * (STILL_INTERVALS_BESIDE_SIDECAR if self.sight.sidecar_renewed else STILL_INTERVALS)


def begin(mode: Mode, identity: str, interval_seconds: float, *, ask_machinepoollet: bool, at: float) -> Duty:
    """A process that has just started; without `ask_machinepoollet` it vouches unasked (`--machinepoollet-healthz off`)."""
    sight = lease_sight.recount(LeaseSight(identity, interval_seconds), at)
    return settle(Duty(mode, sight, vouched=not ask_machinepoollet), at)


def machinepoollet_answered(duty: Duty, at: float) -> Duty:
    """Its process answered; after a silence (or for the first time) the lease is watched anew, since it may renew by itself now."""
    back = duty.silent or not duty.vouched
    sight = lease_sight.recount(duty.sight, at) if back else duty.sight
    return settle(msgspec.structs.replace(duty, vouched=True, misses=0, sight=sight), at)


def machinepoollet_missed(duty: Duty, at: float) -> Duty:
    """A tick without an answer; those before the first answer don't count, nothing is reported then anyway."""
    return settle(msgspec.structs.replace(duty, misses=duty.misses + 1 if duty.vouched else 0), at)


def pool_seen(duty: Duty, presence: Presence, at: float) -> Duty:
    """An answer or the watch told whether the MachinePool exists."""
    return settle(msgspec.structs.replace(duty, pool=presence), at)


def lease_seen(duty: Duty, lease: Lease | None, at: float) -> Duty:
    """An answer or the watch showed the lease; None where it does not exist."""
    return settle(msgspec.structs.replace(duty, sight=lease_sight.see(duty.sight, lease, at)), at)


def settle(duty: Duty, at: float) -> Duty:
    """The same knowledge at a later moment: time alone can make a lease still enough."""
    state = _state(duty, at)
    reports = state is State.REPORTING and duty.sight.holder is Holder.OURSELVES
    return msgspec.structs.replace(duty, state=state, has_reported=duty.has_reported or reports)


def look_at(duty: Duty) -> float:
    """The moment at which the lease needs a GET to stay in sight; never where it need not be watched."""
    return duty.sight.in_sight_until if duty.watching else NOT_AT_ALL


def still_at(duty: Duty, at: float) -> float:
    """The moment at which the lease will have been still for long enough, if nothing comes; never where it goes out of sight before."""
    if not duty.watching or not duty.sight.known:
        return NOT_AT_ALL
    moment = at + duty.still_seconds_needed - lease_sight.still_for(duty.sight, at)
    return moment if moment < duty.sight.in_sight_until else NOT_AT_ALL


def why(duty: Duty) -> str:
    """The reason of the state, in words for a log line."""
    if duty.state is State.OBSERVING:
        return "--mode observe" if duty.mode is Mode.OBSERVE else "a machinepoollet renews the lease itself"
    if not duty.vouched:
        return "the machinepoollet's process has not answered yet"
    if duty.silent:
        return "the machinepoollet's process does not answer"
    if duty.pool is Presence.ABSENT:
        return "the MachinePool does not exist"
    if _creates_for_nobody(duty):
        return "there is no lease, and no answer yet whether the MachinePool exists"
    if duty.state is State.STANDBY:
        return "another sidecar renews the lease"
    if duty.state is State.REPORTING:
        return _why_reporting(duty)
    if not duty.sight.known:
        return "the lease has not been seen yet"
    return f"a holder of the lease may live: it is taken once it stood still for {duty.still_seconds_needed:g} s"


def _why_reporting(duty: Duty) -> str:
    if duty.mode is Mode.REPORT:
        return "--mode report"
    if duty.sight.holder is Holder.OURSELVES:
        return "the lease is ours"
    if duty.sight.lease is None:
        return "there is no lease"
    return f"the lease stood still for {duty.still_seconds_needed:g} s"


def _state(duty: Duty, at: float) -> State:
    if duty.mode is Mode.OBSERVE or (duty.mode is Mode.AUTO and duty.sight.machinepoollet_renewed):
        return State.OBSERVING
    held_back = _held_back(duty)
    if held_back is not None:
        return held_back
    if duty.mode is Mode.REPORT or _is_free(duty, at):
        return State.REPORTING
    return State.STANDBY if duty.sight.sidecar_renewed else State.WAITING


def _held_back(duty: Duty) -> State | None:
    """The state where something else than the lease's holder forbids to report; None where nothing does."""
    if not duty.vouched:
        return State.WAITING
    if duty.silent:
        return State.STOPPED
    if duty.pool is Presence.ABSENT:
        return State.STOPPED if duty.has_reported else State.WAITING
    return State.WAITING if _creates_for_nobody(duty) else None


def _creates_for_nobody(duty: Duty) -> bool:
    """A lease would have to be created, and nobody has said yet that its pool exists."""
    return duty.pool is Presence.UNKNOWN and duty.sight.known and duty.sight.lease is None


def _is_free(duty: Duty, at: float) -> bool:
    """Whether nobody else reports, as far as the lease shows."""
    sight = duty.sight
    if not sight.known:
        return False
    if sight.holder is Holder.OURSELVES or (sight.lease is None and not sight.sidecar_renewed):
        return True
    return lease_sight.still_for(sight, at) >= duty.still_seconds_needed - _ROUNDING_SECONDS
