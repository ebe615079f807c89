"""Quantities as Kubernetes writes them (`4`, `500m`, `1Ki`, `129e6`), read exactly.

https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ . As apimachinery's ParseQuantity reads them: what is
finer than a billionth is rounded up, away from 0, and what is larger than an int64 is taken as the largest. No floats on the way: they
would make 0.1 another number. It refuses what Kubernetes refuses: spaces, an `e` without a number, suffixes of other tools.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

LARGEST: Final = 2**63 - 1
LONGEST: Final = 128
"""Characters. No tool writes more; a million digits would cost this process seconds."""

_NANO: Final = Fraction(1, 10**9)
_PARTS: Final = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_SUFFIXES: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    **{suffix: Fraction(1, 1000**power) for power, suffix in enumerate("mun", start=1)},
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}
_FAR: Final = 200
"""A power of ten beyond which no quantity of LONGEST characters is anything but the largest, the smallest or 0."""


def parse(value: str | float) -> Fraction:
    """The number that a quantity stands for, from a text or from JSON's own number; ValueError where it is none."""
    text = str(value)
    match = _PARTS.fullmatch(text) if len(text) <= LONGEST else None
    if match is None or isinstance(value, bool):
        raise ValueError(f"{text[:LONGEST]!r} is no quantity; Kubernetes takes numbers such as 4, 0.5, 500m, 1Ki or 129e6")
    sign, digits, exponent, suffix = match.groups()
    number = Fraction(digits if digits[0] != "." else f"0{digits}")
    if exponent is not None:
        number *= Fraction(10) ** max(min(int(exponent), _FAR), -_FAR)
    number = min(_in_whole_nanos(number * _SUFFIXES[suffix or ""]), Fraction(LARGEST))
    return -number if sign == "-" else number


def _in_whole_nanos(number: Fraction) -> Fraction:
    nanos = number / _NANO
    return -(-nanos.numerator // nanos.denominator) * _NANO
