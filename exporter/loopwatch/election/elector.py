"""The loop of election: looks, takes, renews, gives up; and the one question `leading()`.

A round each retry period. A holder renews with one request; everybody else reads, and takes what is free. A write that fails in any way
that may have had an effect is read back within the round, and tried again there, since the renew deadline runs. Losing the lead, an API
server that is away, a right that is missing: nothing of it ends the loop. It refuses to hold a flag: `leading()` compares the clock with
a deadline each time, so that a loop that stood still, for whatever reason, no longer leads when it goes on.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from loopwatch.clock import Clock
from loopwatch.election import derive
from loopwatch.election.bodies import stamp
from loopwatch.election.derive import Election, Step, Times
from loopwatch.election.failures import advice, had_no_effect
from loopwatch.election.record import Record
from loopwatch.kube.errors import ApiError
from loopwatch.kube.resources import ObjectKey
from loopwatch.kube.transport import TransportError
from loopwatch.log import Repeated, get_logger

RELEASE_SECONDS: Final = 1.0
"""What the release may take when the process ends: reads and tries included."""
TRIES: Final = 2
"""Tries of a round: one, and one more after what it ran into was looked at."""
_FAILED: Final = "the election Lease can't be read or written; it is tried again"
_RACE: Final = "conflict"
"""An error of this kind is how a race is lost: nothing to say."""
_REASONS: Final = {
    Step.CREATE: "there was no Lease: this process made it",
    Step.TAKE: "nobody held the Lease, or its holder had stopped renewing it",
    Step.RENEW: "the Lease, which names this process, was renewed again",
    Step.RELEASE: "this process released the Lease",
}
"""Why the lead changes with a write that went well."""


class Change(msgspec.Struct, frozen=True):
    """A beginning or an end of this process's lead, and why it came: for a log line."""

    leading: bool
    reason: str


class KeepsLease(Protocol):
    """election.act.ElectionLease."""

    @property
    def key(self) -> ObjectKey:
        """The Lease's namespace and name."""
        ...

    @property
    def identity(self) -> str:
        """What this process calls itself in it."""
        ...

    @property
    def times(self) -> Times:
        """The settings."""
        ...

    async def read(self) -> Record | None:
        """The newest version; None where there is none."""
        ...

    async def create(self, stamp: str) -> Record:
        """Make the Lease, held by this process."""
        ...

    async def patch(self, step: Step, on: Record, stamp: str) -> Record:
        """TAKE, RENEW or RELEASE this version."""
        ...


