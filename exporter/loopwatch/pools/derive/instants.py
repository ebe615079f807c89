"""Whether two timestamps of the API name the same instant.

Only that: nothing here, or anywhere in this room, says which of two is earlier, since clocks of hosts disagree (case 11). Texts are
compared first; only where they differ are they read, so a steady stream of renewals costs one comparison of strings each.
"""

from __future__ import annotations

from loopwatch.microtime import parse_nanoseconds


def same_instant(one: str | None, other: str | None) -> bool:
    """True where both are absent, the same text, or two spellings of one instant; texts that are no times differ as texts do."""
    if one == other:
        return True
    if one is None or other is None or _plainly_apart(one, other):
        return False
    try:
        return parse_nanoseconds(one) == parse_nanoseconds(other)
    except ValueError:
        return False


def _plainly_apart(one: str, other: str) -> bool:
    """Both in UTC with different seconds, as two renewals nearly always are: no need to read them."""
    return one[-1:] == other[-1:] == "Z" and one[10:11] == other[10:11] == "T" and one[:19] != other[:19]
