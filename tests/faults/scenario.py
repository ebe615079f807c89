"""Plays one plan from its beginning to its end, or to the first broken invariant."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.faults.cluster import Cluster
from tests.faults.invariants import Broken, Failure, Observer
from tests.faults.journal import Journal
from tests.faults.plan import Plan
from tests.faults.sandbox import SandboxGround
from tests.support.processes import World


@dataclass(frozen=True)
class Outcome:
    """How it ended; `marks` is how many pools were marked."""

    plan: Plan
    failure: Failure | None
    journal: Journal
    marks: int
    cpu_seconds: float

    @property
    def told(self) -> str:
        """How much happened."""
        plan = self.plan
        return f"{len(plan.pods)} pools, {plan.controllers} controllers, {len(plan.misfortunes)} misfortunes, {self.marks} marks"


def play(plan: Plan) -> Outcome:
    """Play it."""
    began = time.process_time()
    world = World()
    cluster = Cluster(plan, SandboxGround(plan, world))
    observer = Observer(cluster)
    world.watch = observer.stop_if_broken
    with cluster.journal.listening():
        try:
            cluster.begin()
            observer.begin()
            world.run(world.now + plan.storm + plan.calm)
            observer.look_at_the_end(observer.differences())
            observer.stop_if_broken()
        except Broken:
            pass
        finally:
            cluster.journal.closed = True
            world.watch = lambda: None
            world.close()
    return Outcome(plan, observer.failure, cluster.journal, observer.marks.accepted_marks, time.process_time() - began)
