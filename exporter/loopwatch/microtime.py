"""Times as the API writes and reads them.

A Lease's acquireTime and renewTime are MicroTime: the API server answers 400 to anything but exactly six digits after the second
(kubernetes-client/python#2690), and `str(datetime)` drops them in one write of a million. Conditions carry whole seconds. What others
wrote has 0 to 9 digits and any offset; it is read to integer nanoseconds, so that two spellings of one instant are equal and no digit
is lost. It refuses to say which of two times is earlier for any decision: clocks of hosts disagree.
"""

from __future__ import annotations

import datetime
import re
from typing import Final

_RFC3339: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_SECONDS_A_DAY: Final = 86_400


def render_micro(moment: datetime.datetime) -> str:
    """`2026-05-01T12:00:00.000000Z`: always six digits, always Z; ValueError for a datetime without an offset."""
    return _in_utc(moment).isoformat(timespec="microseconds") + "Z"


def render_seconds(moment: datetime.datetime) -> str:
    """`2026-05-01T12:00:00Z`, the fraction cut off (metav1.Time); ValueError for a datetime without an offset."""
    return _in_utc(moment).isoformat(timespec="seconds") + "Z"


def parse_nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time with 0 to 9 digits, `Z` or `±hh:mm`; ValueError where the text is no such time."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time; write it as 2026-05-01T12:00:00.000000Z, with up to nine digits and Z or an offset")
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{text!r} is no time: hours run to 23, minutes and seconds to 59")
    days = datetime.date(year, month, day).toordinal() - _EPOCH_DAY
    seconds = days * _SECONDS_A_DAY + hour * 3600 + minute * 60 + second - _offset_seconds(text, match)
    return seconds * 1_000_000_000 + int((match[7] or "").ljust(9, "0"))


def _offset_seconds(text: str, match: re.Match[str]) -> int:
    if match[8] is None:
        return 0
    hours, minutes = int(match[9]), int(match[10])
    if hours > 23 or minutes > 59:
        raise ValueError(f"{text!r} is no time: an offset runs to ±23:59")
    seconds = hours * 3600 + minutes * 60
    return -seconds if match[8] == "-" else seconds


def _in_utc(moment: datetime.datetime) -> datetime.datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no offset: a time that is written to the API must say its zone")
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)