def process_identity() -> str:
    """`<hostname>_<uuid4>`, as client-go's programs name themselves: another one for each process, also on one host."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Elector:
    """One contender. `on_change` is told of each beginning and end; `turned` is called at each turn, at least each `longest_turn_seconds`.

    `transitions` counts both, beginnings and ends.
    """

    def __init__(
        self, lease: KeepsLease, clock: Clock, *, on_change: Callable[[Change], None], turned: Callable[[], None] = lambda: None
    ) -> None:
        self.transitions = 0
        self._lease, self._clock, self._on_change, self._turned = lease, clock, on_change, turned
        self._election = Election(lease.identity, lease.times)
        self._told = False
        self._began = asyncio.Event()
        self._woken = asyncio.Event()
        self._trouble = ""
        self._retry_after: float | None = None
        self._log = get_logger()
        self._repeated = Repeated(clock)

    @property
    def leads_until(self) -> float:
        """The monotonic moment at which the lead ends unless it is renewed; -inf where this process has none."""
        return self._election.leads_until

    def leading(self) -> bool:
        """Whether this process leads at this moment. Ask right before each write, and give the write at most `act_timeout_seconds`."""
        return derive.leading(self._election, self._clock.monotonic())

    def give_up(self, seconds: float) -> bool:
        """Stop leading now, let the Lease go, and don't contend for `seconds`; False, and nothing, where this process holds none.

        The caller has begun no write for `act_timeout_seconds`: another process may lead at once.
        """
        now = self._clock.monotonic()
        if derive.abstaining(self._election, now) or not (self._election.ours or self.leading()):
            return False
        self._becomes(derive.gave_up(self._election, now + seconds), "this process gave the lead up")
        self._woken.set()
        return True

    def stand_aside(self, seconds: float) -> None:
        """Don't begin to contend for `seconds`; a holder gives up instead (`give_up`)."""
        self._election = derive.stood_aside(self._election, self._clock.monotonic() + seconds)

    async def run(self) -> None:
        """Contend until cancelled; then release, within RELEASE_SECONDS. Whoever acts must have stopped by then."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._contend(), name="election")
                tasks.create_task(self._notice_deadlines(), name="election deadlines")
        finally:
            # In a task of its own: a timeout within a task that is being cancelled can't be told from its cancellation.
            await asyncio.create_task(self._leave())

    async def _contend(self) -> None:
        while True:
            self._turned()
            self._woken.clear()
            self._retry_after = None
            began = self._clock.monotonic()
            await self._round(began)
            chance = self._clock.random()
            await self._rest(derive.rest_until(self._election, self._clock.monotonic(), began, chance, self._retry_after))

    async def _rest(self, until: float) -> None:
        """Wait, but turn at least once a lease duration; `give_up` ends it."""
        while (left := until - self._clock.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(left, self._lease.times.lease_duration_seconds)):
                    await self._woken.wait()
            except TimeoutError:
                self._turned()
            else:
                return

    async def _round(self, began: float) -> None:
        for _ in range(TRIES):
            if derive.must_look(self._election, self._clock.monotonic()) and not await self._look():
                return
            step = derive.step(self._election, self._clock.monotonic(), began)
            if step is Step.WAIT or await self._write(step):
                return

    async def _look(self) -> bool:
        """Read the Lease; whether that went well."""
        try:
            record = await self._lease.read()
        except (ApiError, TransportError) as error:
            self._failed(error)
            return False
        self._trouble = ""
        self._becomes(derive.seen(self._election, record, self._clock.monotonic()), self._found(record))
        return True

    async def _write(self, step: Step) -> bool:
        """Write; whether the round is over with it. Until the answer is in, nobody knows what the Lease says."""
        record = self._election.record
        text = stamp(self._clock.utcnow(), record)
        sent_at = self._clock.monotonic()
        self._election = derive.releasing(self._election) if step is Step.RELEASE else derive.sending(self._election, text, sent_at)
        try:
            answer = await (self._lease.create(text) if record is None else self._lease.patch(step, record, text))
        except (ApiError, TransportError) as error:
            self._failed(error)
            if had_no_effect(error):
                self._election = derive.refused(self._election)
                return True
            return False
        self._trouble = ""
        self._becomes(derive.written(self._election, answer, self._clock.monotonic()), _REASONS[step])
        return True

    def _becomes(self, election: Election, reason: str) -> None:
        """The state changes; a lead that lapsed before is told of first."""
        self._settle(self._lapsed())
        self._election = election
        self._settle(reason)

    def _settle(self, reason: str) -> None:
        leading = self.leading()
        if leading == self._told:
            return
        self._told = leading
        self.transitions += 1
        if leading:
            self._began.set()
        self._on_change(Change(leading, reason))

    def _found(self, record: Record | None) -> str:
        if record is not None and record.holder == self._lease.identity:
            return "a write whose answer was lost had gone through"
        return f"the Lease is held by {record.holder}" if record and record.holder else "nobody holds the Lease"

    def _lapsed(self) -> str:
        deadline = self._lease.times.renew_deadline_seconds
        return f"the Lease was not renewed for {deadline:g} s" + (f": {self._trouble}" if self._trouble else "")

    async def _notice_deadlines(self) -> None:
        """A lead that lapses while a request hangs is told of when it lapses."""
        while True:
            await self._began.wait()
            self._began.clear()
            while (left := self.leads_until - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
            self._settle(self._lapsed())

    async def _leave(self) -> None:
        """The process ends: stop leading, and let the Lease go where it is ours."""
        self._becomes(derive.gave_up(self._election, derive.ALWAYS), "this process ends")
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._round(self._clock.monotonic())
        except TimeoutError:
            self._trouble = self._trouble or f"no answer within {RELEASE_SECONDS:g} s"
        if self._election.ours or self._election.in_doubt:
            seconds = self._lease.times.lease_duration_seconds
            self._log.warning(
                "the election Lease was not released: others take it once it has not changed for its duration",
                lease="/".join(self._lease.key),
                lease_seconds=seconds,
                error=self._trouble,
            )

    def _failed(self, error: ApiError | TransportError) -> None:
        self._trouble = str(error)
        self._retry_after = error.retry_after if isinstance(error, ApiError) else None
        if error.kind != _RACE:
            fix = advice(error, self._lease.key)
            self._repeated.say(self._log.warning, _FAILED, about=error.kind, error=self._trouble, **({"fix": fix} if fix else {}))
