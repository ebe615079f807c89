"""Quantities: Kubernetes' own spellings, read without losing a digit, and everything else refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.quantities import LARGEST, LONGEST, parse

SPELLINGS = {
    "0": 0,
    "4": 4,
    "+4": 4,
    "-4": -4,
    "100m": Fraction(1, 10),
    "0.1": Fraction(1, 10),
    "1e3": 1000,
    "1E3": 1000,
    "1e-3": Fraction(1, 1000),
    "5M": 5_000_000,
    "1Ki": 1024,
    "1.5Gi": 3 * 2**29,
    "10334m": Fraction("10.334"),
    "129e6": 129_000_000,
    "128974848000m": 128_974_848,
    "1.": 1,
    ".5": Fraction(1, 2),
    "100n": Fraction(1, 10**7),
    "250u": Fraction(1, 4000),
    "1E": 10**18,
    "7Ei": 7 * 2**60,
}


@pytest.mark.parametrize(("text", "number"), SPELLINGS.items())
def test_each_spelling_is_read_exactly(text: str, number: Fraction | int) -> None:
    assert parse(text) == number


WORDS = [
    "1e",
    "1e+",
    "1ee3",
    "e3",
    ".",
    "-",
    "+-1",
    "1.2.3",
    "1ki",
    "1KI",
    "1K",
    "1mi",
    "1i",
    "0x10",
    "1,5",
    "1_000",
    "abc",
    "NaN",
    "inf",
    "١",
]


@pytest.mark.parametrize("text", [*WORDS, "١", "", " ", "1 ", " 1", "1 Ki", "1\n", "9" * (LONGEST + 1)])
def test_what_kubernetes_refuses_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity; Kubernetes takes"):
        parse(text)


@pytest.mark.parametrize(
    ("number", "exact"), [(4, Fraction(4)), (-1, Fraction(-1)), (2**63 - 1, LARGEST), (1.5, Fraction(3, 2)), (1e16, 10**16)]
)
def test_a_number_of_json_s_own_is_a_quantity_too(number: float, exact: Fraction | int) -> None:
    assert parse(number) == exact


@pytest.mark.parametrize("value", [True, float("nan"), float("inf")])
def test_what_is_no_number_in_json_is_none_here(value: float) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        parse(value)


@pytest.mark.parametrize("text", ["8Ei", "9223372036854775808", "1e19", "1e999999999999", "100E"])
def test_what_is_above_an_int64_is_the_largest(text: str) -> None:
    assert parse(text) == LARGEST
    assert parse(f"-{text}") == -LARGEST


@pytest.mark.parametrize("text", ["0.1n", "1e-10", "1e-999999999999", "0.0000000001"])
def test_what_is_finer_than_a_billionth_is_rounded_away_from_0(text: str) -> None:
    assert parse(text) == Fraction(1, 10**9)
    assert parse(f"-{text}") == Fraction(-1, 10**9)


@given(st.integers(-LARGEST, LARGEST), st.integers(0, 9))
def test_a_decimal_fraction_is_read_digit_by_digit(digits: int, shift: int) -> None:
    """The last digit survives where a float would have lost it."""
    assert parse(f"{digits}e-{shift}") == Fraction(digits, 10**shift)


@given(st.text(max_size=20) | st.from_regex(r"[+-]?[0-9.]{0,6}[eE]?[+-]?[0-9]{0,3}[a-zA-Z]{0,2}", fullmatch=True))
def test_any_text_is_a_number_within_bounds_or_refused(text: str) -> None:
    try:
        number = parse(text)
    except ValueError:
        return
    assert abs(number) <= LARGEST
    assert (number * 10**9).denominator == 1
