"""The Prometheus text format 0.0.4, as bytes.

https://prometheus.io/docs/instrumenting/exposition_formats/ . Pure: series names and numbers in, lines out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_INT_LIMIT = 2**63  # what a Kubernetes or IRI integer can be; a larger one is written as the float it is read as


def escape_label(value: str) -> str:
    """A label's value between its quotes: backslash, quote and line feed are escaped."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def escape_help(text: str) -> str:
    """A HELP text: backslash and line feed are escaped, quotes are not."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def number(value: float) -> str:
    """A number as Prometheus reads it back to the same float64; whole numbers carry no `.0`, and True is 1."""
    if isinstance(value, int):
        return str(int(value)) if abs(value) < _INT_LIMIT else number(as_float(value))
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < 1e15:  # beyond that a float's digits say more than an int's would
        return str(int(value))
    return repr(value)


def as_float(value: float) -> float:
    """The float64 that a number is read back as; an int beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def encodable(values: Iterable[str]) -> bool:
    """Whether label values are valid Unicode: a lone surrogate has no UTF-8, and any stand-in could be another object's name."""
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


def series(name: str, labels: Iterable[tuple[str, str]]) -> bytes:
    """`name{a="x",b="y"} `, ready for its number; the values must be `encodable`."""
    inside = ",".join(f'{label}="{escape_label(value)}"' for label, value in labels)
    text = f"{name}{{{inside}}} " if inside else f"{name} "
    return text.encode()


def header(name: str, help_text: str, type_name: str) -> bytes:
    """The HELP and TYPE lines."""
    return f"# HELP {name} {escape_help(help_text)}\n# TYPE {name} {type_name}\n".encode()
