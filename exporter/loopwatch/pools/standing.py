"""What one sidecar knows and may do at this moment: the one place where its loops meet.

Each loop tells what it learned (the watch brought a lease, the runtime answered, the machinepoollet was silent), and the pure parts say
what follows; whoever listens is woken where something changed. So no loop waits for another: they share knowledge, never a request. It
refuses old news: a watch that brings what an answer has overtaken is not believed, nor an answer that the watch has overtaken.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwatch.clock import Clock
from loopwatch.iri.probe import ProbeResult
from loopwatch.log import get_logger
from loopwatch.metrics.values import Overdue
from loopwatch.pools.bell import Bell
from loopwatch.pools.derive import duty as duties
from loopwatch.pools.derive import ready
from loopwatch.pools.derive.duty import Duty, Presence, State
from loopwatch.pools.derive.ready import Report
from loopwatch.pools.derive.versions import is_older
from loopwatch.pools.model import Condition, Lease, MachinePool
from loopwatch.pools.observe import PoolsObserver
from loopwatch.pools.tally import Tally


class Standing:
    """Of one pool. `news_of_pool` and `news_of_lease` rise with what the watch tells: who reads says which news it had when it asked."""

    def __init__(self, name: str, duty: Duty, report: Report, observer: PoolsObserver, tally: Tally, clock: Clock) -> None:
        self.duty = duty
        self.report = report
        self.pool: MachinePool | None = None
        self.news_of_pool = 0
        self.news_of_lease = 0
        self._name = name
        self._observer = observer
        self._tally = tally
        self._clock = clock
        self._bells: list[Bell] = []
        self._said: tuple[State, str] | None = None
        self._otherwise_since: float | None = None
        self._changed()

    @property
    def lease(self) -> Lease | None:
        """The lease as last seen."""
        return self.duty.sight.lease

    @property
    def published(self) -> Condition | None:
        """The pool's Ready condition as last seen."""
        return self.pool.ready if self.pool else None

    def bell(self) -> Bell:
        """A bell that rings at each change; one for each loop that listens."""
        bell = Bell(self._clock)
        self._bells.append(bell)
        return bell

    def settle(self) -> Duty:
        """The duty at this moment: time alone may have changed it, and what we have to say."""
        self._move(duties.settle(self.duty, self._clock.monotonic()))
        self._tally.stands(self.duty.state, self._unpublished())
        return self.duty

    def ours(self) -> Condition | None:
        """The Ready that we would publish now."""
        generation = self.pool.metadata.generation if self.pool else 0
        return ready.ready_condition(self.report, generation, self._clock.monotonic())

    def pools_changed(self, *, listed: bool) -> None:
        """The pools' watch brought something; with `listed` a complete list, which is believed in any case."""
        if not self._observer.pools_listed:
            return
        self.news_of_pool += 1
        view = self._observer.views.get(self._name)
        pool = self._observer.pool(self._name)
        # A pool that can't be decoded exists: its lease is renewed, and what was last read of it stays.
        unreadable = view is not None and not view.pool_readable
        if unreadable or (pool is not None and not listed and self._outdated(pool)):
            self._pool_is(Presence.PRESENT, self.pool)
        else:
            self._pool_is(Presence.PRESENT if pool else Presence.ABSENT, pool)

    def leases_changed(self, *, listed: bool) -> None:
        """The leases' watch brought something; with `listed` a complete list, which is believed in any case."""
        view = self._observer.views.get(self._name)
        if not self._observer.leases_listed or (view is not None and not view.lease_readable):
            return
        lease = self._observer.lease(self._name)
        known = self.lease
        if lease and known and not listed and is_older(lease.metadata.resource_version, known.metadata.resource_version):
            return
        self.news_of_lease += 1
        self._lease_is(lease)

    def pool_read(self, pool: MachinePool | None, *, asked_at_news: int) -> None:
        """An answer of the API showed the pool; None where it said that there is none."""
        if asked_at_news != self.news_of_pool and (pool is None or self._outdated(pool)):
            return
        self._pool_is(Presence.PRESENT if pool else Presence.ABSENT, pool)

    def lease_read(self, lease: Lease | None, *, asked_at_news: int) -> None:
        """An answer of the API showed the lease; None where it said that there is none."""
        known = self.lease.metadata.resource_version if self.lease else ""
        if asked_at_news != self.news_of_lease and (lease is None or is_older(lease.metadata.resource_version, known)):
            return
        self._lease_is(lease)

    def machinepoollet(self, *, answered: bool) -> None:
        """The machinepoollet's process was asked on its healthz."""
        self._tally.machinepoollet(answered=answered)
        fold: Callable[[Duty, float], Duty] = duties.machinepoollet_answered if answered else duties.machinepoollet_missed
        self._move(fold(self.duty, self._clock.monotonic()))

    def probed(self, result: ProbeResult, seconds: float) -> None:
        """The machine runtime was asked."""
        self._tally.probe(result, seconds)
        before, self.report = self.report, ready.probed(self.report, ready.Outcome(result.code, result.message))
        if self.report.news != before.news:
            self._say_outcome(result)
            self._changed()

    def _outdated(self, pool: MachinePool) -> bool:
        return self.pool is not None and is_older(pool.metadata.resource_version, self.pool.metadata.resource_version)

    def _pool_is(self, presence: Presence, pool: MachinePool | None) -> None:
        self.pool = pool
        self.duty = duties.pool_seen(self.duty, presence, self._clock.monotonic())
        self._changed()

    def _lease_is(self, lease: Lease | None) -> None:
        self._move(duties.lease_seen(self.duty, lease, self._clock.monotonic()))

    def _move(self, duty: Duty) -> None:
        if duty != self.duty:
            self.duty = duty
            self._changed()

    def _changed(self) -> None:
        self._say_state()
        self._tally.stands(self.duty.state, self._unpublished())
        for bell in self._bells:
            bell.ring()

    def _unpublished(self) -> int | Overdue | None:
        """0, or 1 once the pool has said otherwise for an interval; None while nobody knows what the pool says."""
        ours = self.ours() if self.duty.reporting else None
        if ours is None or (self.duty.pool is Presence.PRESENT and not ready.says_otherwise(ours, self.published)):
            self._otherwise_since = None
            return 0
        if self.pool is None:
            return None
        if self._otherwise_since is None:
            self._otherwise_since = self._clock.monotonic()
        return Overdue(self._otherwise_since, after=self.duty.sight.interval_seconds)

    def _say_state(self) -> None:
        state, because = self.duty.state, duties.why(self.duty)
        # Why we report changes as soon as we do (a free lease becomes ours): that is no change of state.
        saying = (state, "" if state is State.REPORTING else because)
        if saying != self._said:
            self._said = saying
            logger = get_logger()
            say = logger.warning if state is State.STOPPED else logger.info
            holder = self.lease.holder if self.lease else ""
            say("heartbeat", machinepool=self._name, state=state.value, because=because, lease_holder=holder)

    def _say_outcome(self, result: ProbeResult) -> None:
        logger = get_logger()
        if result.succeeded:
            logger.info("the machine runtime answers", machinepool=self._name)
        else:
            logger.warning("the machine runtime does not answer", machinepool=self._name, code=result.code, error=result.message)
