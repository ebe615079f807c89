"""The table of differences is kept honest: every row differs, says why, and is read by a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.differences import DIFFERENCES

TESTS = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("name", DIFFERENCES)
def test_every_row_differs_and_is_read_by_a_test(name: str) -> None:
    row = DIFFERENCES[name]
    assert row.sandbox != row.real
    assert row.claim
    assert row.why
    assert f'"{name}"' in TESTS
