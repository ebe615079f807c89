"""The stand-in's copy of one resource: a list, then a watch, as its client library keeps it. Reads never go past it.

A read before the first list has succeeded waits, without a timeout: that is how a missing right to list leases blocks upstream's first
tick for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from loopwatch.kube.transport import TransportError
from loopwatch.sandbox.machinepoollet.calls import CallRefused, Process, Query
from loopwatch.sandbox.machinepoollet.documents import Document

_FIRST_BACKOFF_SECONDS = 0.8
_LONGEST_BACKOFF_SECONDS = 30.0
_WATCH_SECONDS = "300"
_GONE = 410


class WatchGone(Exception):
    """The watch can't go on from where it was: list again."""


class Cache:
    """Objects of one collection by name, or by namespace and name. `on_change` is called with each object that changed or went."""

    def __init__(
        self, process: Process, path: str, query: Query = (), on_change: Callable[[Document], None] = lambda _object: None
    ) -> None:
        self._calls = process.calls
        self._clock = process.clock
        self._path = path
        self._query = query
        self._on_change = on_change
        self._objects: dict[tuple[str, str], Document] = {}
        self._synced = asyncio.Event()

    @property
    def synced(self) -> bool:
        """True once a list has succeeded."""
        return self._synced.is_set()

    async def get(self, name: str, namespace: str = "") -> Document | None:
        """The object as this copy has it; waits for the first list."""
        await self._synced.wait()
        return self._objects.get((namespace, name))

    async def items(self) -> list[Document]:
        """All objects as this copy has them; waits for the first list."""
        await self._synced.wait()
        return list(self._objects.values())

    async def run(self) -> None:
        """Keep the copy until cancelled."""
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            try:
                version = await self._list()
                backoff = _FIRST_BACKOFF_SECONDS
                while True:
                    version = await self._watch(version)
            except WatchGone:
                continue
            except (CallRefused, TransportError):
                await self._clock.sleep(backoff)
                backoff = min(backoff * 2, _LONGEST_BACKOFF_SECONDS)

    async def _list(self) -> str:
        answer = await self._calls.send("GET", self._path, query=self._query)
        listed = {_key(item): item for item in answer.get("items") or []}
        gone = [old for key, old in self._objects.items() if key not in listed]
        changed = [item for key, item in listed.items() if self._objects.get(key) != item]
        self._objects = listed
        self._synced.set()
        for item in [*gone, *changed]:
            self._on_change(item)
        return str(answer["metadata"]["resourceVersion"])

    async def _watch(self, version: str) -> str:
        query = (
            *self._query,
            ("watch", "1"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", _WATCH_SECONDS),
        )
        try:
            async for event in self._calls.watch(self._path, query):
                version = self._take(event)
        except CallRefused as refusal:
            if refusal.status == _GONE:
                raise WatchGone from refusal
            raise
        return version

    def _take(self, event: Document) -> str:
        changed = event["object"]
        if event["type"] == "ERROR":
            if changed.get("code") == _GONE:
                raise WatchGone
            raise CallRefused(int(changed.get("code") or 0), str(changed.get("message")))
        if event["type"] == "DELETED":
            self._objects.pop(_key(changed), None)
        elif event["type"] != "BOOKMARK":
            self._objects[_key(changed)] = changed
        if event["type"] != "BOOKMARK":
            self._on_change(changed)
        return str(changed["metadata"]["resourceVersion"])


def _key(item: Document) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata.get("namespace") or "", metadata["name"]
