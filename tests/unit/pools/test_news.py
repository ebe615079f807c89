"""What becomes an Event: own marks, and recoveries from an Unknown that was seen."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.pools.derive import news
from loopwatch.pools.derive.news import Seen
from loopwatch.pools.derive.view import PoolView, first_sight
from loopwatch.pools.model import Condition, MachinePool, MachinePoolStatus, Metadata

STATUSES = ("True", "False", "Unknown", "")


def view(status: str, *, uid: str = "u", marks: int = 0, reason: str = "R") -> PoolView:
    """A pool with this status of Ready; none where it is empty."""
    conditions = (Condition(type="Ready", status=status, reason=reason),) if status else None
    pool = MachinePool(Metadata(name="a", uid=uid), status=MachinePoolStatus(conditions=conditions))
    return msgspec.structs.replace(first_sight("a", at=0.0, sight_at=0.0), pool=pool, marks=marks)


def told(*views: PoolView) -> list[str]:
    """The reasons of everything that is told of these sights, in order."""
    seen: Seen | None = None
    reasons = []
    for each in views:
        seen, events = news.see(seen, each)
        reasons += [event.reason for event in events]
    return reasons


def test_a_mark_of_our_own_is_told_once_and_one_from_before_not_at_all() -> None:
    assert told(view("Unknown", marks=3), view("Unknown", marks=3)) == []
    assert told(view("True"), view("Unknown"), view("Unknown", marks=1), view("Unknown", marks=1)) == ["MachinePoolStatusUnknown"]


def test_a_recovery_is_told_after_an_unknown_of_anybodys_also_across_a_time_without_ready() -> None:
    assert told(view("Unknown"), view("True")) == ["MachinePoolStatusRecovered"]
    assert told(view("Unknown"), view(""), view("False")) == ["MachinePoolStatusRecovered"]
    assert told(view("True"), view("False"), view(""), view("True")) == []


def test_another_pool_of_the_name_does_not_recover_from_the_first_ones_unknown() -> None:
    assert told(view("Unknown", marks=1), view("True", uid="v")) == []
    gone = first_sight("a", at=0.0, sight_at=0.0)
    assert told(view("Unknown"), gone, view("True")) == []
    assert told(view("Unknown", marks=2), view("Unknown", uid="v", marks=1)) == ["MachinePoolStatusUnknown"]


def test_a_pool_that_could_not_be_decoded_for_a_while_is_the_same_pool() -> None:
    broken = msgspec.structs.replace(first_sight("a", at=0.0, sight_at=0.0), pool_readable=False)
    assert told(view("Unknown"), broken, view("True")) == ["MachinePoolStatusRecovered"]


def test_anothers_reason_is_cleaned_and_cut_before_it_is_told() -> None:
    before, _ = news.see(None, view("Unknown"))
    _, events = news.see(before, view("False", reason="a\n\u202e" + "x" * 5000))
    assert events[0].message.isprintable()
    assert len(events[0].message) < 200


@given(st.lists(st.sampled_from(STATUSES), max_size=30))
def test_each_recovery_has_an_unknown_of_its_own_before_it(statuses: list[str]) -> None:
    recoveries = told(*(view(status) for status in statuses))
    left = "".join({"True": "r", "False": "r", "Unknown": "u", "": ""}[status] for status in statuses)
    runs = sum(1 for index in range(1, len(left)) if left[index - 1] == "u" and left[index] == "r")
    assert len(recoveries) == runs
