"""What seeds found in the product, cut down by hand: each of these stories once ended in a broken invariant."""

from __future__ import annotations

from loopwatch.sandbox import faults
from loopwatch.sandbox.faults import Fault
from tests.faults import troubles
from tests.faults.plan import Plan
from tests.faults.scenario import play
from tests.faults.stories import story, told
from tests.faults.troubles import Misfortune

CONTROLLER = "controller-1.*"


def survives(plan: Plan) -> None:
    """The story ends well."""
    outcome = play(plan)
    assert outcome.failure is None, told(outcome)


def test_a_half_open_lease_watch_is_found_also_while_no_lease_is_known() -> None:
    """Seed 165: no Lease in sight, and so none was missed; one came, beat for 40 s unseen, and was deleted again before the read."""
    survives(
        story(
            Misfortune(72.0, 0.0, troubles.LeaseGone("pool-a")),
            Misfortune(73.0, 1.0, troubles.ApiFault(Fault(effect=faults.Silence(), verb="watch", resource="leases", client=CONTROLLER))),
            Misfortune(121.0, 0.0, troubles.LeaseGone("pool-a")),
        )
    )


def test_a_pool_that_can_be_read_again_past_its_grace_is_marked_at_once() -> None:
    """Seed 1401: it passed the grace while its Lease could not be decoded, and then waited for another pool's deadline, or a grace."""
    survives(story(Misfortune(60.0, 140.0, troubles.PodDown("pool-a")), Misfortune(90.0, 65.0, troubles.BrokenObject("pool-a", "lease"))))
