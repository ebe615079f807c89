"""The settings of election against each other: upstream's texts, what was given, and how to mend it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.election.derive import Times
from loopwatch.settings import election_checks as checks


def test_the_defaults_are_upstreams_and_pass_every_check() -> None:
    times = Times()
    assert (times.lease_duration_seconds, times.renew_deadline_seconds, times.retry_period_seconds) == (15, 10, 2)
    assert not checks.lease_duration_problem(15)
    assert not checks.renew_deadline_problem(10)
    assert not checks.retry_period_problem(2)
    assert not checks.lease_outlives_deadline_problem(15, 10)
    assert not checks.deadline_outlives_retry_problem(10, 2)


def test_short_times_are_allowed() -> None:
    assert not checks.lease_duration_problem(1)
    assert not checks.renew_deadline_problem(0.5)
    assert not checks.retry_period_problem(0.1)


@pytest.mark.parametrize("seconds", [0, -1, -0.5])
def test_each_duration_must_be_above_zero(seconds: float) -> None:
    assert checks.lease_duration_problem(seconds).startswith("leaseDuration must be greater than zero: --leader-elect-lease-duration is ")
    assert checks.renew_deadline_problem(seconds).startswith("renewDeadline must be greater than zero: --leader-elect-renew-deadline is ")
    assert checks.retry_period_problem(seconds).startswith("retryPeriod must be greater than zero: --leader-elect-retry-period is ")


def test_a_lease_carries_whole_seconds() -> None:
    assert "whole seconds" in checks.lease_duration_problem(1.5)
    assert "--leader-elect-lease-duration is 1.5s" in checks.lease_duration_problem(1.5)


@pytest.mark.parametrize(("lease", "deadline"), [(10, 10), (5, 10), (10, 10.001)])
def test_a_leader_stops_before_another_may_take_over(lease: float, deadline: float) -> None:
    problem = checks.lease_outlives_deadline_problem(lease, deadline)
    assert problem.startswith("leaseDuration must be greater than renewDeadline: ")
    assert "--leader-elect-lease-duration is " in problem
    assert problem.endswith("raise the first or lower the second")


def test_the_last_write_of_a_leader_needs_time_too() -> None:
    assert not checks.lease_outlives_deadline_problem(10, 9.5)
    assert checks.lease_outlives_deadline_problem(10, 9.6) == (
        "leaseDuration must be greater than renewDeadline by at least 500ms, which a leader's last write may take: "
        "--leader-elect-lease-duration is 10s, --leader-elect-renew-deadline is 9.6s; raise the first or lower the second"
    )


@pytest.mark.parametrize(("deadline", "retry"), [(2.4, 2), (2, 2), (1, 2)])
def test_a_leader_can_try_more_than_once(deadline: float, retry: float) -> None:
    problem = checks.deadline_outlives_retry_problem(deadline, retry)
    assert problem.startswith("renewDeadline must be greater than retryPeriod*JitterFactor: --leader-elect-renew-deadline is ")
    assert "JitterFactor is 1.2" in problem
    assert not checks.deadline_outlives_retry_problem(deadline + 2, retry)


@given(st.integers(1, 3600), st.floats(0.01, 3600), st.floats(0.01, 3600))
def test_settings_that_pass_leave_a_second_try_within_the_deadline_and_time_for_a_write(lease: int, deadline: float, retry: float) -> None:
    problems = (
        checks.lease_duration_problem(lease),
        checks.lease_outlives_deadline_problem(lease, deadline),
        checks.deadline_outlives_retry_problem(deadline, retry),
    )
    times = Times(lease, deadline, retry)
    if not any(problems):
        assert times.request_timeout_seconds > 0
        assert times.retry_period_seconds + 2 * times.request_timeout_seconds <= times.renew_deadline_seconds + 1e-9
        assert times.act_timeout_seconds >= checks.LEAST_ACT_SECONDS
        assert times.renew_deadline_seconds + times.act_timeout_seconds <= times.lease_duration_seconds + 1e-9
