"""What the machinepoollet stand-in puts into the API, as pure functions."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.sandbox.apiserver import patches
from loopwatch.sandbox.machinepoollet import documents

NOON = datetime.datetime(2026, 5, 1, 12, 0, 0, tzinfo=datetime.UTC)
EARLIER = "2026-05-01T11:00:00Z"


@pytest.mark.parametrize(
    ("moment", "micro", "seconds"),
    [
        (NOON, "2026-05-01T12:00:00.000000Z", "2026-05-01T12:00:00Z"),
        (NOON.replace(microsecond=1), "2026-05-01T12:00:00.000001Z", "2026-05-01T12:00:00Z"),
        (NOON.replace(microsecond=999_999), "2026-05-01T12:00:00.999999Z", "2026-05-01T12:00:00Z"),
        (NOON.astimezone(datetime.timezone(datetime.timedelta(hours=5))), "2026-05-01T12:00:00.000000Z", "2026-05-01T12:00:00Z"),
    ],
)
def test_times_are_micro_time_and_whole_seconds(moment: datetime.datetime, micro: str, seconds: str) -> None:
    assert documents.micro_time(moment) == micro
    assert documents.whole_seconds(moment) == seconds


def test_nothing_there_always_differs() -> None:
    assert documents.conditions_differ(None, documents.ready_condition(1, ""))


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({}, False),
        ({"lastUpdateTime": "x", "lastTransitionTime": "y"}, False),
        ({"status": "Unknown"}, True),
        ({"reason": "x"}, True),
        ({"message": "x"}, True),
        ({"observedGeneration": 2}, True),
    ],
)
def test_status_reason_message_and_generation_differ_times_do_not(change: dict[str, Any], *, differs: bool) -> None:
    desired = documents.ready_condition(1, "")
    assert documents.conditions_differ(desired | change, desired) is differs


def test_an_absent_generation_is_a_zero() -> None:
    desired = documents.ready_condition(0, "")
    existing = {key: value for key, value in desired.items() if key != "observedGeneration"}
    assert not documents.conditions_differ(existing, desired)


def test_a_status_that_stays_keeps_its_transition_time_and_one_that_changes_moves_it() -> None:
    existing = documents.ready_condition(1, "") | {"lastUpdateTime": EARLIER, "lastTransitionTime": EARLIER}
    (kept,) = documents.with_condition([existing], documents.ready_condition(2, ""), NOON)
    assert (kept["lastTransitionTime"], kept["lastUpdateTime"], kept["observedGeneration"]) == (EARLIER, "2026-05-01T12:00:00Z", 2)
    (moved,) = documents.with_condition([existing], documents.ready_condition(1, "gone"), NOON)
    assert (moved["lastTransitionTime"], moved["lastUpdateTime"]) == ("2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z")


def test_a_new_condition_is_added_at_the_end_and_others_keep_the_fields_that_upstream_knows() -> None:
    foreign = {"type": "Cooled", "status": "True", "severity": "high"}
    conditions = documents.with_condition([foreign], documents.ready_condition(1, ""), NOON)
    assert conditions[0] == {
        "type": "Cooled",
        "status": "True",
        "reason": "",
        "message": "",
        "lastUpdateTime": None,
        "lastTransitionTime": None,
    }
    assert conditions[1]["type"] == "Ready"


def test_of_two_conditions_of_one_type_the_first_is_replaced() -> None:
    first = documents.ready_condition(1, "") | {"lastTransitionTime": EARLIER}
    second = documents.ready_condition(1, "old")
    conditions = documents.with_condition([first, second], documents.ready_condition(1, "new"), NOON)
    assert [condition["message"] for condition in conditions] == ["new", "old"]


def test_allocatable_never_goes_below_zero_and_counts_a_class_once() -> None:
    capacities = documents.capacity(["small", "large", "absent"], {"small": 4, "large": 0, "other": 1})
    assert capacities == {"class/machine.small": "4", "class/machine.large": "0"}
    assert documents.allocatable(capacities, ["small", "small", "large"]) == {"class/machine.small": "3", "class/machine.large": "0"}


def test_what_equals_makes_an_empty_patch() -> None:
    assert documents.difference({"a": {"b": [1]}}, {"a": {"b": [1]}}) == {}


scalars = st.integers(0, 3) | st.booleans() | st.sampled_from(["", "x"])
leaves = scalars | st.lists(scalars, max_size=2)
below = st.dictionaries(st.sampled_from("ab"), leaves, max_size=2)
objects = st.dictionaries(st.sampled_from("abc"), leaves | below | st.dictionaries(st.sampled_from("ab"), below, max_size=2), max_size=3)


@given(objects, objects)
def test_a_difference_applied_as_merge_patch_gives_the_new_object(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert patches.merge(old, documents.difference(old, new)) == new
