"""Each invariant fails on a build that breaks it on purpose, in a story that the true build survives: no invariant that can't fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from loopwatch import controller as controllers
from loopwatch.kube.reflector import Reflector
from loopwatch.kube.resources import MACHINE_POOLS, ObjectKey
from loopwatch.pools import lifecycle, observe
from loopwatch.pools.confirm import Confirmation, Finding, Verdict
from loopwatch.pools.derive import conditions, duty, ready, view
from loopwatch.sandbox import faults
from loopwatch.sandbox.faults import Fault
from loopwatch.settings.model import Mode
from tests.faults import troubles
from tests.faults.plan import Plan, PodCast
from tests.faults.scenario import play
from tests.faults.stories import REPORTED, each, story, told
from tests.faults.troubles import Misfortune

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A broken build, the story in which it shows, and the invariant that it breaks."""

    claim: str
    invariant: int
    story: Plan
    patch: Patch


def heartbeats_are_not_heard(patch: pytest.MonkeyPatch) -> None:
    true = view.see_lease

    def deaf(known: view.PoolView, lease: Any, **when: float) -> view.PoolView:
        return msgspec.structs.replace(true(known, lease, **when), silent_since=known.silent_since)

    patch.setattr(view, "see_lease", deaf)


def a_silent_watch_is_believed(patch: pytest.MonkeyPatch) -> None:
    async def believe(self: Confirmation, names: Sequence[str]) -> Mapping[str, Finding]:
        reader = self._pool_reader
        return {name: Finding(Verdict.STILL_SILENT, await reader.get(MACHINE_POOLS, ObjectKey("", name))) for name in names}

    patch.setattr(Confirmation, "read", believe)
    patch.setattr(controllers, "QUIET_FRACTION", 1e9)


def an_unknown_pool_is_left_so(patch: pytest.MonkeyPatch) -> None:
    true = ready.publish_at

    def content(ours: Any, published: Any, **more: Any) -> float:
        unknown = published is not None and published.status == "Unknown"
        return ready.NOT_AT_ALL if unknown else true(ours, published, **more)

    patch.setattr(ready, "publish_at", content)


def a_sidecar_stands_by_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(duty, "STILL_INTERVALS_BESIDE_SIDECAR", 10_000)


def every_gap_leaves_a_pool_its_lease(patch: pytest.MonkeyPatch) -> None:
    true = view.after_gap
    patch.setattr(view, "after_gap", lambda known, **more: msgspec.structs.replace(true(known, **more), gap_spent=False))


def a_failed_mark_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lifecycle.Lifecycle, "_retry", lambda _self, _name, _error: None)


def nobody_ever_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(controllers.Controller, "leading", lambda _self: False)


def everybody_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(controllers.Controller, "leading", lambda _self: True)


def every_writer_writes_its_own_condition_alone(patch: pytest.MonkeyPatch) -> None:
    true = conditions.replace
    patch.setattr(conditions, "replace", lambda _before, entry, now: true([], entry, now))


def a_relist_counts_from_nothing(patch: pytest.MonkeyPatch) -> None:
    true = observe.MachinePoolSink.replaced

    def replaced(self: observe.MachinePoolSink, objects: Any, undecodable: Any, at: float) -> None:
        for name, known in list(self._observer._views.items()):
            self._observer._views[name] = msgspec.structs.replace(known, transitions=(0, 0, 0, 0))
        true(self, objects, undecodable, at)

    patch.setattr(observe.MachinePoolSink, "replaced", replaced)


def a_list_takes_nothing_away(patch: pytest.MonkeyPatch) -> None:
    true = observe.MachinePoolSink.replaced

    def replaced(self: observe.MachinePoolSink, objects: Any, undecodable: Any, at: float) -> None:
        held = {ObjectKey("", name): known.pool for name, known in self._observer.views.items() if known.pool is not None}
        true(self, {**held, **objects}, undecodable, at)

    patch.setattr(observe.MachinePoolSink, "replaced", replaced)


def an_observer_reports(patch: pytest.MonkeyPatch) -> None:
    true = duty._state
    patch.setattr(duty, "_state", lambda known, at: true(msgspec.structs.replace(known, mode=Mode.REPORT), at))


