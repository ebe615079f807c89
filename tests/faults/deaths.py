"""Invariant 3: the dead are found. Looked at each tenth of a grace period, for each controller process and each pool.

A pool is dead for as long as the API server takes no progress of it. Three bounds, of which the first is the promise, the second is what
a new leader with warm observations owes, and the third holds a process to finding out that it has missed the news:

    a   grace + lease + a tenth of the grace, of time in which this process led, had sight and nothing came between it and the API
    b   once its own silence of the pool, in sight, is past grace + lease, and the time is over (in sight) that the first gap within it
        left the pool, its lease duration: a third of a grace in which it leads undisturbed
    c   the same, once twice grace + lease have passed in its sight since the API server took the last progress
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.faults.hosts import ControllerHost
from tests.faults.truth import PoolTruth, ready_of
from tests.faults.witness import Witness

if TYPE_CHECKING:
    from tests.faults.invariants import Observer

TICK_GRACES = 0.1
SETTLED_GRACES = 0.25
"""After a trouble a failed write or read may wait for its back-off: a fifth of the grace at most."""
ATTENTION_GRACES = 0.34
MENDED_GRACES = 1.6
"""An object that could not be read, and was mended, may be seen so late: a resource that was answered 404 is looked for once a minute."""
SLACK_GRACES = 0.1
"""5 s with the default grace."""
ELECTION_LEASES = 3
"""A leader that gave up for want of sight waits one lease duration, and another may have to be outwaited; the third is slack."""
ASSUMED_LEASE_SECONDS = 40
"""What a pool without a Lease is given after a gap."""


def published_seconds(pool: PoolTruth) -> float:
    """The lease duration that a gap in sight leaves the pool."""
    published = (pool.lease or {"spec": {}})["spec"].get("leaseDurationSeconds")
    return published or ASSUMED_LEASE_SECONDS


@dataclass
class Credit:
    """Time in which a controller could have marked a dead pool; it counts anew with each progress."""

    progress: tuple[float, float]
    seconds: float = 0.0


class Deaths:
    """Keeps the time of each dead pool with each controller."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._plan = observer.cluster.plan
        self._credits: dict[tuple[str, str], Credit] = {}
        self._led_since: dict[str, float] = {}
        self._leaderless_since = observer.now

    def tick(self) -> None:
        """Look at everything; called each TICK_GRACES of the grace."""
        cluster, grace = self._observer.cluster, self._plan.times.grace
        working = [host for host in cluster.controllers if host.running and host.controller is not None]
        for host in working:
            witness = self._observer.witness_of(host)
            if witness is None or not witness.controller.leading():
                self._led_since.pop(host.client, None)
                continue
            led = self._observer.now - self._led_since.setdefault(host.client, self._observer.now)
            undisturbed = min(cluster.undisturbed_seconds(host), led) if witness.sight.has(self._observer.now) else 0.0
            for name, pool in self._observer.truth.pools.items():
                self._judge(witness, name, pool, undisturbed / grace)
        self._somebody_leads(working)

    def _judge(self, witness: Witness, name: str, pool: PoolTruth, undisturbed_graces: float) -> None:
        if not self._must_be_marked(pool):
            self._credits.pop((witness.client, name), None)
            return
        seen = witness.seen.get(name)
        progress = (pool.progress_at, seen.progress_at if seen else 0.0)
        credit = self._credits.setdefault((witness.client, name), Credit(progress))
        if credit.progress != progress:
            credit.progress, credit.seconds = progress, 0.0
        now, times = self._observer.now, self._plan.times
        allowed = times.grace + min(published_seconds(pool), times.grace) + SLACK_GRACES * times.grace
        if undisturbed_graces >= SETTLED_GRACES:
            credit.seconds += TICK_GRACES * times.grace
        who = f"{witness.client} has not marked {name}"
        if credit.seconds > allowed:
            self._observer.fail(3, f"{who}, dead for {credit.seconds:.1f} s of undisturbed lead and sight ({allowed:g} s are allowed)")
        if undisturbed_graces < ATTENTION_GRACES or now - pool.progress_at < ATTENTION_GRACES * times.grace:
            return
        if now - pool.readable_since < MENDED_GRACES * times.grace:
            return
        silence = witness.silence(name, now)
        left = min(published_seconds(pool), times.grace) + SLACK_GRACES * times.grace
        sight = witness.sight
        forgiven = seen is not None and sight.seconds(sight.first_gap_ended(seen.progress_at), now) < left
        if silence is not None and silence > allowed and not forgiven:
            self._observer.fail(3, f"{who}, silent to it for {silence:.1f} s of sight ({allowed:g} s are allowed)")
        since_accepted = witness.sight.seconds(pool.progress_at, now)
        if since_accepted > 2 * allowed:
            self._observer.fail(3, f"{who}, and the API server took its last progress {since_accepted:.1f} s of sight ago")

    def _must_be_marked(self, pool: PoolTruth) -> bool:
        if pool.pool is None:
            return False
        if not pool.readable:
            return False
        ready = ready_of(pool.pool)
        return (ready is None or ready.status != "Unknown") and (pool.reported or self._plan.mark_never_reported)

    def _somebody_leads(self, working: list[ControllerHost]) -> None:
        if any(host.controller is not None and host.controller.leading() for host in working):
            self._leaderless_since = self._observer.now
            return
        times = self._plan.times
        longest = max((self._observer.cluster.undisturbed_seconds(host) for host in working), default=0.0)
        leaderless = min(longest, self._observer.now - self._leaderless_since)
        if leaderless > ELECTION_LEASES * times.election.lease_duration_seconds + SLACK_GRACES * times.grace:
            self._observer.fail(3, f"for {leaderless:.1f} s no controller leads, and nothing hinders one of them")
