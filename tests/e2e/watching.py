"""Sees every change of one collection on a real API server, with the moment it was read: the stop-watch of the end-to-end tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.real_servers.client import Client, WatchEvent

POOLS = "/apis/compute.ironcore.dev/v1alpha1/machinepools"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases"
MACHINES = "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines"
LONGEST_SECONDS = 3600.0


class Watcher:
    """Watches from now on, in a thread of its own; use it in a `with`.

    `events` holds what was seen, oldest first; `at` is time.monotonic() when the event was read. A broken watch is raised by the next
    call, never hidden: after the server was killed, make a new one.
    """

    def __init__(self, client: Client, collection: str) -> None:
        listed = client.get(collection).expect(200)
        self._collection = collection
        self._events: list[WatchEvent] = []
        self._changed = threading.Condition()
        self._problem: Exception | None = None
        self._stream = client.watch(collection, listed["metadata"]["resourceVersion"], LONGEST_SECONDS)
        self._thread = threading.Thread(target=self._follow, name=f"watch {collection}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()
        self._thread.join()

    @property
    def events(self) -> list[WatchEvent]:
        """What was seen so far."""
        with self._changed:
            self._check()
            return list(self._events)

    def wait_for(self, claim: str, matches: Callable[[WatchEvent], bool], within_seconds: float, *, after: float = 0.0) -> WatchEvent:
        """The first event read after the moment `after` that matches; AssertionError with what was seen instead when time is up."""
        deadline = time.monotonic() + within_seconds
        with self._changed:
            while True:
                self._check()
                found = next((event for event in self._events if event.at > after and matches(event)), None)
                if found is not None:
                    return found
                left = deadline - time.monotonic()
                if left <= 0:
                    seen = "\n".join(f"  {event.at:.3f} {event.type} {event.object}" for event in self._events[-10:])
                    raise AssertionError(f"not {claim} within {within_seconds:g} s; the last events of {self._collection}:\n{seen}")
                self._changed.wait(left)

    def _check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _follow(self) -> None:
        try:
            for event in self._stream:
                with self._changed:
                    self._events.append(event)
                    self._changed.notify_all()
        except Exception as problem:  # noqa: BLE001 - handed to the thread that asks, which raises it
            with self._changed:
                self._problem = problem
                self._changed.notify_all()


def ready(pool: dict[str, Any]) -> tuple[str, str]:
    """(status, reason) of a MachinePool's Ready condition; empty texts where it has none."""
    for condition in pool.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready":
            return condition["status"], condition.get("reason", "")
    return "", ""


def became(name: str, status: str, reason: str = "") -> Callable[[WatchEvent], bool]:
    """Matches the pool `name` once its Ready has this status (and this reason, where one is given)."""

    def matches(event: WatchEvent) -> bool:
        found = ready(event.object)
        return event.object["metadata"]["name"] == name and found[0] == status and reason in ("", found[1])

    return matches
