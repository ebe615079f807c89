"""The sidecar's loops: the lease, the probe, Ready, and the machinepoollet's process.

Four tasks that share knowledge (`standing`) and never a wait: a runtime that hangs delays no renewal, an API server that hangs no probe.
Each keeps to a fixed grid of ticks from its start, drops late ticks, and says at each turn that it turns. What they write with is passed
in (`act`), and so is everything else that reaches outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from loopwatch.clock import Clock
from loopwatch.iri.probe import ProbeResult, RuntimeProbe, deadline_exceeded
from loopwatch.pools.bell import Ticks, sleep_until
from loopwatch.pools.derive import duty as duties
from loopwatch.pools.standing import Standing

MachinepoolletAnswers = Callable[[], Awaitable[bool]]
"""Asks the machinepoollet's process once; True for any answer. It may hang: whoever asks bounds it."""

RegisterLoop = Callable[[str, float], Callable[[], None]]
"""Announces a loop by its name and the longest that one turn of it may take, in seconds; gives what it calls at each turn."""

ASK_FRACTION: Final = 0.5
"""Of an interval: how long the machinepoollet's process may take to answer."""
FIRST_ANSWER_POLL_SECONDS: Final = 1.0
"""How often it is asked until it answers for the first time: a pod's containers start one after the other, and a tick would be long."""
SHORTEST_BEAT_FRACTION: Final = 0.5
"""Of an interval: a beat that begins closer to the next tick may go on past it."""
LONGEST_TURN_INTERVALS: Final = 5
LONGEST_TURN_SLACK_SECONDS: Final = 10.0
"""No turn of any loop here takes longer than 3 intervals; only a loop that stands still passes 5 of them, and 10 s."""


class LeaseWriter(Protocol):
    """What the lease task needs of act.lease.LeaseKeeper."""

    async def beat(self, until: float) -> None:
        """Renew the lease; give up at monotonic `until`."""
        ...

    async def look(self) -> float:
        """Read the lease; the moment before which it is not to be read again."""
        ...


class ReadyWriter(Protocol):
    """What the Ready task needs of act.ready.ReadyPublisher."""

    def due_at(self) -> float:
        """The moment at which to publish, infinite where there is nothing to."""
        ...

    async def publish(self) -> None:
        """Publish."""
        ...


class Heartbeat:
    """The loops of one pool. Without `machinepoollet_answers` nobody is asked (`--machinepoollet-healthz off`)."""

    def __init__(
        self,
        standing: Standing,
        lease: LeaseWriter,
        ready: ReadyWriter,
        probe: RuntimeProbe,
        machinepoollet_answers: MachinepoolletAnswers | None,
        clock: Clock,
        register_loop: RegisterLoop,
        *,
        interval_seconds: float,
        status_timeout_seconds: float,
    ) -> None:
        self._standing, self._lease, self._ready = standing, lease, ready
        self._probe, self._machinepoollet_answers = probe, machinepoollet_answers
        self._clock, self._register_loop = clock, register_loop
        self._interval_seconds = interval_seconds
        self._status_timeout_seconds = status_timeout_seconds

    async def run(self) -> None:
        """Beat until cancelled. Lease and Ready stay as they were last written: a reporter that stops says nothing (as upstream)."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_lease(), name="lease")
            tasks.create_task(self._keep_probing(), name="probe")
            tasks.create_task(self._keep_ready(), name="ready")
            if self._machinepoollet_answers is not None:
                tasks.create_task(self._keep_asking(self._machinepoollet_answers), name="machinepoollet")

    async def _keep_lease(self) -> None:
        """A beat at each tick while reporting, and one at once where a reason to wait has gone; looks while the lease decides."""
        turn, ticks, tick = self._begin("lease")
        bell = self._standing.bell()
        reported = False
        look_not_before = self._clock.monotonic()
        while True:
            turn()
            duty, now = self._standing.settle(), self._clock.monotonic()
            if duty.reporting and (now >= tick or not reported):
                reported = True
                tick = ticks.after(now)
                until = self._end_of_beat(tick, now)
                await self._lease.beat(until)
                # A tick that fell into a beat is served by it; one at which the beat was given up is due.
                tick = tick if self._clock.monotonic() < tick else until
                continue
            reported = duty.reporting
            if now >= tick:
                tick = ticks.after(now)
            look = max(duties.look_at(duty), look_not_before)
            if look <= now:
                look_not_before = await self._lease.look()
                continue
            await bell.wait(min(tick, look, duties.still_at(duty, now)))

    def _end_of_beat(self, tick: float, now: float) -> float:
        """The next tick, or the one after where a late beat, or one out of turn, would have too little time to try again."""
        return tick if tick - now >= SHORTEST_BEAT_FRACTION * self._interval_seconds else tick + self._interval_seconds

    async def _keep_probing(self) -> None:
        turn, ticks, _ = self._begin("probe")
        while True:
            turn()
            began = self._clock.monotonic()
            result = await self._probe_once()
            now = self._clock.monotonic()
            self._standing.probed(result, now - began)
            await sleep_until(self._clock, ticks.after(now))

    async def _probe_once(self) -> ProbeResult:
        """A probe bounds itself; a bound half-way from its timeout to the next tick stands behind it."""
        try:
            async with asyncio.timeout((self._status_timeout_seconds + self._interval_seconds) / 2):
                return await self._probe.status(self._status_timeout_seconds)
        except TimeoutError:
            return deadline_exceeded()

    async def _keep_ready(self) -> None:
        turn, _, _ = self._begin("ready")
        bell = self._standing.bell()
        while True:
            turn()
            due_at, now = self._ready.due_at(), self._clock.monotonic()
            if due_at <= now:
                await self._ready.publish()
            else:
                await bell.wait(min(due_at, now + self._interval_seconds))

    async def _keep_asking(self, answers: MachinepoolletAnswers) -> None:
        turn, ticks, _ = self._begin("machinepoollet")
        while True:
            turn()
            self._standing.machinepoollet(answered=await self._ask_once(answers))
            now = self._clock.monotonic()
            tick = ticks.after(now)
            await sleep_until(self._clock, tick if self._standing.duty.vouched else min(tick, now + FIRST_ANSWER_POLL_SECONDS))

    async def _ask_once(self, answers: MachinepoolletAnswers) -> bool:
        try:
            async with asyncio.timeout(self._interval_seconds * ASK_FRACTION):
                return await answers()
        except TimeoutError:
            return False

    def _begin(self, name: str) -> tuple[Callable[[], None], Ticks, float]:
        """A loop's turn, its grid, and its first tick, which is now."""
        now = self._clock.monotonic()
        turn = self._register_loop(name, LONGEST_TURN_INTERVALS * self._interval_seconds + LONGEST_TURN_SLACK_SECONDS)
        return turn, Ticks(now, self._interval_seconds), now
