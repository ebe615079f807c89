"""Invariants 1, 2 and 4, at each mark: what the marking process knew when it sent it, and what it could have known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from loopwatch.kube.resources import LEASES
from loopwatch.kube.transport import Request
from tests.faults.truth import MARKED, PoolTruth, Write, ready_of
from tests.faults.witness import RESOURCES, Witness

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
        return [text for resource in RESOURCES for text in self._missed(witness, resource, pool)]

    def _missed(self, witness: Witness, resource: str, pool: str) -> Iterator[str]:
        now, grace = self._observer.now, self._observer.cluster.plan.times.grace
        who = f"{witness.client} marks {pool}"
        read_at = witness.read_at(resource, pool)
        if read_at is None or now - read_at > grace * CONFIRMED_FRACTION + HAIR_SECONDS:
            when = "never" if read_at is None else f"{now - read_at:.3f} s ago"
            yield f"{who}, and read its {resource} {when}: too long for a confirmation"
            return
        seen, truth = witness.seen.get(pool), self._observer.truth.pool(pool)
        if resource == LEASES.plural and seen is not None and seen.renew_time != truth.renew_time_at(read_at):
            yield f"{who}, holds its renewTime for {seen.renew_time}, and was answered {truth.renew_time_at(read_at)}"
        last = witness.last_due_news(resource, pool, read_at)
        if last is not None and last > witness.knows_since(resource) and witness.sight.seconds(last, now) <= grace - HAIR_SECONDS:
            ago, before = now - last, read_at - last
            yield (
                f"{who}, though {ago:.3f} s ago the API server had taken progress in its {resource}, {before:.3f} s before the read that"
                " confirmed the silence, and nothing had hindered that process"
            )
