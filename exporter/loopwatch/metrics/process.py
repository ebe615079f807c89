"""What a process exposes of itself: memory, CPU, files, garbage collection, how late its event loop runs, and its version.

prometheus_client measures process_* and python_gc_*, under the names and help texts that every Python exporter has; they pass through
the store like all else, so that there is one page and one set of rules. Where there is no /proc, process_* are absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

import msgspec
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector

from loopwatch import __version__
from loopwatch.clock import Clock
from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Samples

LAG_PERIOD_SECONDS: Final = 0.25
LAG_WINDOW_SECONDS: Final = 10.0


class ProcessFacts(msgspec.Struct, frozen=True):
    """One look at this process. `measured`: by family name, what prometheus_client's collectors found, by label values."""

    measured: Mapping[str, Mapping[tuple[str, ...], float]]
    lag_seconds: float | None
    version: str
    component: str


class EventLoopLag:
    """How much later than asked for this process's event loop runs a timer: what every heartbeat and deadline suffers too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.largest_seconds: float | None = None
        """The largest lag of the last completed window; None until one is."""

    async def run(self) -> NoReturn:
        """Measure until cancelled."""
        while True:
            window_ends = self._clock.monotonic() + LAG_WINDOW_SECONDS
            largest = 0.0
            while (before := self._clock.monotonic()) < window_ends:
                await self._clock.sleep(LAG_PERIOD_SECONDS)
                largest = max(largest, self._clock.monotonic() - before - LAG_PERIOD_SECONDS)
            self.largest_seconds = largest


def _measured(name: str, kind: Kind, help_text: str, *labels: Label) -> Family[ProcessFacts]:
    def samples(facts: ProcessFacts) -> Samples:
        return facts.measured.get(name)

    return Family(name, kind, help_text, samples, Authority.OWN, labels=labels)


_GENERATION: Final = Label("generation", "the garbage collector's generations: 0, 1, 2")

PROCESS: Final = Group(
    "process",
    (),
    (
        _measured("process_virtual_memory_bytes", Kind.GAUGE, "Virtual memory size in bytes."),
        _measured("process_resident_memory_bytes", Kind.GAUGE, "Resident memory size in bytes."),
        _measured("process_start_time_seconds", Kind.GAUGE, "Start time of the process since unix epoch in seconds."),
        _measured("process_cpu_seconds_total", Kind.COUNTER, "Total user and system CPU time spent in seconds."),
        _measured("process_open_fds", Kind.GAUGE, "Number of open file descriptors."),
        _measured("process_max_fds", Kind.GAUGE, "Maximum number of open file descriptors."),
        _measured("python_gc_objects_collected_total", Kind.COUNTER, "Objects collected during gc", _GENERATION),
        _measured("python_gc_objects_uncollectable_total", Kind.COUNTER, "Uncollectable objects found during GC", _GENERATION),
        _measured("python_gc_collections_total", Kind.COUNTER, "Number of times this generation was collected", _GENERATION),
        Family[ProcessFacts](
            "loopwatch_event_loop_lag_seconds",
            Kind.GAUGE,
            "The most that a timer of this process ran late within the last completed window of 10 s; absent until one is complete.",
            lambda facts: facts.lag_seconds,
            Authority.OWN,
        ),
        Family[ProcessFacts](
            "loopwatch_build_info",
            Kind.INFO,
            "This process: the version of loopwatch, and which component it is.",
            lambda facts: {(facts.version, facts.component): 1},
            Authority.OWN,
            labels=(
                Label("version", "one per version that runs"),
                Label("component", ", ".join(component.value for component in Component)),
            ),
        ),
    ),
)


def install(store: Store, component: Component, clock: Clock) -> EventLoopLag:
    """Have this process looked at before each scrape; the caller runs what is returned beside its own loops."""
    registry = CollectorRegistry()
    GCCollector(registry=registry)
    ProcessCollector(registry=registry)
    lag = EventLoopLag(clock)

    def look() -> None:
        store.put(PROCESS, (), ProcessFacts(_collect(registry), lag.largest_seconds, __version__, component.value))

    store.before_reading(look)
    return lag


def _collect(registry: CollectorRegistry) -> dict[str, dict[tuple[str, ...], float]]:
    measured: dict[str, dict[tuple[str, ...], float]] = {}
    for metric in registry.collect():
        for sample in metric.samples:
            measured.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return measured
