"""Invariants 1, 2 and 4, at each mark: what the marking process knew when it sent it, and what it could have known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from loopwatch.kube.transport import Request
from tests.faults.truth import MARKED, PoolTruth, Write, ready_of
from tests.faults.witness import Witness

if TYPE_CHECKING:
    from tests.faults.invariants import Observer

HAIR_SECONDS = 0.002
"""Samples are rounded to a millisecond."""
CONFIRMED_FRACTION = 0.2
"""docs/architecture.md: a confirming read is no older than a fifth of the grace when the write leaves."""


class Marks:
    """Judges marks when they are sent; a judgement counts when the mark is accepted."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._judged: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self.accepted_marks = 0
        self.may_mark: Callable[[str, float], bool] = lambda _client, _at: True
        """Whether a process held the election's Lease at a moment."""

    def sent(self, witness: Witness, request: Request) -> None:
        """A controller sends a patch of a pool."""
        parts = request.path.split("/")
        pool = parts[-2]
        body: dict[str, Any] = msgspec.json.decode(request.body or b"{}")
        judged = self._judged[witness.client, pool] = []
        if parts[-1] != "status" or (ready := ready_of(body)) is None or (ready.status, ready.reason) != MARKED:
            judged.append((8, f"{witness.client} sent {request.path} something that is no mark: {body}"))
            return
        judged += [(1, text) for text in self._delivered(witness, pool)] + [(2, text) for text in self._could_have_known(witness, pool)]

    def accepted(self, write: Write, pool: PoolTruth) -> None:
        """A controller's write was accepted."""
        self.accepted_marks += 1
        for invariant, text in self._judged.get((write.by, write.name), [(8, f"{write.by} wrote what it never sent")]):
            self._observer.fail(invariant, text)
        if not self.may_mark(write.by, write.at):
            self._observer.fail(4, f"{write.by} marked {write.name} and does not hold the election's Lease")
        ready = ready_of(pool.pool)
        if ready is None or (ready.status, ready.reason) != MARKED:
            self._observer.fail(8, f"{write.by} wrote {write.name} and its Ready is {ready}")

    def _delivered(self, witness: Witness, pool: str) -> list[str]:
        now, grace = self._observer.now, self._observer.cluster.plan.times.grace
        silence = witness.silence(pool, now)
        if silence is None:
            return [f"{witness.client} marks {pool}, which it has never seen"]
        if silence > grace - HAIR_SECONDS:
            return []
        return [
            f"{witness.client} marks {pool}, whose progress had been delivered to it {silence:.3f} s of sight before (grace {grace:g} s)"
        ]

    def _could_have_known(self, witness: Witness, pool: str) -> list[str]:
        now, grace = self._observer.now, self._observer.cluster.plan.times.grace
        truth = self._observer.truth.pool(pool)
        found = []
        for resource, progress in (("leases", truth.lease_progress), ("machinepools", truth.ready_progress)):
            read_at = witness.read_at(resource, pool)
            if read_at is None or now - read_at > grace * CONFIRMED_FRACTION + HAIR_SECONDS:
                when = "never" if read_at is None else f"{now - read_at:.3f} s ago"
                found.append(f"{witness.client} marks {pool}, and read its {resource} {when}: too long for a confirmation")
                continue
            last = max((at for at in progress if witness.knows_since(resource) < at <= read_at), default=None)
            if last is not None and witness.sight.seconds(last, now) <= grace - HAIR_SECONDS:
                found.append(
                    f"{witness.client} marks {pool}, though {now - last:.3f} s before the API server had taken progress in its {resource},"
                    f" {read_at - last:.3f} s before the read that confirmed the silence"
                )
        return found
