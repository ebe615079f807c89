"""Looks at the demo as Prometheus would: scrapes /metrics over HTTP and keeps the states that each pool's Ready passed through."""

from __future__ import annotations

import re
from typing import Final

import aiohttp

from loopwatch.clock import Clock
from loopwatch.demo.story import GONE, POOLS

PERIOD_SECONDS: Final = 0.1
_SHOWN: Final = re.compile(r'^loopwatch_machinepool_ready\{machinepool="([^"]+)",status="([^"]+)"\} 1$', re.MULTILINE)
_COUNTED: Final = re.compile(r'^loopwatch_machinepool_ready_transitions_total\{machinepool="([^"]+)",to="([^"]+)"\} (\d+)$', re.MULTILINE)


def transitions(page: str) -> dict[str, dict[str, int]]:
    """How often Ready turned to each status, by pool, as one page of /metrics counts it."""
    counted: dict[str, dict[str, int]] = {pool: {} for pool in POOLS}
    for pool, status, count in _COUNTED.findall(page):
        counted.setdefault(pool, {})[status] = int(count)
    return counted


def states(page: str) -> dict[str, str]:
    """The state of Ready of each pool of the story, as one page of /metrics shows it."""
    shown = dict(_SHOWN.findall(page))
    return {pool: shown.get(pool, GONE) for pool in POOLS}


class Scraper:
    """Scrapes until cancelled; `seen` holds the states of each pool in the order in which they changed, `transitions` the last counters."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.seen: dict[str, list[str]] = {pool: [] for pool in POOLS}
        self.transitions: dict[str, dict[str, int]] = {}
        self._url, self._clock = url, clock

    async def run(self) -> None:
        """Scrape each tenth of a second."""
        async with aiohttp.ClientSession(trust_env=False, timeout=aiohttp.ClientTimeout(total=5)) as session:
            while True:
                async with session.get(self._url) as response:
                    response.raise_for_status()
                    page = await response.text()
                    self.transitions = transitions(page)
                    self._keep(states(page))
                await self._clock.sleep(PERIOD_SECONDS)

    def now(self, pool: str) -> str:
        """The pool's state at the last scrape."""
        return self.seen[pool][-1] if self.seen[pool] else GONE

    def _keep(self, shown: dict[str, str]) -> None:
        for pool, state in shown.items():
            if self.now(pool) != state or not self.seen[pool]:
                self.seen[pool].append(state)
