"""Watches all Machines of the cluster for the placement, and says when the copy of them has gone stale.

A watch of its own, beside those of pools and Leases: where the API does not serve Machines, or this identity may not list them, the
reflector says so and goes on asking, and nothing else knows of it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from loopwatch.clock import Clock
from loopwatch.kube.read import Reader
from loopwatch.kube.reflector import Reflector, ReflectorTimes
from loopwatch.kube.resources import MACHINES
from loopwatch.pools.machine import Machine, decode_machine
from loopwatch.pools.placement import Placement

STALE_READS: Final = 2
"""A copy of which nothing was heard for that many of a watch's read timeouts is stale: 3 minutes. An idle watch is heard of each minute."""
LOOKS: Final = 18
"""How often a read timeout is looked at: every 5 s of 90."""


class MachineWatch:
    """The reflector of Machines, and the eye on it."""

    def __init__(self, reader: Reader, placement: Placement, clock: Clock, times: ReflectorTimes) -> None:
        self.reflector: Reflector[Machine] = Reflector(reader, MACHINES, placement, decode_machine, clock, times=times)
        self._placement, self._clock, self._times = placement, clock, times

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.reflector.run(), name="follow machines")
            tasks.create_task(self._look(), name="freshness of machines")

    async def _look(self) -> None:
        stale_seconds = STALE_READS * self._times.read_seconds
        while True:
            await self._clock.sleep(self._times.read_seconds / LOOKS)
            heard_at = self.reflector.stats.last_contact_at
            if heard_at is not None:
                self._placement.show_machines(fresh=self._clock.monotonic() - heard_at <= stale_seconds)
