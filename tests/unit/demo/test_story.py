"""What the demo calls right and wrong: the whole story, and nothing beside it."""

from __future__ import annotations

import pytest

from loopwatch.demo.scraping import states, transitions
from loopwatch.demo.story import GONE, POOLS, STORY, expected, expected_transitions, judge

SEEN = {pool: [GONE, "absent", *expected(pool)] for pool in POOLS}
COUNTED = {pool: expected_transitions(pool) for pool in POOLS}


def test_the_story_as_told_has_nothing_wrong() -> None:
    assert judge(SEEN, COUNTED) == []


def test_every_state_of_the_story_is_one_that_metrics_can_show() -> None:
    assert {step.then for step in STORY} == {"true", "false", "unknown", GONE}


def test_a_pool_made_again_counts_from_its_new_life() -> None:
    assert expected_transitions("walldorf") == {"true": 1, "false": 0, "unknown": 0}


@pytest.mark.parametrize("pool", POOLS)
def test_a_state_that_was_not_seen_is_told(pool: str) -> None:
    [sentence] = judge(SEEN | {pool: ["true"]}, COUNTED)
    assert sentence.startswith(f"{pool}: expected true → ")


def test_a_state_that_nobody_told_of_is_told() -> None:
    assert judge(SEEN | {"berlin": [*SEEN["berlin"], "unknown", "true"]}, COUNTED)


def test_a_blip_between_two_scrapes_is_known_from_the_counters() -> None:
    [sentence] = judge(SEEN, COUNTED | {"berlin": COUNTED["berlin"] | {"unknown": 2, "true": 4}})
    assert sentence.endswith("/metrics counted 4 to true, 1 to false, 2 to unknown")


def test_a_page_is_read_as_prometheus_would() -> None:
    page = (
        '# TYPE loopwatch_machinepool_ready gauge\nloopwatch_machinepool_ready{machinepool="berlin",status="true"} 0\n'
        'loopwatch_machinepool_ready{machinepool="berlin",status="false"} 1\n'
        'loopwatch_machinepool_ready_transitions_total{machinepool="berlin",to="false"} 3\n'
    )
    assert states(page) == {"berlin": "false", "dresden": GONE, "walldorf": GONE}
    assert transitions(page)["berlin"] == {"false": 3}
