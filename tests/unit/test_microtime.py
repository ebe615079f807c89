"""Case 21: MicroTime has exactly six digits; what is read may have none to nine, and equal instants are equal."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.microtime import parse_nanoseconds, render_micro, render_seconds

UTC = datetime.UTC
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=OFFSETS).filter(lambda moment: 1 < moment.year < 9999)  # no offset leads out of the calendar


def test_zero_microseconds_are_written_as_six_digits() -> None:
    assert render_micro(datetime.datetime(2026, 5, 1, 12, 0, 0, 0, tzinfo=UTC)) == "2026-05-01T12:00:00.000000Z"


def test_a_moment_of_another_zone_is_written_in_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    assert render_micro(datetime.datetime(2026, 5, 1, 1, 0, 0, 5, tzinfo=zone)) == "2026-04-30T19:30:00.000005Z"


def test_whole_seconds_are_cut_off_not_rounded() -> None:
    assert render_seconds(datetime.datetime(2026, 5, 1, 12, 0, 0, 999_999, tzinfo=UTC)) == "2026-05-01T12:00:00Z"


@pytest.mark.parametrize("render", [render_micro, render_seconds])
def test_a_moment_without_a_zone_is_refused(render: object) -> None:
    with pytest.raises(ValueError, match="has no offset"):
        render(datetime.datetime(2026, 5, 1))  # type: ignore[operator]  # noqa: DTZ001 - the point


@given(MOMENTS)
def test_what_is_written_is_read_back_to_the_microsecond(moment: datetime.datetime) -> None:
    written = render_micro(moment)
    assert len(written.split(".")[1]) == 7
    epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    assert parse_nanoseconds(written) == (moment - epoch) // datetime.timedelta(microseconds=1) * 1000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-02-28T20:11:41Z", "2026-02-28T20:11:41.000000000Z"),
        ("2026-02-28T20:11:41.636526400Z", "2026-02-28T20:11:41.6365264Z"),
        ("2026-02-28T20:11:41.103Z", "2026-02-28T22:11:41.103+02:00"),
        ("2026-02-28T20:11:41+00:00", "2026-02-28T20:11:41-00:00"),
        ("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.000-23:59"),
    ],
)
def test_two_spellings_of_one_instant_are_equal(one: str, other: str) -> None:
    assert parse_nanoseconds(one) == parse_nanoseconds(other)


def test_nanoseconds_are_not_lost() -> None:
    assert parse_nanoseconds("1970-01-01T00:00:00.000000001Z") == 1
    assert parse_nanoseconds("1969-12-31T23:59:59.999999999Z") == -1
    assert parse_nanoseconds("1970-01-01T00:00:00.5Z") == 500_000_000


@given(MOMENTS, st.integers(0, 9), OFFSETS)
def test_digits_and_offset_change_no_instant(moment: datetime.datetime, digits: int, zone: datetime.timezone) -> None:
    whole = moment.replace(microsecond=0)
    local = whole.astimezone(zone)
    text = local.isoformat().replace("+00:00", "Z")
    fraction = f".{'0' * digits}" if digits else ""
    assert parse_nanoseconds(text[:19] + fraction + text[19:]) == parse_nanoseconds(render_seconds(whole))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-02-28",
        "2026-02-28T20:11:41",
        "2026-02-28 20:11:41Z",
        "2026-02-30T20:11:41Z",
        "2026-02-28T24:00:00Z",
        "2026-02-28T20:60:00Z",
        "2026-02-28T20:11:60Z",
        "2026-02-28T20:11:41.Z",
        "2026-02-28T20:11:41.1234567890Z",
        "2026-02-28T20:11:41+24:00",
        "0000-01-01T00:00:00Z",
        "२०२६-02-28T20:11:41Z",
        "2026-02-28T20:11:41Z\n",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of its texts
        parse_nanoseconds(text)
