"""Whether two timestamps of the API name the same instant.

Only that: nothing here, or anywhere in this room, says which of two is earlier, since clocks of hosts disagree (case 11). Texts are
compared first; only where they differ are they read, so a steady stream of renewals costs one comparison of strings each.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def nanoseconds(text: str) -> int | None:
    """Nanoseconds since 1970, of an RFC 3339 time with 0 to 9 digits after the second; None where the text is no such time."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    date, time, fraction, zone = match.groups()
    try:
        whole = datetime.fromisoformat(f"{date}T{time}{'+00:00' if zone in 'Zz' else zone}")
        seconds = (whole - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def same_instant(one: str | None, other: str | None) -> bool:
    """True where both are absent, the same text, or two spellings of one instant; texts that are no times differ as texts do."""
    if one == other:
        return True
    if one is None or other is None or _plainly_apart(one, other):
        return False
    first = nanoseconds(one)
    return first is not None and first == nanoseconds(other)


def _plainly_apart(one: str, other: str) -> bool:
    """Both in UTC with different seconds, as two renewals nearly always are: no need to read them."""
    return one[-1:] == other[-1:] == "Z" and one[10:11] == other[10:11] == "T" and one[:19] != other[:19]
