"""Writes core/v1 Events about a MachinePool: `kubectl describe machinepool` shows them.

core/v1 and not events.k8s.io, since that is what kubectl and every collector of Events reads, and what its rules of aggregation are made
for: an Event that comes again is one object whose `count` and `lastTimestamp` are patched (client-go v0.36, tools/record). A MachinePool
has no namespace, so its Events lie in `default`, where the API server wants them. It decides nothing and retries nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError
from loopwatch.kube.resources import EVENTS, MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import Transport
from loopwatch.kube.write import Writer
from loopwatch.microtime import render_seconds
from loopwatch.pools.derive.news import News
from loopwatch.pools.model import LIFECYCLE_MANAGER

NAMESPACE: Final = "default"
MOST_REMEMBERED: Final = 4096
"""As client-go's cache. A forgotten Event costs one more object, which the API server drops after an hour."""
LONGEST_NAME: Final = 253
NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class _Written:
    """An Event that is there, as far as this process knows."""

    name: str
    count: int


class EventWriter:
    """The writer of Events; `instance` names this process among its replicas."""

    def __init__(self, transport: Transport, clock: Clock, *, instance: str, timeout_seconds: float) -> None:
        self._write = Writer(transport, clock, field_manager=LIFECYCLE_MANAGER)
        self._clock = clock
        self._instance = instance
        self._timeout_seconds = timeout_seconds
        self._written: OrderedDict[tuple[str, str, str], _Written] = OrderedDict()

    async def write(self, news: News) -> None:
        """Create the Event, or count it where it was written before. Raises ApiError (403: the right is missing), TransportError."""
        key = (news.machinepool, news.uid, news.reason)
        before = self._written.get(key)
        if before is not None and await self._count(before, news):
            written = _Written(before.name, before.count + news.count)
        else:
            written = await self._create(news)
        self._written[key] = written
        self._written.move_to_end(key)
        if len(self._written) > MOST_REMEMBERED:
            self._written.popitem(last=False)

    async def _count(self, before: _Written, news: News) -> bool:
        """False where the Event is gone."""
        body = {"count": before.count + news.count, "lastTimestamp": render_seconds(news.at), "message": news.message}
        try:
            await self._write.merge_patch(EVENTS, ObjectKey(NAMESPACE, before.name), body, timeout_seconds=self._timeout_seconds)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    async def _create(self, news: News) -> _Written:
        name = self._name(news.machinepool)
        body = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "involvedObject": {
                "apiVersion": MACHINE_POOLS.api_version,
                "kind": MACHINE_POOLS.kind,
                "name": news.machinepool,
                "uid": news.uid,
                "resourceVersion": news.resource_version,
            },
            "type": news.type.value,
            "reason": news.reason,
            "message": news.message,
            "count": news.count,
            "firstTimestamp": render_seconds(news.first_at),
            "lastTimestamp": render_seconds(news.at),
            "source": {"component": LIFECYCLE_MANAGER},
            "reportingComponent": LIFECYCLE_MANAGER,
            "reportingInstance": self._instance,
        }
        await self._write.create(EVENTS, body, namespace=NAMESPACE, timeout_seconds=self._timeout_seconds)
        return _Written(name, news.count)

    def _name(self, machinepool: str) -> str:
        """As client-go: the object's name and a number in hexadecimal; a long name is cut, since both have 253 characters at most."""
        number = f"{int(self._clock.random() * 2**64):016x}"
        return f"{machinepool[: LONGEST_NAME - len(number) - 1].rstrip('-.')}.{number}"
