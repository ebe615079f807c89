"""What must never happen, whatever else fails; each is a claim with a number, and says what it saw when it is broken.

1  no pool is marked whose heartbeat had been delivered to the marking process within the grace, in sight
2  no living pool is marked: the API server had taken no progress within the grace (in sight of the marking process) before the read
that confirmed it, that read was no older than a fifth of the grace, and a reporter that can work has its pool back from Unknown
3  a dead pool is Unknown in time, once a controller leads, has sight, and its writes are answered; and some controller leads
4  accepted marks come only from the process that holds the election's Lease
5  conditions of other types are kept by every write of ours
6  a counter never falls while its series lives
7  once quiet, what each process holds and shows is what the API server holds
8  no process of ours ends by itself, and none writes what is not its own to write
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopwatch.kube.resources import MACHINE_POOLS
from loopwatch.kube.transport import Request
from loopwatch.settings.model import Mode
from tests.faults.cluster import Cluster
from tests.faults.deaths import TICK_GRACES, Deaths
from tests.faults.hosts import ControllerHost, Host
from tests.faults.marks import Marks
from tests.faults.pages import Pages
from tests.faults.pods import SidecarHost
from tests.faults.quiet import check_reporters, settled_seconds
from tests.faults.truth import Truth, Write, conditions_of
from tests.faults.witness import Witness

SCRAPE_TICKS = 4
SETTLED_GRACES = 0.7
"""A controller's watches are open again so long after the last trouble: their back-off is at most 30 s."""


@dataclass(frozen=True)
class Failure:
    """A broken invariant, and the moment (seconds since the beginning)."""

    invariant: int
    at: float
    text: str

    def __str__(self) -> str:
        """One line."""
        return f"invariant {self.invariant} broken at {self.at:.3f}: {self.text}"


class Broken(Exception):
    """Ends the scenario; the failure is its argument."""


