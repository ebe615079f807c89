"""Keeps one pool's lease: the heartbeat's only write besides Ready.

A steady beat is one merge patch with the remembered resourceVersion. Where the version is not the newest (409), or an answer was lost, the
lease is read and everything is decided again. A failed attempt is tried again within the tick, under a timeout that leaves room for
another, and never past the next tick: neither back-off nor Retry-After moves that one. It refuses to write what the duty does not allow
at the very moment of sending, and to create a lease for a pool that is not known to exist. It never releases or deletes a lease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.backoff import Backoff
from loopwatch.kube.errors import ApiError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, ObjectKey
from loopwatch.kube.transport import Transport, TransportError
from loopwatch.kube.write import Writer
from loopwatch.log import Repeated, get_logger
from loopwatch.microtime import render_micro
from loopwatch.pools.act import lease_bodies
from loopwatch.pools.act.results import CONFLICT, FIELD_MANAGER, NOT_FOUND, result_of, says_missing
from loopwatch.pools.derive.lease_sight import Holder
from loopwatch.pools.model import Lease, decode_lease
from loopwatch.pools.standing import Standing
from loopwatch.pools.tally import Tally

ATTEMPT_FRACTION: Final = 0.5
"""Of an interval: so long may an attempt take, and one that hangs leaves as much for another."""
FIRST_PAUSE_FRACTION: Final = 0.05
LONGEST_PAUSE_FRACTION: Final = 0.2
SERVER_ERRORS: Final = 500
"""From here on an answer does not say whether the write was applied."""

NAMESPACE_MISSING: Final = (
    f"the namespace {LEASE_NAMESPACE} does not exist, so no lease can be created in it; "
    f"create it: kubectl create namespace {LEASE_NAMESPACE} (IronCore's config/namespaces/machinepool-lease has it too)"
)
_NOT_RENEWED: Final = "the lease is not renewed"
_NOT_READ: Final = "the lease can't be read"


class Failure(msgspec.Struct, frozen=True):
    """An attempt that did not renew the lease. `answered` is False where nothing came back.

    `at_once`: a pause would not help, once.
    """

    answered: bool
    at_once: bool = False
    retry_after: float | None = None


class LeaseKeeper:
    """The keeper of one pool's lease for one identity."""

    def __init__(
        self,
        transport: Transport,
        standing: Standing,
        tally: Tally,
        clock: Clock,
        *,
        pool: str,
        interval_seconds: float,
        lease_duration_seconds: int,
    ) -> None:
        self._reader = Reader(transport, clock)
        self._writer = Writer(transport, clock, field_manager=FIELD_MANAGER)
        self._standing, self._tally, self._clock = standing, tally, clock
        self._key = ObjectKey(LEASE_NAMESPACE, pool)
        self._identity = standing.duty.sight.identity
        self._interval_seconds = interval_seconds
        self._lease_duration_seconds = lease_duration_seconds
        self._patience = self._usual_patience = interval_seconds * ATTEMPT_FRACTION
        self._doubted: str | None = None
        self._look_backoff = self._new_backoff()
        self._repeated = Repeated(clock)
        self._troubles: dict[str, set[str]] = {}

    async def beat(self, until: float) -> None:
        """Renew the lease once, whatever that takes: create it, take it, try again; given up at monotonic `until`, the next tick."""
        backoff = self._new_backoff()
        failures: list[Failure] = []
        while self._standing.duty.reporting:
            failure = await self._attempt(until)
            if failure is None:
                return
            at_once = failure.at_once and not any(earlier.at_once for earlier in failures)
            failures.append(failure)
            pause = 0.0 if at_once else backoff.next(failure.retry_after)
            if self._clock.monotonic() + pause >= until:
                break
            await self._clock.sleep(pause)
        if failures and failures[-1].at_once:
            self._say(_NOT_RENEWED, "conflict", "whenever it was to be written it had just been changed (409)")
        if failures and not any(failure.answered for failure in failures):
            # One long attempt gets through to a server that is merely slow; the tick after, two short ones again.
            long, short = self._interval_seconds, self._usual_patience
            self._patience = long if self._patience == short else short

    async def look(self) -> float:
        """Read the lease once, to keep it in sight; the moment before which it is not to be read again, after a failure."""
        failure = await self._read(self._clock.monotonic() + self._interval_seconds)
        if failure is None:
            self._look_backoff.reset()
            return self._clock.monotonic()
        return self._clock.monotonic() + self._look_backoff.next(failure.retry_after)

    def _new_backoff(self) -> Backoff:
        first, cap = (self._interval_seconds * fraction for fraction in (FIRST_PAUSE_FRACTION, LONGEST_PAUSE_FRACTION))
        return Backoff(self._clock, first_seconds=first, cap_seconds=cap)

    async def _attempt(self, until: float) -> Failure | None:
        if not self._standing.duty.sight.known or self._in_doubt():
            failure = await self._read(until)
            if failure or not self._standing.duty.reporting:
                return failure
        lease, now = self._standing.lease, render_micro(self._clock.utcnow())
        if lease is None:
            body = lease_bodies.creation(self._key.name, self._identity, self._lease_duration_seconds, now)
            return await self._write(lambda seconds: self._create(body, seconds), until, "the lease is created")
        if self._standing.duty.sight.holder is Holder.OURSELVES:
            patch = lease_bodies.renewal(lease, self._identity, self._lease_duration_seconds, now)
            return await self._write(lambda seconds: self._patch(patch, seconds), until)
        patch = lease_bodies.takeover(lease, self._identity, self._lease_duration_seconds, now)
        return await self._write(lambda seconds: self._patch(patch, seconds), until, "the lease is taken over", previous=lease.holder)

    async def _create(self, body: lease_bodies.Body, seconds: float) -> bytes:
        return await self._writer.create(LEASES, body, namespace=self._key.namespace, timeout_seconds=seconds)

    async def _patch(self, body: lease_bodies.Body, seconds: float) -> bytes:
        return await self._writer.merge_patch(LEASES, self._key, body, timeout_seconds=seconds)

    async def _write(self, send: Callable[[float], Awaitable[bytes]], until: float, news: str = "", **fields: str) -> Failure | None:
        began, asked = self._clock.monotonic(), self._standing.news_of_lease
        try:
            written = await send(self._attempt_seconds(until))
            lease = decode_lease(written)
        except (ApiError, TransportError) as error:
            self._tally.lease_write(result_of(error), self._clock.monotonic() - began)
            return self._write_failed(error, began, asked)
        except msgspec.DecodeError as error:
            self._tally.lease_write("error", self._clock.monotonic() - began)
            self._doubt()
            self._say(_NOT_RENEWED, "undecodable", f"the answer is no Lease: {error}")
            return Failure(answered=True)
        self._tally.lease_write("ok", self._clock.monotonic() - began)
        self._doubted = None
        self._answered(began)
        self._standing.lease_read(lease, asked_at_news=asked)
        if news:
            # Once a minute with a count: two reporters take the lease from each other at each tick, which the metrics show as a conflict.
            self._repeated.say(get_logger().info, news, machinepool=self._key.name, holder=self._identity, **fields)
        self._say_over(_NOT_RENEWED, "the lease is renewed again")
        return None

    def _write_failed(self, error: ApiError | TransportError, began: float, asked: int) -> Failure:
        """What a failed write leaves to do: read again where it may have been applied, or met a newer lease."""
        if not isinstance(error, ApiError):
            self._doubt()
            self._say(_NOT_RENEWED, *_kind_and_words(error))
            return Failure(answered=False)
        self._answered(began)
        if says_missing(error, self._key):
            self._standing.lease_read(None, asked_at_news=asked)
            return Failure(answered=True, at_once=True)
        if error.status == CONFLICT:
            self._doubt()
            return Failure(answered=True, at_once=True)
        if error.status >= SERVER_ERRORS:
            self._doubt()
        self._say(_NOT_RENEWED, *_kind_and_words(error))
        return Failure(answered=True, retry_after=error.retry_after)

    async def _read(self, until: float) -> Failure | None:
        began, asked = self._clock.monotonic(), self._standing.news_of_lease
        # Also where this read fails: the next attempt writes then, so that a server that answers only writes is written to.
        self._doubted = None
        try:
            body = await self._reader.get(LEASES, self._key, timeout_seconds=self._attempt_seconds(until))
            lease: Lease | None = decode_lease(body)
        except (ApiError, TransportError) as error:
            if not says_missing(error, self._key):
                return self._read_failed(error, began)
            lease = None
        except msgspec.DecodeError as error:
            self._say(_NOT_READ, "undecodable", f"the answer is no Lease: {error}")
            return Failure(answered=True)
        self._answered(began)
        self._standing.lease_read(lease, asked_at_news=asked)
        self._say_over(_NOT_READ, "the lease can be read again")
        return None

    def _read_failed(self, error: ApiError | TransportError, began: float) -> Failure:
        self._say(_NOT_READ, *_kind_and_words(error))
        if not isinstance(error, ApiError):
            return Failure(answered=False)
        self._answered(began)
        return Failure(answered=True, retry_after=error.retry_after)

    def _attempt_seconds(self, until: float) -> float:
        """The timeout of one request; a millisecond where the tick is all but over."""
        return max(min(self._patience, until - self._clock.monotonic()), 0.001)

    def _answered(self, began: float) -> None:
        quick = self._clock.monotonic() - began < self._usual_patience
        self._patience = self._usual_patience if quick else self._interval_seconds

    def _version(self) -> str:
        lease = self._standing.lease
        return lease.metadata.resource_version if lease else ""

    def _doubt(self) -> None:
        """The lease may have moved past what we know of it."""
        self._doubted = self._version()

    def _in_doubt(self) -> bool:
        """Until something else was seen of it: the watch ends a doubt as well as a read does."""
        return self._doubted is not None and self._doubted == self._version()

    def _say(self, event: str, kind: str, words: str) -> None:
        """Say a trouble when it begins, and once a minute while it lasts."""
        self._troubles.setdefault(event, set()).add(kind)
        self._repeated.say(get_logger().warning, event, about=kind, machinepool=self._key.name, error=words)

    def _say_over(self, event: str, news: str) -> None:
        kinds = self._troubles.pop(event, set())
        for kind in kinds:
            self._repeated.forget(event, kind)
        if kinds:
            get_logger().info(news, machinepool=self._key.name)


def _kind_and_words(error: ApiError | TransportError) -> tuple[str, str]:
    """What of an error is said once a minute at most, and how it is said."""
    if isinstance(error, ApiError) and error.status == NOT_FOUND and error.details_name == LEASE_NAMESPACE:
        return "namespace", NAMESPACE_MISSING
    return error.kind, str(error)
