"""Durations as Go writes them (`10s`, `1m30s`, `500ms`), since every tool beside loopwatch reads and prints them so.

Parsed to float seconds. It refuses what Go's time.ParseDuration refuses: a number without a unit, spaces, an empty text.
"""

from __future__ import annotations

import re

UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"[+-]?(?:{_PART.pattern})+")
LONGEST_SECONDS = 9_223_372_036.0  # Go keeps int64 nanoseconds: about 292 years


def parse(text: str) -> float:
    """Seconds of a Go duration; ValueError with what is allowed where `text` is none."""
    if text in {"0", "+0", "-0"}:
        return 0.0
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no duration; write numbers with units such as 10s, 1m30s or 500ms")
    seconds = sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text))
    if seconds > LONGEST_SECONDS:
        raise ValueError(f"{text!r} is longer than a duration may be (292 years)")
    return -seconds if text.startswith("-") else seconds


def render(seconds: float) -> str:
    """The text that Go's Duration.String would print: `render(90) == "1m30s"`, `render(0.5) == "500ms"`."""
    sign = "-" if seconds < 0 else ""
    nanoseconds = round(abs(seconds) * 1e9)
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < 1_000:
        return f"{sign}{nanoseconds}ns"
    if nanoseconds < 1_000_000:
        return f"{sign}{_decimal(nanoseconds, 1_000)}µs"
    if nanoseconds < 1_000_000_000:
        return f"{sign}{_decimal(nanoseconds, 1_000_000)}ms"
    minutes, rest = divmod(nanoseconds, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, 1_000_000_000)}s"


def _decimal(count: int, unit: int) -> str:
    whole, rest = divmod(count, unit)
    if not rest:
        return str(whole)
    digits = len(str(unit)) - 1
    return f"{whole}.{str(rest).rjust(digits, '0').rstrip('0')}"