def a_garbled_watch_ends_the_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reflector, "_failed", lambda _self, error, _kind, _retry_after: (_ for _ in ()).throw(error))


DIES = Misfortune(60.0, 140.0, troubles.PodDown("pool-a"))
CUT = troubles.ApiFault(Fault(effect=faults.Cut(), verb="watch", resource="machinepools", client="controller-1.*"))

MUTANTS = (
    Mutant("a pool is marked though its heartbeats were heard", 1, story(), heartbeats_are_not_heard),
    Mutant(
        "a half-open watch is believed",
        2,
        story(Misfortune(60.0, 100.0, troubles.ApiFault(Fault(effect=faults.Silence(), verb="watch", resource="leases")))),
        a_silent_watch_is_believed,
    ),
    Mutant("a pool that lives again stays Unknown", 2, story(DIES), an_unknown_pool_is_left_so),
    Mutant(
        "a dead sidecar's neighbour never takes over",
        2,
        story(
            Misfortune(60.0, 140.0, troubles.Down("sidecar-pool-a-0", clean=False)),
            pods=(PodCast("pool-a", "v0.4.0", (Mode.REPORT, Mode.AUTO), 0.0),),
            storm=100.0,
            calm=90.0,
        ),
        a_sidecar_stands_by_for_ever,
    ),
    Mutant(
        "gaps that recur hide a dead pool",
        3,
        story(
            Misfortune(60.0, 400.0, troubles.PodDown("pool-a")),
            *each(50.0, 70.0, 400.0, 15.0, troubles.Partition("controller-1", "leases", "refuse")),
            storm=450.0,
        ),
        every_gap_leaves_a_pool_its_lease,
    ),
    Mutant(
        "a mark that failed once is never tried again",
        3,
        story(DIES, Misfortune(100.0, 20.0, troubles.ApiFault(Fault(effect=faults.Respond(500), verb="patch", resource="machinepools")))),
        a_failed_mark_is_forgotten,
    ),
    Mutant("nobody leads", 3, story(controllers=2), nobody_ever_leads),
    Mutant("two controllers act", 4, story(DIES, Misfortune(98.0, 5.0, troubles.Stall("controller-1")), controllers=2), everybody_leads),
    Mutant(
        "a mark drops the conditions of others",
        5,
        story(DIES, Misfortune(50.0, 140.0, troubles.ForeignCondition("pool-a", "Maintenance"))),
        every_writer_writes_its_own_condition_alone,
    ),
    Mutant(
        "a relist resets a counter",
        6,
        story(Misfortune(100.0, 1.0, troubles.Compaction()), Misfortune(100.0, 1.0, CUT), DIES),
        a_relist_counts_from_nothing,
    ),
    Mutant(
        "a deletion in a watch gap is missed",
        7,
        story(
            Misfortune(60.0, 20.0, troubles.Partition("controller-1", "machinepools", "refuse")),
            Misfortune(65.0, 300.0, troubles.PoolGone("pool-b")),
            Misfortune(70.0, 0.0, troubles.Compaction()),
            pods=(REPORTED, PodCast("pool-b", "none", (), 0.0)),
            storm=100.0,
        ),
        a_list_takes_nothing_away,
    ),
    Mutant("a sidecar that is to observe writes", 8, story(pods=(PodCast("pool-a", "v0.4.0", (Mode.OBSERVE,), 0.0),)), an_observer_reports),
    Mutant(
        "a line of garbage ends a process",
        8,
        story(
            Misfortune(
                50.0, 50.0, troubles.ApiFault(Fault(effect=faults.Garbage(), verb="watch", resource="leases", client="controller-1.*"))
            )
        ),
        a_garbled_watch_ends_the_process,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.claim)
def test_an_invariant_fails_where(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = play(mutant.story)
    assert whole.failure is None, told(whole)
    mutant.patch(monkeypatch)
    broken = play(mutant.story)
    assert broken.failure is not None, told(broken)
    assert broken.failure.invariant == mutant.invariant, told(broken)


def test_every_invariant_has_a_mutant() -> None:
    assert {mutant.invariant for mutant in MUTANTS} == set(range(1, 9))
