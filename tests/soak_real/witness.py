"""Who looks on, without a proxy: sees every accepted write, asks every process whether it leads, and says what was broken."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from loopwatch.controller import Controller
from tests.acceptance.api import Kubectl
from tests.soak_real.cast import GRACE_SECONDS, Cast, Player

RACE_SECONDS: Final = 0.7
"""A heartbeat that the API server took within that time before Unknown was seen may have crossed with the write."""
LOOK_SECONDS: Final = 0.02
PAGE_SECONDS: Final = 1.0


class Witness:
    """`broken` holds a sentence for each invariant that did not hold."""

    def __init__(self, kubectl: Kubectl, cast: Cast) -> None:
        self.broken: list[str] = []
        self.marks = 0
        self._kubectl, self._cast = kubectl, cast
        self._renewed: dict[str, tuple[str, float]] = {}
        self._status: dict[str, str] = {}
        self._counters: dict[int, dict[str, float]] = {}

    async def look(self) -> None:
        """Look until cancelled."""
        next_page = 0.0
        while True:
            now = self._cast.clock.monotonic()
            self._see_renewals(now)
            self._see_marks(now)
            self._see_leaders()
            if now >= next_page:
                next_page = now + PAGE_SECONDS
                for player in self._cast.controllers:
                    self._see_counters(player)
            await self._cast.clock.sleep(LOOK_SECONDS)

    def judge_the_end(self, living: set[str]) -> None:
        """All is healed and settled: the living are True, the dead Unknown, foreign conditions are kept, pages equal the objects."""
        for name, pool in self._kubectl.pools.items():
            status = self._kubectl.ready(name)
            if status != ("True" if name in living else "Unknown"):
                self.broken.append(f"{name}, {'alive' if name in living else 'dead'}, ends as Ready={status or 'absent'}")
            if not any(entry["type"] == "Foreign" for entry in pool.get("status", {}).get("conditions", ())):
                self.broken.append(f"{name} has lost its foreign condition")
        self.broken += self.differences()

    def differences(self) -> list[str]:
        """Where a controller's page shows another Ready than the pool has."""
        return [
            f"{player.name} does not show that {pool} is {self._kubectl.ready(pool)}"
            for player in self._cast.controllers
            for pool in self._kubectl.pools
            if isinstance(player.inside, Controller) and not _shows(player.inside, pool, self._kubectl.ready(pool))
        ]

    async def until_pages_agree(self, within_seconds: float) -> None:
        """Wait until they do; whoever judges afterwards says where they don't."""
        give_up_at = self._cast.clock.monotonic() + within_seconds
        while self.differences() and self._cast.clock.monotonic() < give_up_at:
            await self._cast.clock.sleep(LOOK_SECONDS)

    def _see_renewals(self, now: float) -> None:
        for name, lease in self._kubectl.leases.items():
            stamp = lease["spec"].get("renewTime", "")
            if self._renewed.get(name, ("", 0.0))[0] != stamp:
                self._renewed[name] = (stamp, now)

    def _see_marks(self, now: float) -> None:
        for name in self._kubectl.pools:
            status, before = self._kubectl.ready(name), self._status.get(name, "")
            self._status[name] = status
            if status == "Unknown" and before not in {"", "Unknown"}:
                self.marks += 1
                since = now - self._renewed.get(name, ("", float("-inf")))[1]
                if RACE_SECONDS < since < GRACE_SECONDS - RACE_SECONDS:
                    self.broken.append(f"{name} was marked {since:.2f} s after a heartbeat that the API server had taken")

    def _see_leaders(self) -> None:
        leading = [each.name for each in self._cast.controllers if isinstance(each.inside, Controller) and each.inside.leading()]
        if len(leading) > 1:
            self.broken.append(f"two lead: {leading}")

    def _see_counters(self, player: Player) -> None:
        inside = player.inside
        if inside is None:
            return
        now: dict[str, float] = {}
        for line in inside.store.render(inside.observer.moment()).decode().splitlines():
            name = line.partition("{")[0].partition(" ")[0]
            if not line.startswith("#") and name.endswith("_total"):
                series, _, number = line.rpartition(" ")
                now[series] = float(number)
        before = self._counters.get(id(inside), {})
        fallen = [series for series, number in now.items() if number < before.get(series, 0.0) and "machinepool=" not in series]
        self.broken += [f"{player.name}: {series} fell" for series in fallen]
        self._counters[id(inside)] = now


def _shows(controller: Controller, pool: str, status: str) -> bool:
    labels = {"machinepool": pool, "status": status.lower() or "absent"}
    return controller.store.value("loopwatch_machinepool_ready", labels, controller.observer.moment()) == 1


async def until_all_is_seen(kubectl: Kubectl, wanted: dict[str, Any], within_seconds: float) -> None:
    """Wait until each pool's Ready is what it should be; whoever judges afterwards says what is not."""
    try:
        await kubectl.when(lambda: all(kubectl.ready(name) == status for name, status in wanted.items()), within_seconds)
    except TimeoutError:
        await asyncio.sleep(0)
