"""Values that move with a clock, and histograms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.metrics.values import IN_SIGHT, CountOverdue, Histogram, HistogramValue, Moment, Overdue, Since, Until

SECONDS = st.floats(min_value=-1e9, max_value=1e9)


def at(monotonic: float, in_sight: float = 0.0) -> Moment:
    return Moment(monotonic, in_sight)


def test_since_counts_on_its_own_clock() -> None:
    now = at(monotonic=110.0, in_sight=104.25)
    assert Since(100.0).number(now) == 10.0
    assert Since(100.0, IN_SIGHT).number(now) == 4.25


def test_since_is_never_below_zero() -> None:
    assert Since(100.0).number(at(99.0)) == 0.0


def test_since_is_rounded_to_a_millisecond() -> None:
    assert Since(0.0).number(at(1.23456)) == 1.235
    assert Since(0.1).number(at(0.3)) == 0.2, "not 0.19999999999999998"


@given(SECONDS, SECONDS)
def test_since_is_right_to_half_a_millisecond(start: float, passed: float) -> None:
    number = Since(start).number(at(start + passed))
    assert number >= 0.0
    assert abs(number - max(passed, 0.0)) <= 0.0005 + 1e-6


def test_overdue_begins_after_its_time_and_until_ends_at_it() -> None:
    overdue, until = Overdue(100.0, 10.0), Until(110.0)
    assert [overdue.number(at(now)) for now in (100.0, 110.0, 110.001)] == [0.0, 0.0, 1.0]
    assert [until.number(at(now)) for now in (100.0, 109.999, 110.0)] == [1.0, 1.0, 0.0]


def test_overdue_and_until_count_on_their_own_clock() -> None:
    now = at(monotonic=1000.0, in_sight=5.0)
    assert Overdue(0.0, 10.0, IN_SIGHT).number(now) == 0.0
    assert Until(10.0, IN_SIGHT).number(now) == 1.0
    assert CountOverdue(7, 0.0, 10.0, IN_SIGHT).number(now) == 7.0


def test_a_count_has_one_more_once_the_time_is_over_and_no_second_one() -> None:
    late = CountOverdue(7, 100.0, 10.0)
    assert [late.number(at(now)) for now in (99.0, 110.0, 110.001, 1e6)] == [7.0, 7.0, 8.0, 8.0]


def test_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram((0.1, 1.0))
    for number in (0.025, 0.1, 0.5, 1.0, 7.0):
        histogram.observe(number)
    assert histogram.value() == HistogramValue((0.1, 1.0), (2, 2, 1), 8.625)


def test_a_value_taken_does_not_move_with_later_observations() -> None:
    histogram = Histogram((1.0,))
    before = histogram.value()
    histogram.observe(0.5)
    assert before.counts == (0, 0)


def test_nan_is_not_observed() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Histogram((1.0,)).observe(math.nan)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (1.0, math.inf), (math.nan,)])
def test_bounds_that_would_write_a_bucket_twice_are_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="rise"):
        Histogram(bounds)
