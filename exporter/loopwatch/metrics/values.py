"""What a sample may be: a number, or a number that moves with a clock.

A clocked value is kept as the moment it counts from and becomes a number when somebody asks at a `Moment`: the scrape and the decision
that acts ask by the same call. Numbers of seconds are rounded to a millisecond in that one place, so both see the same digits.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec

MONOTONIC = 0
"""The clock that always runs."""
IN_SIGHT = 1
"""The clock that stands still while this process can't see the API: silence is measured on it."""


class Moment(NamedTuple):
    """One moment on both clocks; the fields' order is the clocks' numbers."""

    monotonic: float
    in_sight: float


class Since(msgspec.Struct, frozen=True):
    """Seconds since `at`; never below 0."""

    at: float
    clock: int = MONOTONIC

    def number(self, now: Moment) -> float:
        """The seconds, to a millisecond."""
        passed = round(now[self.clock] - self.at, 3)
        return passed if passed > 0 else 0.0


class Overdue(msgspec.Struct, frozen=True):
    """1 once `at` is more than `after` seconds past, 0 until then."""

    at: float
    after: float
    clock: int = MONOTONIC

    def number(self, now: Moment) -> float:
        """0 or 1."""
        return 1.0 if now[self.clock] - self.at > self.after else 0.0


class Until(msgspec.Struct, frozen=True):
    """1 up to the moment `at`, 0 from then on."""

    at: float
    clock: int = MONOTONIC

    def number(self, now: Moment) -> float:
        """0 or 1."""
        return 1.0 if now[self.clock] < self.at else 0.0


class CountOverdue(msgspec.Struct, frozen=True):
    """A count, and one more from the moment on at which `at` is more than `after` seconds past.

    For a counter of things that did not happen in time: it moves when the time is over, whoever looks, and whether the thing comes late
    or never. What has been counted so goes into `count` when the thing comes, so that the number never falls.
    """

    count: int
    at: float
    after: float
    clock: int = MONOTONIC

    def number(self, now: Moment) -> float:
        """The whole number."""
        return self.count + 1.0 if now[self.clock] - self.at > self.after else float(self.count)


class HistogramValue(msgspec.Struct, frozen=True):
    """Counts per bucket (not cumulative, one more than there are bounds: the last is +Inf) and the sum of what was observed."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


Clocked: TypeAlias = Since | Overdue | Until | CountOverdue
Value: TypeAlias = int | float | Clocked | HistogramValue
Samples: TypeAlias = str | Value | Mapping[tuple[str, ...], Value] | None
"""What a family makes of one object's facts: nothing; the state of a state set; one value; or values by the family's own labels."""


class Histogram:
    """Counts observations into buckets; `value()` is its frozen state."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        if not all(map(math.isfinite, bounds)) or any(low >= high for low, high in pairwise(bounds)):
            raise ValueError(f"bounds are finite numbers that rise (+Inf is added): {bounds}")
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, number: float) -> None:
        """Count one observation; a bucket's bound belongs to the bucket (`le`). ValueError for NaN, which no bucket holds."""
        if math.isnan(number):
            raise ValueError("NaN can't be observed")
        self._counts[bisect_left(self._bounds, number)] += 1
        self._sum += number

    def value(self) -> HistogramValue:
        """The state as facts carry it."""
        return HistogramValue(self._bounds, tuple(self._counts), self._sum)
