"""Mass silence on a real kube-apiserver: many pools fall silent at once, or each in its own phase, or half of them come back meanwhile.

Used by the end-to-end test (fails above a bound) and by bench/mass_silence.py (prints the figures).
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.e2e.fleet import Fleet
from tests.e2e.programs import Loopwatch
from tests.real_servers.apiserver import ApiServer

GRACE_SECONDS: Final = 25.0
INTERVAL_SECONDS: Final = 5.0
"""Half the default grace and interval: the deadlines of 2,000 pools in their own phases fall within 5 s, twice as dense as by default."""
RACE_SECONDS: Final = 0.5
"""A mark sent within that time of the renewal's answer is a race that no watch can win; it must be over within an interval."""
LONGEST_SECONDS: Final = 60.0

StartController = Callable[..., Loopwatch]


@dataclass(frozen=True, slots=True)
class Figures:
    """How late pools became Unknown after their own deadline, in seconds; what went wrong, counted."""

    story: str
    pools: int
    median_seconds: float
    last_seconds: float
    throttled: int
    lead_changes: float
    wrongly_marked: int
    races: int

    def __str__(self) -> str:
        """One line of a table."""
        return (
            f"{self.story:<10}{self.pools:>7}{self.median_seconds:>10.2f}{self.last_seconds:>8.2f}"
            f"{self.throttled:>8}{self.lead_changes:>8.0f}{self.wrongly_marked:>8}{self.races:>7}"
        )


HEADER: Final = f"{'story':<10}{'pools':>7}{'median s':>10}{'last s':>8}{'429':>8}{'leads':>8}{'wrong':>8}{'races':>7}"


async def play(story: str, server: ApiServer, start_controller: StartController, pools: int, seed: int = 0) -> Figures:
    """One of: `aligned` (all heartbeats at once, then none), `phases` (spread over an interval), `return` (aligned; half come back)."""
    fleet = Fleet(server, [f"fleet-{number:05}" for number in range(pools)])
    async with fleet.watched():
        await fleet.create()
        position = server.audit_log.position()
        controller = start_controller(
            f"--machine-pool-lifecycle-grace-period={GRACE_SECONDS:g}s", "--leader-elect-resource-namespace=default"
        )
        controller.wait_until_ready()
        await fleet.renew(fleet.names, over_seconds=INTERVAL_SECONDS if story == "phases" else 0.0)
        dead = list(fleet.names)
        if story == "return":
            back = set(random.Random(seed).sample(dead, pools // 2))
            dead = [name for name in dead if name not in back]
            await fleet.when_unknown_count(pools // 10, GRACE_SECONDS + LONGEST_SECONDS)
            fleet.reporting = back - set(fleet.unknown)
            dead += sorted(back - fleet.reporting)
            await fleet.renew(sorted(fleet.reporting))
        await fleet.when_unknown(dead, GRACE_SECONDS + LONGEST_SECONDS)
        await fleet.when_true_again(INTERVAL_SECONDS)
        lead_changes = controller.counted("loopwatch_leader_election_transitions_total")
        controller.stop(within_seconds=10.0)
    late = fleet.lateness(dead, GRACE_SECONDS) if story != "return" else [0.0]
    wrong, races = wrongly_marked(server, position)
    throttled = sum(1 for request in server.audit_log.requests(since=position) if request.code == 429)
    return Figures(story, pools, late[len(late) // 2], late[-1], throttled, lead_changes, wrong, races)


def wrongly_marked(server: ApiServer, position: int) -> tuple[int, int]:
    """Accepted marks of a pool whose last renewal had been answered at least RACE_SECONDS before the mark came in; and those within it.

    By the audit log: the renewal must lie less than a grace before the mark, since an older one is what silence means.
    """
    renewals: dict[str, list[dt.datetime]] = {}
    marks: list[tuple[str, dt.datetime]] = []
    for request in server.audit_log.requests(since=position):
        if request.verb != "patch" or request.code != 200 or request.finished is None:
            continue
        if request.resource == "leases" and request.namespace != "default":
            renewals.setdefault(request.name, []).append(request.finished)
        elif request.resource == "machinepools/status" and "(controller)" in request.user_agent:
            marks.append((request.name, request.received))
    wrong = races = 0
    for name, marked in marks:
        since = [(marked - renewed).total_seconds() for renewed in renewals.get(name, ()) if renewed < marked]
        if since and min(since) < GRACE_SECONDS * 0.9:
            wrong, races = (wrong + 1, races) if min(since) >= RACE_SECONDS else (wrong, races + 1)
    return wrong, races
