"""A server with one family and one condition, and an HTTP client for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp

from loopwatch.clock import SystemClock
from loopwatch.metrics.family import Authority, Family, Group, Kind, Label
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Moment, Since
from loopwatch.web.health import Health, Loops, Readiness
from loopwatch.web.protection import UNPROTECTED, Protection
from loopwatch.web.server import Server

POOLS = Group[float](
    "pools",
    (Label("pool", "one per pool"),),
    (Family("pool_age_seconds", Kind.GAUGE, "Age.", Since, Authority.OWN),),
)


@dataclass(frozen=True)
class Answer:
    """An answer, read whole."""

    status: int
    headers: Mapping[str, str]
    text: str

    def header(self, name: str) -> str:
        """A header's value, empty where there is none."""
        return self.headers.get(name, "")


class World:
    """A server and what it reads."""

    def __init__(self, page: Callable[[], str] | None = None, protection: Protection = UNPROTECTED) -> None:
        clock = SystemClock()
        self.store = Store(POOLS)
        self.health = Health(Loops(clock), Readiness("leases listed"))
        self.now = Moment(100.0, 100.0)
        self.server = Server(self.store, self.health, now=lambda: self.now, page=page, protection=protection)
        self.port = 0

    async def ask(self, path: str, method: str = "GET", **more: str) -> Answer:
        """One request."""
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"http://127.0.0.1:{self.port}{path}", headers=more) as response,
        ):
            return Answer(response.status, response.headers, await response.text())
