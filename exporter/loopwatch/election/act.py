"""Writes the election's Lease, and reads it: the only part of election that talks to the API.

Each request goes once and has one timeout; an error is handed on as it is, since what it means depends on what was wanted (`failures`).
It decides nothing.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from loopwatch.clock import Clock
from loopwatch.election import bodies, record
from loopwatch.election.derive import Step, Times
from loopwatch.election.record import Record
from loopwatch.kube.errors import ApiError, Call
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASES, ObjectKey
from loopwatch.kube.transport import Transport
from loopwatch.kube.write import Writer

FIELD_MANAGER: Final = "loopwatch-controller"


class ElectionLease:
    """The Lease `key`, as this process (`identity`) reads and writes it. Methods raise ApiError and TransportError."""

    def __init__(self, transport: Transport, clock: Clock, key: ObjectKey, identity: str, times: Times) -> None:
        self.key = key
        self.identity = identity
        self.times = times
        self._reader = Reader(transport, clock, timeout_seconds=times.request_timeout_seconds)
        self._writer = Writer(transport, clock, field_manager=FIELD_MANAGER)

    async def read(self) -> Record | None:
        """The newest version, by a consistent read; None where there is no such Lease (or no such namespace: creating it tells)."""
        try:
            body = await self._reader.get(LEASES, self.key)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return self._decoded(body, "get")

    async def create(self, stamp: str) -> Record:
        """Make the Lease, held by this process. ApiError 409: it is there already; 404: its namespace is not."""
        body = bodies.creation(self.key, self.identity, self.times.lease_duration_seconds, stamp)
        timeout = self.times.request_timeout_seconds
        answer = await self._writer.create(LEASES, body, namespace=self.key.namespace, timeout_seconds=timeout)
        return self._decoded(answer, "create")

    async def patch(self, step: Step, on: Record, stamp: str) -> Record:
        """TAKE, RENEW or RELEASE the version `on`. ApiError 409: it is no longer the newest; 404: the Lease is gone."""
        body = bodies.patch(step, on, self.identity, self.times.lease_duration_seconds, stamp)
        answer = await self._writer.merge_patch(LEASES, self.key, body, timeout_seconds=self.times.request_timeout_seconds)
        return self._decoded(answer, "patch")

    def _decoded(self, body: bytes, verb: str) -> Record:
        try:
            return record.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ApiError.from_answer(HTTPStatus.OK, body, call=Call.on(verb, LEASES, self.key)) from error
