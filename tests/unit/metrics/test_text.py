"""The text format, character by character."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.metrics import text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (True, "1"),
        (False, "0"),
        (-3, "-3"),
        (2**53 + 1, "9007199254740993"),
        (10**400, "+Inf"),
        (-(10**400), "-Inf"),
        (2**70, "1.1805916207174113e+21"),
        (40.0, "40"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e15, "1000000000000000.0"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
    ],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, written: str) -> None:
    assert text.number(value) == written


@given(st.floats(allow_nan=False) | st.integers())
def test_a_written_number_is_read_back_as_the_same_float(value: float) -> None:
    assert float(text.number(value)) == text.as_float(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"),
        ("", ""),
        ('say "hi"', r"say \"hi\""),
        ("a\\b", r"a\\b"),
        ("a\nb", r"a\nb"),
        ("\\n", r"\\n"),
        ("\r\t\x00é", "\r\t\x00é"),
    ],
)
def test_label_values_are_escaped(value: str, written: str) -> None:
    assert text.series("x", [("a", value), ("b", "")]) == f'x{{a="{written}",b=""}} '.encode()


def test_a_series_without_labels_has_no_braces() -> None:
    assert text.series("up", []) == b"up "


def test_help_keeps_its_quotes_and_escapes_backslash_and_line_feed() -> None:
    assert text.header("x", 'a "b" \\ c\nd', "gauge") == b'# HELP x a "b" \\\\ c\\nd\n# TYPE x gauge\n'


def test_a_lone_surrogate_is_not_encodable() -> None:
    assert text.encodable(["é", "", "\x00"])
    assert not text.encodable(["a", "\udc80"])
    assert not text.encodable(["\ud83d", "\ude00"]), "two halves in two labels don't make a whole"
