from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.kube.backoff import Backoff


class Dice:
    """A Clock of which only chance matters."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = list(numbers)

    def random(self) -> float:
        """The next number, near 1 when they are used up."""
        return self._numbers.pop(0) if self._numbers else 0.999

    def monotonic(self) -> float:
        """Never moves."""
        return 0.0

    def utcnow(self) -> datetime.datetime:
        """Never moves."""
        return datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    async def sleep(self, seconds: float) -> None:
        """Must not be called."""
        raise AssertionError(f"a Backoff never sleeps ({seconds})")


def test_it_doubles_up_to_the_cap() -> None:
    backoff = Backoff(Dice(*[0.0] * 7), first_seconds=1, cap_seconds=30)
    assert [backoff.next() for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]


def test_success_begins_again_at_the_first_wait() -> None:
    backoff = Backoff(Dice(*[0.0] * 4), first_seconds=1, cap_seconds=30)
    backoff.next()
    backoff.next()
    backoff.reset()
    assert backoff.next() == 0.5


def test_retry_after_is_a_floor_even_above_the_cap() -> None:
    backoff = Backoff(Dice(0.5), first_seconds=1, cap_seconds=30)
    assert backoff.next(retry_after=120) == 120


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1e6)), max_size=200))
def test_each_wait_is_between_half_and_all_of_its_step_unless_the_server_asks_for_more(steps: list[tuple[float, float | None]]) -> None:
    backoff = Backoff(Dice(*(number for number, _ in steps)), first_seconds=0.5, cap_seconds=20)
    for count, (_, retry_after) in enumerate(steps):
        whole = min(20.0, 0.5 * 2.0 ** min(count, 60))
        wait = backoff.next(retry_after)
        assert wait >= (retry_after or 0)
        assert whole / 2 <= wait <= max(whole, retry_after or 0)


def test_it_never_overflows() -> None:
    backoff = Backoff(Dice(), first_seconds=1, cap_seconds=1e300)
    assert all(backoff.next() < 1e300 for _ in range(5000))


@pytest.mark.parametrize(("first", "cap"), [(0, 1), (-1, 1), (2, 1)])
def test_a_wait_that_would_spin_is_refused(first: float, cap: float) -> None:
    with pytest.raises(ValueError, match="first_seconds must be above 0"):
        Backoff(Dice(), first_seconds=first, cap_seconds=cap)
