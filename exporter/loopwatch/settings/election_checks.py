"""What the election's settings must hold against each other, in upstream's words first, then with what was given and how to mend it.

The texts are those of k8s.io/client-go v0.36.3, tools/leaderelection (NewLeaderElector), which an operator of any Kubernetes component
may search for; k8s.io/component-base checks the same but for the retry period. Pure: each function gives a sentence, empty where all is
well.
"""

from __future__ import annotations

from typing import Final

from loopwatch.durations import render

JITTER_FACTOR: Final = 1.2
"""Upstream's; our own jitter only shortens waits, but settings that work here shall work there."""
LEAST_ACT_SECONDS: Final = 0.5
"""A write that was begun while leading has lease duration − renew deadline; with less than this it would fail on a healthy API server."""
LEASE_DURATION: Final = "--leader-elect-lease-duration"
RENEW_DEADLINE: Final = "--leader-elect-renew-deadline"
RETRY_PERIOD: Final = "--leader-elect-retry-period"


def lease_duration_problem(seconds: float) -> str:
    """Of the lease duration by itself."""
    if seconds <= 0:
        return f"leaseDuration must be greater than zero: {LEASE_DURATION} is {render(seconds)}; the default is 15s"
    if seconds != int(seconds):
        return (
            f"leaseDuration must be whole seconds, since a Lease carries it as a whole number: {LEASE_DURATION} is {render(seconds)}; "
            "write for example 15s"
        )
    return ""


def renew_deadline_problem(seconds: float) -> str:
    """Of the renew deadline by itself."""
    if seconds > 0:
        return ""
    return f"renewDeadline must be greater than zero: {RENEW_DEADLINE} is {render(seconds)}; the default is 10s"


def retry_period_problem(seconds: float) -> str:
    """Of the retry period by itself."""
    if seconds > 0:
        return ""
    return f"retryPeriod must be greater than zero: {RETRY_PERIOD} is {render(seconds)}; the default is 2s"


def lease_outlives_deadline_problem(lease_seconds: float, deadline_seconds: float) -> str:
    """A leader must stop before another may take over, by long enough for a write that is under way."""
    given = f"{LEASE_DURATION} is {render(lease_seconds)}, {RENEW_DEADLINE} is {render(deadline_seconds)}"
    mend = "raise the first or lower the second"
    if lease_seconds <= deadline_seconds:
        return f"leaseDuration must be greater than renewDeadline: {given}; {mend}"
    if lease_seconds - deadline_seconds < LEAST_ACT_SECONDS:
        by = f"by at least {render(LEAST_ACT_SECONDS)}, which a leader's last write may take"
        return f"leaseDuration must be greater than renewDeadline {by}: {given}; {mend}"
    return ""


def deadline_outlives_retry_problem(deadline_seconds: float, retry_seconds: float) -> str:
    """A leader must be able to try more than once before its deadline."""
    if deadline_seconds > retry_seconds * JITTER_FACTOR:
        return ""
    return (
        f"renewDeadline must be greater than retryPeriod*JitterFactor: {RENEW_DEADLINE} is {render(deadline_seconds)}, "
        f"{RETRY_PERIOD} is {render(retry_seconds)}, JitterFactor is {JITTER_FACTOR}; raise the first or lower the second"
    )
