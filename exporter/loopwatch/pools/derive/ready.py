"""What a sidecar has to say about its machine runtime, and when it has to say it.

A probe's outcome becomes the pool's Ready condition in IronCore's own words. Steady states are not written again: what counts as news is a
changed status, reason or gRPC code (a message that differs each time is none), a generation that the published condition has not seen,
or a published condition that says something else than we do. Pure: outcomes, conditions and moments (monotonic seconds) in, a moment out.
It refuses to race a second writer: but for an absent or Unknown condition, and for news of our own, one answer an interval is all it gives.
"""

from __future__ import annotations

from typing import Final

import msgspec

from loopwatch.pools.model import (
    HEARTBEAT_RECEIVED,
    PROBE_SUCCEEDED_MESSAGE,
    READY,
    RUNTIME_UNREACHABLE,
    Condition,
    ready_status,
)
from loopwatch.text import clean_message

OK: Final = "OK"
"""The gRPC code of a successful call, as iri.probe.CODES spells it."""
NOT_AT_ALL: Final = float("inf")
MESSAGE_LIMIT_BYTES: Final = 1024


class Outcome(msgspec.Struct, frozen=True):
    """How a probe ended: a gRPC code, and what went wrong (empty for OK)."""

    code: str
    message: str = ""


class Report(msgspec.Struct, frozen=True):
    """What this process knows of its runtime.

    `news` counts the changes of outcome, the first included. Until `runtime_answered` nothing is said before `speaks_from`, so that a
    runtime that is only starting is not called unreachable.
    """

    speaks_from: float
    outcome: Outcome | None = None
    runtime_answered: bool = False
    news: int = 0


def begin(at: float, start_grace_seconds: float) -> Report:
    """A process that has just started and probed nothing."""
    return Report(speaks_from=at + start_grace_seconds)


def probed(report: Report, outcome: Outcome) -> Report:
    """The report after one more probe."""
    return msgspec.structs.replace(
        report,
        outcome=outcome,
        runtime_answered=report.runtime_answered or outcome.code == OK,
        news=report.news + is_news(report.outcome, outcome),
    )


def is_news(before: Outcome | None, after: Outcome) -> bool:
    """Whether an outcome is worth a write: another gRPC code, or the first. Status and reason follow from the code."""
    return before is None or before.code != after.code


def compute_ready_condition(outcome: Outcome, generation: int) -> Condition:
    """Upstream's ComputeReadyCondition, with the message cleaned and cut to 1 KiB."""
    if outcome.code == OK:
        return Condition(READY, "True", HEARTBEAT_RECEIVED, PROBE_SUCCEEDED_MESSAGE, generation)
    return Condition(READY, "False", RUNTIME_UNREACHABLE, clean_message(outcome.message, MESSAGE_LIMIT_BYTES), generation)


def ready_condition(report: Report, generation: int, at: float) -> Condition | None:
    """Our Ready for a pool of that generation; None while there is nothing to say."""
    if report.outcome is None or at < speaks_at(report):
        return None
    return compute_ready_condition(report.outcome, generation)


def speaks_at(report: Report) -> float:
    """The moment from which there is something to say; NOT_AT_ALL before the first probe."""
    if report.outcome is None:
        return NOT_AT_ALL
    return float("-inf") if report.runtime_answered else report.speaks_from


def says_otherwise(ours: Condition, published: Condition | None) -> bool:
    """Whether a reader of the pool is told another status or reason than ours."""
    return published is None or (published.status, published.reason) != (ours.status, ours.reason)


def differs(ours: Condition, published: Condition | None) -> bool:
    """Whether a write of ours would change anything but times (upstream's ReadyConditionsDiffer)."""
    return (
        says_otherwise(ours, published)
        or published is None
        or (published.message, published.observed_generation) != (ours.message, ours.observed_generation)
    )


def publish_at(ours: Condition, published: Condition | None, *, news: bool, wrote_at: float, interval_seconds: float, at: float) -> float:
    """The moment at which to write `ours`: `at` for at once, a later one, or NOT_AT_ALL.

    `news`: our own outcome changed since we last wrote. `wrote_at` is when that was (minus infinity where it never was). An
    observedGeneration that is ahead of the pool's is left: whoever wrote it knows a generation that we have not seen.
    """
    if ready_status(published) in {"absent", "unknown"} or published is None:
        return at
    if news and differs(ours, published):
        return at
    if says_otherwise(ours, published) or published.observed_generation < ours.observed_generation:
        return max(at, wrote_at + interval_seconds)
    return NOT_AT_ALL


def as_entry(condition: Condition) -> dict[str, str | int]:
    """The condition as a JSON entry of the list, without its times."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    }
