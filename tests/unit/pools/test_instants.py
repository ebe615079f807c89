"""Whether two timestamps name the same instant (case 21), and never which is earlier."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.pools.derive.instants import same_instant


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-02-28T20:11:41Z", "2026-02-28T20:11:41.000000Z"),
        ("2026-02-28T20:11:41.636526400Z", "2026-02-28T20:11:41.6365264Z"),
        ("2026-02-28T20:11:41.103Z", "2026-02-28T20:11:41.103000+00:00"),
        ("2026-02-28T20:11:41Z", "2026-02-28T21:11:41+01:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999999+00:00"[:26] + "Z"),
        (None, None),
    ],
)
def test_spellings_of_one_instant_are_equal(one: str | None, other: str | None) -> None:
    assert same_instant(one, other)
    assert same_instant(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-02-28T20:11:41Z", "2026-02-28T20:11:41.000001Z"),
        ("2026-02-28T20:11:41Z", "2026-02-28T20:11:42Z"),
        ("2026-02-28T20:11:41Z", None),
        ("nonsense", "2026-02-28T20:11:41Z"),
        ("nonsense", "other nonsense"),
        ("2026-02-30T20:11:41Z", "2026-02-30T20:11:42Z"),
    ],
)
def test_what_differs_differs_also_where_it_is_no_time_at_all(one: str | None, other: str | None) -> None:
    assert not same_instant(one, other)


def test_a_time_that_overflows_in_utc_is_no_crash() -> None:
    assert not same_instant("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59")


@given(st.datetimes(), st.datetimes(), st.integers(-14, 14))
def test_instants_compare_as_datetimes_do_in_any_zone(one: dt.datetime, other: dt.datetime, hours: int) -> None:
    zone = dt.timezone(dt.timedelta(hours=hours))
    first, second = one.replace(tzinfo=dt.UTC), other.replace(tzinfo=zone)
    assert same_instant(first.isoformat().replace("+00:00", "Z"), second.isoformat()) == (first == second)
