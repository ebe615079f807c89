"""Cuts a failing plan down: halves, quarters and single misfortunes are left out as long as the same invariant still fails."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.plan import Plan
from tests.faults.scenario import Outcome, play


def shrunk(plan: Plan, run: Callable[[Plan], Outcome] = play) -> Outcome:
    """The outcome of the smallest plan found; of `plan` itself where it does not fail."""
    smallest = run(plan)
    if smallest.failure is None:
        return smallest
    invariant, size = smallest.failure.invariant, max(len(plan.misfortunes) // 2, 1)
    while True:
        for start in range(0, len(smallest.plan.misfortunes), size):
            fewer = smallest.plan.without(smallest.plan.misfortunes[start : start + size])
            outcome = run(fewer)
            if outcome.failure is not None and outcome.failure.invariant == invariant:
                smallest = outcome
                break
        else:
            if size == 1:
                return smallest
            size = max(size // 2, 1)
