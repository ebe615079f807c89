"""Invariants 6 and 7: what the processes show. Counters are compared from one scrape to the next, objects once all is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from loopwatch.metrics.store import Store
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.observe import PoolsObserver
from tests.faults.hosts import ControllerHost, Host
from tests.faults.pods import SidecarHost
from tests.faults.truth import PoolTruth, ready_of

if TYPE_CHECKING:
    from tests.faults.invariants import Observer

JUST_WRITTEN_SECONDS = 0.05
"""What was written so short a time ago, and the longest that a message travels, may not have arrived."""


class Pages:
    """Scrapes each process, and remembers its counters."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._counters: dict[str, dict[str, float]] = {}

    def scrape(self) -> None:
        """Every process that runs."""
        for host, store, seen in _processes(self._observer.cluster.hosts):
            before = self._counters.get(host.client, {})
            witness = self._observer.witnesses.get(host.client)
            anew = set()
            if witness is not None:
                anew, witness.series_began_anew = witness.series_began_anew, set()
            elif isinstance(host, SidecarHost):
                anew = host.series_began_anew
                host.series_began_anew = set()
            page = host.ask(partial(_page, store, seen))
            if page is None:
                continue
            now = self._counters[host.client] = dict(counters(page))
            for series, value in now.items():
                if value < before.get(series, 0.0) and not any(f'machinepool="{pool}"' in series for pool in anew):
                    self._observer.fail(6, f"{host.client}: {series} fell from {before[series]:g} to {value:g}")

    def differences(self, *, quiet_seconds: float) -> list[str]:
        """Where a process that was undisturbed for so long holds or shows something else than the API server."""
        cluster = self._observer.cluster
        return [
            f"{host.client}: {text}"
            for host, store, seen in _processes(cluster.hosts)
            if cluster.undisturbed_seconds(host) >= quiet_seconds
            for text in host.ask(partial(self._differences, host, store, seen)) or ()
        ]

    def _differences(self, host: Host, store: Store, seen: PoolsObserver) -> list[str]:
        return list(self._compared(host, store, seen))

    def _compared(self, host: Host, store: Store, seen: PoolsObserver) -> Iterator[str]:
        truth = self._observer.truth.pools
        scope = [name for name in truth if not isinstance(host, SidecarHost) or host.pod.pool == name]
        held = {name for name in scope if truth[name].pool is not None or truth[name].lease is not None}
        if set(seen.views) != held:
            yield f"it holds {sorted(seen.views)}, the API server {sorted(held)}"
            return
        page = _page(store, seen)
        for name in sorted(held):
            if not self._in_flight(name):
                yield from _different(name, seen.views[name], truth[name])
                yield from _shown_otherwise(name, page, truth[name])

    def _in_flight(self, name: str) -> bool:
        return (
            self._observer.now - self._observer.written_at.get(name, 0.0)
            < JUST_WRITTEN_SECONDS + self._observer.cluster.plan.weather.slowest_seconds
        )


def counters(page: str) -> Iterator[tuple[str, float]]:
    """Every series of a page that may never fall: counters, and the buckets, counts and sums of histograms."""
    counting = False
    for line in page.splitlines():
        if line.startswith("# TYPE"):
            counting = line.endswith((" counter", " histogram"))
        elif counting and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            yield series, float(value)


def _processes(hosts: list[Host]) -> Iterator[tuple[Host, Store, PoolsObserver]]:
    for host in hosts:
        if not host.running:
            continue
        if isinstance(host, ControllerHost) and host.controller is not None:
            yield host, host.controller.store, host.controller.observer
        if isinstance(host, SidecarHost) and host.sidecar is not None:
            yield host, host.sidecar.store, host.sidecar.observer


def _page(store: Store, seen: PoolsObserver) -> str:
    return store.render(seen.moment()).decode()


def _different(name: str, view: PoolView, truth: PoolTruth) -> Iterator[str]:
    for what, held, stored in (("pool", view.pool, truth.pool), ("lease", view.lease, truth.lease)):
        mine = held.metadata.resource_version if held else None
        theirs = stored["metadata"]["resourceVersion"] if stored else None
        if mine != theirs:
            yield f"it holds version {mine} of the {what} of {name}, the API server {theirs}"
    if not view.readable:
        yield f"{name} counts as unreadable"


def _shown_otherwise(name: str, page: str, truth: PoolTruth) -> Iterator[str]:
    if truth.pool is not None:
        ready = ready_of(truth.pool)
        status = {"True": "true", "False": "false"}.get(ready.status, "unknown") if ready else "absent"
        line = f'loopwatch_machinepool_ready{{machinepool="{name}",status="{status}"}} 1\n'
        if line not in page:
            yield f"its page lacks {line.strip()}"
    if truth.lease is not None and (duration := truth.lease["spec"].get("leaseDurationSeconds")) is not None:
        line = f'loopwatch_machinepool_lease_duration_seconds{{machinepool="{name}"}} {duration}\n'
        if line not in page:
            yield f"its page lacks {line.strip()}"
