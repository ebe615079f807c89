"""loopwatch.text: what others say, made fit to be published."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.text import clean_message


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        ("rpc error: code = Unavailable desc = gone", "rpc error: code = Unavailable desc = gone"),
        ("two\nlines\r\nand\ttabs", "two lines  and tabs"),
        ("a\x00b\x1b[31mred\x7f\x85", "a b [31mred  "),
        ("line\u2028and paragraph\u2029", "line and paragraph "),
        ("half \ud800 and \udcff", "half \ufffd and \ufffd"),
        ("txt.\u202egpj.exe", "txt.\ufffdgpj.exe"),
        ("<script>alert(1)</script> & \"quotes\" 'too'", "<script>alert(1)</script> & \"quotes\" 'too'"),
        ("größer als 10 µs, 日本語, 🙂", "größer als 10 µs, 日本語, 🙂"),
    ],
)
def test_control_characters_are_blanked_broken_ones_replaced_and_all_else_is_kept(text: str, cleaned: str) -> None:
    assert clean_message(text) == cleaned


@pytest.mark.parametrize(
    ("text", "limit", "cut"), [("abcd", 3, "abc"), ("aßb", 2, "a"), ("aßb", 3, "aß"), ("🙂🙂", 7, "🙂"), ("\ud800x", 3, "\ufffd")]
)
def test_a_long_text_is_cut_between_characters(text: str, limit: int, cut: str) -> None:
    assert clean_message(text, limit) == cut


def test_the_limit_is_one_kibibyte_unless_said() -> None:
    assert clean_message("x" * 5000) == "x" * 1024


anything = st.text(st.characters(), max_size=300) | st.text(st.characters(categories=["Cc", "Cs", "Cf", "Zl", "Zp", "So"]), max_size=50)


@given(anything, st.integers(0, 64))
def test_whatever_comes_the_result_is_short_encodable_printable_json_and_clean_already(text: str, limit: int) -> None:
    cleaned = clean_message(text, limit)
    assert len(cleaned.encode("utf-8")) <= limit
    assert json.loads(json.dumps(cleaned)) == cleaned
    assert not {unicodedata.category(character) for character in cleaned} & {"Cc", "Cs", "Zl", "Zp"}
    assert clean_message(cleaned, limit) == cleaned


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=100))
def test_a_harmless_text_within_the_limit_is_left_alone(text: str) -> None:
    assert clean_message(text) == text
