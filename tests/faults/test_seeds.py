"""Twenty seeds of the fault suite in every run of the tests; `make soak` plays as many as one likes."""

from __future__ import annotations

import pytest

from tests.faults.__main__ import story_of
from tests.faults.plan import make
from tests.faults.scenario import play

SEEDS = range(1, 21)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_invariant_is_broken_by_seed(seed: int) -> None:
    outcome = play(make(str(seed)))
    assert outcome.failure is None, f"{story_of(outcome)}\nagain: make soak SEEDS=1 SEED_BASE={seed}"


def test_a_seed_is_the_same_story_each_time() -> None:
    first, second = play(make("7")), play(make("7"))
    assert first.plan == second.plan
    assert first.journal.lines() == second.journal.lines()
