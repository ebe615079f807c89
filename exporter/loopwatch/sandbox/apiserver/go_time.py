"""Go's time.Parse for the two layouts that the API uses, with its error texts.

A Lease's MicroTime wants exactly six digits after the second; whoever writes another number of them gets these texts back, and they
are what an operator will search for. It follows Go also where Go is lenient: an hour of one digit and a comma before the fraction pass.
"""

from __future__ import annotations

import contextlib
import datetime
import re
from typing import Final

MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
ZERO: Final = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
"""Go's zero time, which the API writes as null."""

_FRACTION: Final = ".000000"
_TWO_DIGITS: Final = re.compile(r"\d\d", re.ASCII)
_STEPS: Final = (
    ("2006", re.compile(r"\d{4}", re.ASCII)),
    ("-", re.compile("-")),
    ("01", _TWO_DIGITS),
    ("-", re.compile("-")),
    ("02", _TWO_DIGITS),
    ("T", re.compile("T")),
    ("15", re.compile(r"\d\d?", re.ASCII)),
    (":", re.compile(":")),
    ("04", _TWO_DIGITS),
    (":", re.compile(":")),
    ("05", _TWO_DIGITS),
)
_SIX_DIGITS: Final = re.compile(r"[.,](\d{6})", re.ASCII)
_ANY_DIGITS: Final = re.compile(r"[.,](\d+)", re.ASCII)
_ZONE: Final = re.compile(r"Z|([+-])(\d\d):(\d\d)", re.ASCII)
_ORDINARY_MICRO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_MAX_OFFSET_HOURS: Final = 24


class GoTimeError(ValueError):
    """A text that Go refuses, with Go's words."""


def parse_micro(text: str) -> datetime.datetime:
    """The instant of a MicroTime, in UTC; GoTimeError for all else."""
    if _ORDINARY_MICRO.fullmatch(text):  # what every heartbeat sends: no need to go element by element
        with contextlib.suppress(ValueError):
            return datetime.datetime.fromisoformat(text)
    return _parse(text, MICRO_LAYOUT)


def parse_seconds(text: str) -> datetime.datetime:
    """The instant of a metav1.Time, in UTC: a fraction of any length is taken and cut off; GoTimeError for all else."""
    return _parse(text, SECONDS_LAYOUT).replace(microsecond=0)


def render_micro(moment: datetime.datetime) -> str:
    """As the API writes a MicroTime."""
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def render_seconds(moment: datetime.datetime) -> str:
    """As the API writes a Time."""
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _parse(text: str, layout: str) -> datetime.datetime:
    numbers, rest = _leading_numbers(text, layout)
    fraction, rest = _fraction(text, rest, layout)
    zone = _ZONE.match(rest)
    if zone is None:
        raise _cannot_parse(text, layout, rest, "Z07:00")
    if rest[zone.end() :]:
        raise GoTimeError(f"parsing time {_quoted(text)}: extra text: {_quoted(rest[zone.end() :])}")
    try:
        return _moment(text, numbers, fraction) - _offset(text, zone)
    except OverflowError:  # Go's years run further than Python's
        raise GoTimeError(f"parsing time {_quoted(text)}: year out of range") from None


def _leading_numbers(text: str, layout: str) -> tuple[list[int], str]:
    numbers: list[int] = []
    rest = text
    for element, pattern in _STEPS:
        match = pattern.match(rest)
        if match is None:
            raise _cannot_parse(text, layout, rest, element)
        if element.isdigit():
            number = int(match[0])
            _check_range(text, element, number)
            numbers.append(number)
        rest = rest[match.end() :]
    return numbers, rest


def _check_range(text: str, element: str, number: int) -> None:
    limits = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}
    if element in limits:
        name, least, most = limits[element]
        if not least <= number <= most:
            raise GoTimeError(f"parsing time {_quoted(text)}: {name} out of range")


def _fraction(text: str, rest: str, layout: str) -> tuple[int, str]:
    if layout == SECONDS_LAYOUT:
        match = _ANY_DIGITS.match(rest)
        return (0, rest[match.end() :]) if match else (0, rest)
    match = _SIX_DIGITS.match(rest)
    if match is None:
        raise _cannot_parse(text, layout, rest, _FRACTION)
    return int(match[1]), rest[match.end() :]


def _moment(text: str, numbers: list[int], fraction: int) -> datetime.datetime:
    year, month, day, hour, minute, second = numbers
    try:
        return datetime.datetime(max(year, 1), month, day, hour, minute, second, fraction, tzinfo=datetime.UTC)
    except ValueError:
        raise GoTimeError(f"parsing time {_quoted(text)}: day out of range") from None


def _offset(text: str, zone: re.Match[str]) -> datetime.timedelta:
    if zone[1] is None:
        return datetime.timedelta()
    hours, minutes = int(zone[2]), int(zone[3])
    if hours > _MAX_OFFSET_HOURS:
        raise GoTimeError(f"parsing time {_quoted(text)}: time zone offset hour out of range")
    if minutes >= 60:
        raise GoTimeError(f"parsing time {_quoted(text)}: time zone offset minute out of range")
    offset = datetime.timedelta(hours=hours, minutes=minutes)
    return -offset if zone[1] == "-" else offset


def _cannot_parse(text: str, layout: str, rest: str, element: str) -> GoTimeError:
    return GoTimeError(f'parsing time {_quoted(text)} as "{layout}": cannot parse {_quoted(rest)} as "{element}"')


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
