"""What a process says of itself."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from loopwatch import __version__
from loopwatch.metrics.family import Component, Kind
from loopwatch.metrics.process import LAG_PERIOD_SECONDS, LAG_WINDOW_SECONDS, PROCESS, EventLoopLag, install
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Moment
from tests.support.stepped import SteppedClock, SteppedLoop, stepped

NOW = Moment(0.0, 0.0)


def block_the_loop(seconds: float) -> None:
    """What a callback does that computes for so long: time passes, and no timer runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    loop._jumping.now += seconds


@stepped
async def test_the_lag_is_the_latest_timer_of_the_last_window_and_falls_again() -> None:
    clock = SteppedClock()
    lag = EventLoopLag(clock)
    shown: list[float | None] = []
    async with asyncio.TaskGroup() as group:
        running = group.create_task(lag.run())
        due_after = LAG_PERIOD_SECONDS / 2
        asyncio.get_running_loop().call_later(3 * LAG_PERIOD_SECONDS - due_after, block_the_loop, 1.5)
        asyncio.get_running_loop().call_later(20 * LAG_PERIOD_SECONDS - due_after, block_the_loop, 0.5)
        for _ in range(3):
            shown.append(lag.largest_seconds)
            await clock.sleep(LAG_WINDOW_SECONDS + LAG_PERIOD_SECONDS)
        running.cancel()
    assert shown == [None, pytest.approx(1.5 - due_after), pytest.approx(0.0)]


@stepped
async def test_no_lag_is_shown_before_a_window_is_complete() -> None:
    clock = SteppedClock()
    lag = EventLoopLag(clock)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(lag.run())
        await clock.sleep(LAG_WINDOW_SECONDS - LAG_PERIOD_SECONDS)
        running.cancel()
    assert lag.largest_seconds is None


@stepped
async def test_the_page_holds_every_family_of_the_process() -> None:
    store = Store(PROCESS)
    lag = install(store, Component.SIDECAR, SteppedClock())
    lag.largest_seconds = 0.125
    page = store.render(NOW).decode()
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    assert {sample.name for sample in samples} == {family.name for family in PROCESS.families}
    values = {(sample.name, *sample.labels.values()): sample.value for sample in samples}
    assert values["loopwatch_build_info", __version__, "sidecar"] == 1
    assert values["loopwatch_event_loop_lag_seconds",] == 0.125
    assert values["process_resident_memory_bytes",] > 10e6
    assert values["process_cpu_seconds_total",] > 0
    assert values["process_open_fds",] < values["process_max_fds",]
    assert {key[1] for key in values if key[0] == "python_gc_collections_total"} == {"0", "1", "2"}


@stepped
async def test_each_scrape_looks_again() -> None:
    store = Store(PROCESS)
    lag = install(store, Component.CONTROLLER, SteppedClock())
    assert b"loopwatch_event_loop_lag_seconds" not in store.render(NOW)
    lag.largest_seconds = 1.5
    assert b"loopwatch_event_loop_lag_seconds 1.5\n" in store.render(NOW)


def test_names_types_and_help_texts_are_those_of_prometheus_client() -> None:
    registry = CollectorRegistry()
    GCCollector(registry=registry)
    ProcessCollector(registry=registry)
    theirs = {
        (metric.name + ("_total" if metric.type == "counter" else ""), metric.type, metric.documentation) for metric in registry.collect()
    }
    ours = {
        (family.name, family.kind.text_type, family.help)
        for family in PROCESS.families
        if family.kind is not Kind.INFO and not family.name.startswith("loopwatch_")
    }
    assert ours == theirs
