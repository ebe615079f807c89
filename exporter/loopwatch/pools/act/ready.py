"""Publishes the pool's Ready condition: its single writer in this process, one request at a time.

The conditions list is atomic, so the pool is read, our entry replaced, every other kept as it was read, and the whole list patched with
that read's resourceVersion as precondition; a 409 reads and decides again. Where nothing differs nothing is written: a steady pool keeps
its resourceVersion. It refuses to write what the duty does not allow at the moment of sending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.backoff import Backoff
from loopwatch.kube.errors import ApiError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import Transport, TransportError
from loopwatch.kube.write import Writer
from loopwatch.log import Repeated, get_logger
from loopwatch.microtime import render_seconds
from loopwatch.pools.act.results import CONFLICT, FIELD_MANAGER, result_of, says_missing
from loopwatch.pools.derive import conditions, ready
from loopwatch.pools.derive.conditions import RawCondition
from loopwatch.pools.model import Condition, decode_machine_pool
from loopwatch.pools.standing import Standing
from loopwatch.pools.tally import Tally

ATTEMPT_FRACTION: Final = 0.5
"""Of an interval: how long a read or a write of the pool may take."""
FIRST_PAUSE_FRACTION: Final = 0.05
CONFLICTS_AT_ONCE: Final = 3
"""Reads and writes in a row that meet another writer's change; then the back-off applies, as nobody wins such a race by haste."""

_NOT_PUBLISHED: Final = "Ready is not published"


class Read(NamedTuple):
    """What a write is decided on: a version, and the whole list as it stood there."""

    resource_version: str
    conditions: Sequence[RawCondition]


class ReadyPublisher:
    """The writer of one pool's Ready."""

    def __init__(self, transport: Transport, standing: Standing, tally: Tally, clock: Clock, *, pool: str, interval_seconds: float) -> None:
        self._reader = Reader(transport, clock)
        self._writer = Writer(transport, clock, field_manager=FIELD_MANAGER)
        self._standing, self._tally, self._clock = standing, tally, clock
        self._key = ObjectKey("", pool)
        self._interval_seconds = interval_seconds
        self._timeout_seconds = interval_seconds * ATTEMPT_FRACTION
        self._backoff = Backoff(clock, first_seconds=interval_seconds * FIRST_PAUSE_FRACTION, cap_seconds=interval_seconds)
        self._not_before = float("-inf")
        self._wrote_at = float("-inf")
        self._published_news = 0
        self._repeated = Repeated(clock)

    def due_at(self) -> float:
        """The moment at which to publish, as far as is known now; infinite where there is nothing to do."""
        duty, report = self._standing.settle(), self._standing.report
        if not duty.reporting or self._standing.pool is None or report.outcome is None:
            return ready.NOT_AT_ALL
        ours = self._standing.ours()
        if ours is None:
            return ready.speaks_at(report)
        return max(self._publish_at(ours, self._standing.published), self._not_before)

    async def publish(self) -> None:
        """Read the pool, and write our Ready where it is to be written. Whatever fails is counted, said, and due again later."""
        for _ in range(CONFLICTS_AT_ONCE):
            try:
                if await self._publish():
                    return
            except (ApiError, TransportError) as error:
                self._failed(result_of(error), str(error), error.retry_after if isinstance(error, ApiError) else None)
                return
            except msgspec.DecodeError as error:
                self._failed("undecodable", f"the answer is no MachinePool: {error}", None)
                return
        self._failed("conflict", f"{CONFLICTS_AT_ONCE} times in a row the pool had changed before the write", None)

    async def _publish(self) -> bool:
        """False where the pool changed between the read and the write."""
        news = self._standing.report.news
        read = await self._read()
        if read is None:
            return True
        ours = self._standing.ours()
        published = self._standing.published
        if ours is None or not self._standing.duty.reporting:
            return True
        due_at = self._publish_at(ours, published)
        if due_at <= self._clock.monotonic():
            # Nothing is awaited between this decision and the request.
            return await self._write(read, ours, news)
        if due_at == ready.NOT_AT_ALL:
            self._settled(news)
        return True

    async def _read(self) -> Read | None:
        """The pool as it is now; None where there is none."""
        asked = self._standing.news_of_pool
        try:
            body = await self._reader.get(MACHINE_POOLS, self._key, timeout_seconds=self._timeout_seconds)
        except ApiError as error:
            if not says_missing(error, self._key):
                raise
            self._standing.pool_read(None, asked_at_news=asked)
            return None
        pool = decode_machine_pool(body)
        self._standing.pool_read(pool, asked_at_news=asked)
        raw: dict[str, Any] = msgspec.json.decode(body)
        return Read(pool.metadata.resource_version, (raw.get("status") or {}).get("conditions") or [])

    async def _write(self, read: Read, ours: Condition, news: int) -> bool:
        now = render_seconds(self._clock.utcnow())
        body = {
            "metadata": {"resourceVersion": read.resource_version},
            "status": {"conditions": conditions.replace(read.conditions, ready.as_entry(ours), now)},
        }
        asked = self._standing.news_of_pool
        try:
            answer = await self._writer.merge_patch(
                MACHINE_POOLS, self._key, body, subresource="status", timeout_seconds=self._timeout_seconds
            )
        except (ApiError, TransportError) as error:
            self._tally.ready_write(result_of(error))
            if isinstance(error, ApiError) and error.status == CONFLICT:
                return False
            raise
        self._tally.ready_write("ok")
        self._wrote_at = self._clock.monotonic()
        written = decode_machine_pool(answer)
        self._standing.pool_read(written, asked_at_news=asked)
        if ready.says_otherwise(ours, written.ready):
            self._failed("ignored", "the API server answered 200 to the patch, and left the Ready condition as it was", None)
            return True
        self._settled(news)
        get_logger().info("Ready is published", machinepool=self._key.name, status=ours.status, reason=ours.reason)
        return True

    def _publish_at(self, ours: Condition, published: Condition | None) -> float:
        return ready.publish_at(
            ours,
            published,
            news=self._standing.report.news != self._published_news,
            wrote_at=self._wrote_at,
            interval_seconds=self._interval_seconds,
            at=self._clock.monotonic(),
        )

    def _settled(self, news: int) -> None:
        """What was said up to `news` is published, or need not be."""
        self._published_news = news
        self._backoff.reset()
        self._not_before = float("-inf")
        self._repeated = Repeated(self._clock)

    def _failed(self, kind: str, words: str, retry_after: float | None) -> None:
        self._not_before = self._clock.monotonic() + self._backoff.next(retry_after)
        self._repeated.say(get_logger().warning, _NOT_PUBLISHED, about=kind, machinepool=self._key.name, error=words)
