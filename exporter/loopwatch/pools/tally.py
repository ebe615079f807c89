"""Counts what a sidecar's loops did, and puts the counts into the store each time one of them moves."""

from __future__ import annotations

from typing import Final

from loopwatch.iri.probe import CODES, ProbeResult
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Histogram, Overdue
from loopwatch.pools.derive.duty import State
from loopwatch.pools.families.heartbeat import (
    HEARTBEAT,
    PROBE_BUCKETS_SECONDS,
    RESULTS,
    WRITE_BUCKETS_SECONDS,
    HeartbeatFacts,
)

UNNAMED_CODE: Final = "Unknown"
"""What a code is counted as that gRPC does not list: labels stay bounded whatever a probe brings."""


class Tally:
    """The facts of one pool's heartbeat; `machinepoollet_up` stays None where nobody asks it."""

    def __init__(self, store: Store, pool: str) -> None:
        self._store = store
        self._key = (pool,)
        self._state = State.WAITING
        self._ready_unpublished: int | Overdue | None = 0
        self._lease_writes = dict.fromkeys(RESULTS, 0)
        self._ready_writes = dict.fromkeys(RESULTS, 0)
        self._probes = dict.fromkeys(CODES, 0)
        self._lease_write_durations = Histogram(WRITE_BUCKETS_SECONDS)
        self._probe_durations = Histogram(PROBE_BUCKETS_SECONDS)
        self._probe_succeeded: bool | None = None
        self._machinepoollet_up: bool | None = None
        self._machine_classes: tuple[tuple[str, int], ...] | None = None
        self._put()

    def stands(self, state: State, ready_unpublished: int | Overdue | None) -> None:
        """What the sidecar may do now, and whether its Ready is kept from the pool."""
        if (state, ready_unpublished) != (self._state, self._ready_unpublished):
            self._state, self._ready_unpublished = state, ready_unpublished
            self._put()

    def lease_write(self, result: str, seconds: float) -> None:
        """An attempt to write the lease ended; `result` is one of RESULTS."""
        self._lease_writes[result] += 1
        self._lease_write_durations.observe(seconds)
        self._put()

    def ready_write(self, result: str) -> None:
        """An attempt to patch Ready ended; `result` is one of RESULTS."""
        self._ready_writes[result] += 1
        self._put()

    def probe(self, result: ProbeResult, seconds: float) -> None:
        """A probe ended."""
        self._probes[result.code if result.code in self._probes else UNNAMED_CODE] += 1
        self._probe_durations.observe(seconds)
        self._probe_succeeded = result.succeeded
        if result.succeeded:
            self._machine_classes = result.machine_classes
        self._put()

    def machinepoollet(self, *, answered: bool) -> None:
        """Its process was asked."""
        if answered is not self._machinepoollet_up:
            self._machinepoollet_up = answered
            self._put()

    def _put(self) -> None:
        facts = HeartbeatFacts(
            state=self._state,
            lease_writes=dict(self._lease_writes),
            lease_write_durations=self._lease_write_durations.value(),
            ready_writes=dict(self._ready_writes),
            ready_unpublished=self._ready_unpublished,
            probes=dict(self._probes),
            probe_durations=self._probe_durations.value(),
            probe_succeeded=self._probe_succeeded,
            machinepoollet_up=self._machinepoollet_up,
            machine_classes=self._machine_classes,
        )
        self._store.put(HEARTBEAT, self._key, facts)