class Observer:
    """Looks on at a cluster; the first failure ends it, at the next step."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.failure: Failure | None = None
        self.truth = Truth()
        self.witnesses: dict[str, Witness] = {}
        self.written_at: dict[str, float] = {}
        self.marks = Marks(self)
        self.marks.may_mark = self._held_the_election
        self.deaths = Deaths(self)
        self.pages = Pages(self)
        self._ticks = 0
        cluster.ground.made = self._made
        cluster.ground.ended = self._ended
        cluster.ground.on_write = self._wrote
        cluster.ground.on_send = self._sent
        cluster.ground.on_answer = self._answered

    @property
    def now(self) -> float:
        """The ground's time."""
        return self.cluster.ground.now

    def fail(self, invariant: int, text: str) -> None:
        """Keep the first; what happens when the scenario is over is none."""
        if self.failure is None and not self.cluster.journal.closed:
            self.failure = Failure(invariant, self.cluster.journal.now, text)
            self.cluster.journal.note("observer", str(self.failure))

    def stop_if_broken(self) -> None:
        """Raise Broken after a failure: for a place where no process runs."""
        if self.failure is not None:
            raise Broken(self.failure)

    def begin(self) -> None:
        """Look on from now."""
        self.cluster.ground.at(self.now + TICK_GRACES * self.cluster.plan.times.grace, self._tick)

    def look_at_the_end(self, differences: list[str]) -> None:
        """The calm is over: everything has to be as it should; `differences` are those of the pages at this moment."""
        check_reporters(self)
        self.pages.scrape()
        for text in differences:
            self.fail(7, text)

    def differences(self) -> list[str]:
        """Where processes and API server differ now."""
        return self.pages.differences(quiet_seconds=settled_seconds(self))

    def witness_of(self, host: ControllerHost) -> Witness | None:
        """Of the process that runs there now."""
        return self.witnesses.get(host.client)

    def _tick(self) -> None:
        self._ticks += 1
        self.deaths.tick()
        if self._ticks % SCRAPE_TICKS == 0:
            self.pages.scrape()
            self._check_loops()
        self.begin()

    def _check_loops(self) -> None:
        for host in self.cluster.hosts:
            process = host.controller if isinstance(host, ControllerHost) else host.sidecar if isinstance(host, SidecarHost) else None
            if process is not None and self.cluster.undisturbed_seconds(host) > self.cluster.plan.times.grace:
                for phrase in process.health.loops.stuck():
                    self.fail(8, f"{host.client}: a loop stands still: {phrase}")

    def _held_the_election(self, client: str, at: float) -> bool:
        witness = self.witnesses.get(client)
        elector = witness.controller.elector if witness else None
        return elector is not None and elector._lease.identity in self.cluster.ground.holders(at)

    def _made(self, host: Host) -> None:
        if isinstance(host, ControllerHost):
            self._controller_made(host)
        elif isinstance(host, SidecarHost):
            _sidecar_made(host)

    def _controller_made(self, host: ControllerHost) -> None:
        controller = host.controller
        if controller is None:
            raise AssertionError("told of a controller that is not there")
        witness = Witness(host.client, controller, self.cluster.plan.times.grace, self.now)
        self.witnesses[host.client] = witness
        controller.observer.subscribe(lambda name: witness.look(name, self.now))

    def _ended(self, host: Host, error: BaseException | None) -> None:
        self.fail(8, f"{host.client} ended by itself: {error!r}")

    def _sent(self, client: str, request: Request) -> None:
        witness = self.witnesses.get(client)
        if witness is not None and request.method == "PATCH" and request.path.startswith(MACHINE_POOLS.collection_path()):
            self.marks.sent(witness, request)

    def _answered(self, client: str, request: Request, status: int, handled_at: float) -> None:
        witness = self.witnesses.get(client)
        if witness is not None:
            witness.answered(request, status, handled_at, self.now)

    def _wrote(self, write: Write) -> None:
        before = self.truth.pool(write.name).last_progress
        pool = self.truth.take(write)
        if pool.last_progress != before:
            self._owe_news(write)
        self.cluster.journal.note("accepted", described(write))
        self.written_at[write.name] = self.now
        host = self._writer(write.by)
        if host is None:
            return
        self._check_role(host, write)
        self._check_foreign_conditions(write)
        if isinstance(host, ControllerHost):
            self.marks.accepted(write, pool)

    def _owe_news(self, write: Write) -> None:
        settled = SETTLED_GRACES * self.cluster.plan.times.grace
        for host in self.cluster.controllers:
            witness = self.witness_of(host)
            if witness is not None and self.cluster.undisturbed_seconds(host) > settled:
                witness.owes(write.resource, write.name, write.at)

    def _writer(self, client: str) -> Host | None:
        """The host of one of ours; None for everybody else."""
        name = client.rsplit(".", 1)[0]
        ours = (host for host in self.cluster.hosts if isinstance(host, ControllerHost | SidecarHost))
        return next((host for host in ours if host.name == name), None)

    def _check_role(self, host: Host, write: Write) -> None:
        if isinstance(host, ControllerHost):
            if write.resource != MACHINE_POOLS.plural:
                self.fail(8, f"{write.by} wrote the {write.resource} of {write.name}")
        elif isinstance(host, SidecarHost) and (host.mode is Mode.OBSERVE or write.name != host.pod.pool):
            self.fail(8, f"{write.by}, mode {host.mode.value} in the pod of {host.pod.pool}, wrote the {write.resource} of {write.name}")

    def _check_foreign_conditions(self, write: Write) -> None:
        if write.resource != MACHINE_POOLS.plural:
            return
        before, after = (_foreign(body) for body in (write.before, write.after))
        if before != after:
            self.fail(5, f"{write.by} wrote {write.name} and made of its other conditions {before} these: {after}")


def _sidecar_made(host: SidecarHost) -> None:
    if host.sidecar is None:
        raise AssertionError("told of a sidecar that is not there")
    observer = host.sidecar.observer
    uids: dict[str, str | None] = {}

    def changed(name: str) -> None:
        view = observer.views.get(name)
        uid = None if view is None else view.pool.metadata.uid if view.pool else ""
        if uids.get(name) != uid:
            uids[name] = uid
            host.series_began_anew.add(name)

    host.series_began_anew = set()
    observer.subscribe(changed)


def _foreign(pool: Any) -> list[dict[str, Any]]:
    return [entry for entry in conditions_of(pool) if entry.get("type") != "Ready"]


def described(write: Write) -> str:
    """A write in one line."""
    who = write.by or "admin"
    if write.after is None:
        return f"{who} deletes the {write.resource} {write.name}"
    if write.resource != MACHINE_POOLS.plural:
        spec = write.after["spec"]
        return f"{who} writes the lease of {write.name}: renewTime {spec.get('renewTime')}, holder {spec.get('holderIdentity')}"
    shown = [f"{entry['type']}={entry.get('status')}/{entry.get('reason')}" for entry in conditions_of(write.after)]
    return f"{who} writes the pool {write.name}: {' '.join(shown) or 'no conditions'}"
