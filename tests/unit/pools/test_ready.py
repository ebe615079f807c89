"""What a sidecar says of its runtime, and when: pure claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.iri.probe import CODES
from loopwatch.pools.derive import ready
from loopwatch.pools.derive.ready import NOT_AT_ALL, Outcome, Report
from loopwatch.pools.model import Condition

SUCCESS = Outcome("OK")
DOWN = Outcome("Unavailable", "rpc error: code = Unavailable desc = connect failed")
NEVER = float("-inf")


def condition(status: str = "True", reason: str = "HeartbeatReceived", message: str = "", generation: int = 1) -> Condition:
    return Condition("Ready", status, reason, message or "machine runtime status probe succeeded", generation)


def publish_at(
    published: Condition | None,
    *,
    outcome: Outcome = SUCCESS,
    generation: int = 1,
    news: bool = False,
    wrote_at: float = NEVER,
    at: float = 100.0,
) -> float:
    """When to publish at 100 s, with an interval of 10 s."""
    ours = ready.compute_ready_condition(outcome, generation)
    return ready.publish_at(ours, published, news=news, wrote_at=wrote_at, interval_seconds=10.0, at=at)


def report_of(*outcomes: Outcome, grace: float = 60.0) -> Report:
    """After these probes, in a process that began at 1000 s."""
    report = ready.begin(1000.0, grace)
    for outcome in outcomes:
        report = ready.probed(report, outcome)
    return report


def test_a_successful_probe_is_true_in_upstream_s_words() -> None:
    computed = ready.compute_ready_condition(SUCCESS, 4)
    assert computed == Condition("Ready", "True", "HeartbeatReceived", "machine runtime status probe succeeded", 4)


def test_a_failed_probe_is_false_with_the_error_as_its_message() -> None:
    computed = ready.compute_ready_condition(DOWN, 4)
    assert computed == Condition("Ready", "False", "RuntimeUnreachable", DOWN.message, 4)


@given(st.text(max_size=3000))
def test_a_message_is_at_most_a_kibibyte_and_holds_no_control_characters(text: str) -> None:
    message = ready.compute_ready_condition(Outcome("Internal", text), 1).message
    assert len(message.encode()) <= 1024
    assert not any(ord(character) < 32 for character in message)


def test_another_message_alone_is_no_news() -> None:
    assert report_of(DOWN, Outcome("Unavailable", "attempt 2")).news == 1


def test_another_code_is_news_though_status_and_reason_stay() -> None:
    assert report_of(DOWN, Outcome("DeadlineExceeded", "context deadline exceeded")).news == 2


def test_the_first_outcome_is_news() -> None:
    assert report_of().news == 0
    assert report_of(SUCCESS).news == 1
    assert report_of(SUCCESS, SUCCESS, DOWN, SUCCESS).news == 3


def test_the_newest_message_is_the_one_that_a_write_carries() -> None:
    newest = Outcome("Unavailable", "attempt 2")
    computed = ready.ready_condition(report_of(DOWN, newest), 1, 2000.0)
    assert computed is not None
    assert computed.message == "attempt 2"


def test_a_runtime_that_never_answered_is_not_called_unreachable_before_the_start_grace_is_over() -> None:
    report = report_of(DOWN)
    assert ready.ready_condition(report, 1, 1059.9) is None
    assert ready.speaks_at(report) == 1060.0
    computed = ready.ready_condition(report, 1, 1060.0)
    assert computed is not None
    assert computed.status == "False"


def test_a_runtime_that_answered_once_is_spoken_of_at_once() -> None:
    assert ready.ready_condition(report_of(DOWN, SUCCESS), 1, 1010.0) is not None
    assert ready.ready_condition(report_of(DOWN, SUCCESS, DOWN), 1, 1020.0) is not None


def test_there_is_nothing_to_say_before_the_first_probe() -> None:
    assert ready.ready_condition(report_of(grace=0.0), 1, 5000.0) is None
    assert ready.speaks_at(report_of(grace=0.0)) == NOT_AT_ALL


@pytest.mark.parametrize("published", [None, condition("Unknown", "MachinePoolStatusUnknown"), condition("", "Odd")])
def test_absent_and_unknown_are_answered_at_once_however_recent_the_last_write(published: Condition | None) -> None:
    assert publish_at(published, wrote_at=99.9) == 100.0


def test_what_is_published_already_is_not_written_again() -> None:
    assert publish_at(condition()) == NOT_AT_ALL
    assert publish_at(condition(), news=True) == NOT_AT_ALL


def test_our_own_news_is_written_at_once() -> None:
    assert publish_at(condition(), outcome=DOWN, news=True, wrote_at=99.0) == 100.0


def test_news_that_differ_in_the_message_alone_are_written() -> None:
    published = ready.compute_ready_condition(Outcome("DeadlineExceeded", "context deadline exceeded"), 1)
    assert publish_at(published, outcome=DOWN, news=True) == 100.0


def test_another_message_without_news_is_left() -> None:
    assert publish_at(condition("False", "RuntimeUnreachable", "said by somebody else"), outcome=DOWN) == NOT_AT_ALL


@pytest.mark.parametrize("published", [condition("False", "RuntimeUnreachable"), condition("True", "SomethingElse")])
def test_another_writer_s_status_or_reason_is_answered_once_an_interval(published: Condition) -> None:
    assert publish_at(published) == 100.0
    assert publish_at(published, wrote_at=95.0) == 105.0


def test_a_generation_that_the_condition_has_not_seen_is_answered_once_an_interval() -> None:
    assert publish_at(condition(generation=1), generation=2) == 100.0
    assert publish_at(condition(generation=1), generation=2, wrote_at=95.0) == 105.0


def test_a_generation_ahead_of_the_pool_is_left() -> None:
    assert publish_at(condition(generation=3), generation=2) == NOT_AT_ALL


def test_ready_conditions_differ_as_upstream_judges_it() -> None:
    ours = condition()
    assert ready.differs(ours, None)
    assert not ready.differs(ours, condition())
    assert all(
        ready.differs(ours, other)
        for other in (condition("False"), condition(reason="Other"), condition(message="other"), condition(generation=2))
    )


def test_the_entry_names_its_fields_as_the_api_does() -> None:
    entry = ready.as_entry(condition(generation=7))
    assert entry == {
        "type": "Ready",
        "status": "True",
        "reason": "HeartbeatReceived",
        "message": "machine runtime status probe succeeded",
        "observedGeneration": 7,
    }


def test_the_code_for_success_is_the_one_that_probes_bring() -> None:
    assert CODES[0] == ready.OK


statuses = st.sampled_from(["True", "False", "Unknown", ""])
conditions = st.none() | st.builds(
    condition, statuses, st.sampled_from(["HeartbeatReceived", "RuntimeUnreachable", "X"]), st.text(max_size=5)
)


@given(st.sampled_from([SUCCESS, DOWN]), conditions, st.booleans(), st.floats(0, 200), st.integers(0, 3))
def test_a_write_is_due_only_where_it_would_change_something(
    outcome: Outcome,
    published: Condition | None,
    news: bool,
    wrote_at: float,
    generation: int,
) -> None:
    due = publish_at(published, outcome=outcome, news=news, wrote_at=wrote_at, generation=generation, at=200.0)
    ours = ready.compute_ready_condition(outcome, generation)
    if not ready.differs(ours, published):
        assert due == NOT_AT_ALL
    if due != NOT_AT_ALL:
        assert 200.0 <= due <= 210.0
