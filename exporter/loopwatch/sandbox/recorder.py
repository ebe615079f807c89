"""A log of every request, for assertions such as "one lease PATCH an interval and no other request"."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Final

KEPT_REQUESTS: Final = 100_000


@dataclass(slots=True)
class Record:
    """One request; `status` is 0 until its answer's head is sent, and stays 0 where none ever is."""

    at: float
    """Seconds by the sandbox's monotonic clock."""
    method: str
    path: str
    query: str
    client: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    status: int = 0


class Recorder:
    """The last KEPT_REQUESTS requests."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=KEPT_REQUESTS)

    def add(self, record: Record) -> None:
        """Note a request; its status is filled in later."""
        self._records.append(record)

    def clear(self) -> None:
        """Forget all."""
        self._records.clear()

    def matching(
        self,
        *,
        client: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
        subresource: str | None = None,
        name: str | None = None,
        since: float = 0.0,
    ) -> list[Record]:
        """The requests that equal every value given, from `since` on, in order."""
        wanted = {"client": client, "verb": verb, "resource": resource, "subresource": subresource, "name": name}
        given = {field: value for field, value in wanted.items() if value is not None}
        return [
            record
            for record in self._records
            if record.at >= since and all(getattr(record, field) == value for field, value in given.items())
        ]

    def counts(self) -> Counter[tuple[str, str, str]]:
        """How many requests each (client, verb, resource or resource/subresource) made."""
        counted: Counter[tuple[str, str, str]] = Counter()
        for record in self._records:
            what = f"{record.resource}/{record.subresource}" if record.subresource else record.resource
            counted[record.client, record.verb, what] += 1
        return counted
