"""The book of who is silent: it never misses a pool that passed the grace, never names one that did not, and knows mass silence."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.pools.derive import view as views
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.silence import MASS_WINDOW_SECONDS, SilenceBook
from tests.support.pools import lease, pool, ready_condition, renewal

GRACE = 50.0


def seen(name: str, at: float, status: str = "True") -> PoolView:
    view = views.first_sight(name, at=at, sight_at=at)
    view = views.see_pool(view, pool(name, ready_condition(status, "MachinePoolStatusUnknown")), at=at, sight_at=at)
    return views.see_lease(view, lease(name), at=at, sight_at=at)


def book_of(*pools: PoolView) -> SilenceBook:
    book = SilenceBook()
    for view in pools:
        book.see(view)
    return book


def test_a_pool_passes_the_grace_once_and_stays_passed_until_it_lives() -> None:
    view = seen("pool-a", 0)
    book = book_of(view)
    assert book.move_passed(GRACE, sight_at=50.0, at=50.0) == []
    assert book.move_passed(GRACE, sight_at=50.001, at=50.001) == ["pool-a"]
    assert book.move_passed(GRACE, sight_at=99, at=99) == []
    assert list(book.passed) == ["pool-a"]
    book.see(views.see_lease(view, lease(renew_time=renewal(1)), at=99, sight_at=99))
    assert book.passed == {}
    assert book.move_passed(GRACE, sight_at=150, at=150) == ["pool-a"]


def test_silence_passes_where_the_sample_says_so_to_the_millisecond() -> None:
    book = book_of(seen("pool-a", 0))
    assert book.move_passed(GRACE, sight_at=50.0004, at=51) == []
    assert book.move_passed(GRACE, sight_at=50.0006, at=51) == ["pool-a"]


def test_a_pool_that_is_gone_falls_due_no_more() -> None:
    book = book_of(seen("pool-a", 0), seen("pool-b", 0))
    book.see(views.without_pool(seen("pool-a", 0), at=10, sight_at=10))
    book.forget("pool-b")
    assert book.first() is None
    assert book.move_passed(GRACE, sight_at=100, at=100) == []


@pytest.mark.parametrize(
    ("silent", "alive", "mass"),
    [(6, 4, True), (5, 5, False), (3, 0, True), (2, 0, False), (3, 2, True), (3, 3, False), (55, 45, True), (54, 46, False)],
)
def test_mass_silence_is_three_pools_and_55_percent(silent: int, alive: int, mass: object) -> None:
    book = book_of(*(seen(f"dead-{n}", 0) for n in range(silent)), *(seen(f"alive-{n}", 40) for n in range(alive)))
    book.move_passed(GRACE, sight_at=60, at=60)
    assert book.mass_silence(60) is mass


def test_pools_that_were_unknown_when_first_seen_count_on_neither_side() -> None:
    """Three long-dead pools must not hide the next page: neither as silence of their own, nor among those that could have fallen silent."""
    long_dead = [seen(f"old-{n}", 0, "Unknown") for n in range(3)]
    book = book_of(*long_dead)
    book.move_passed(GRACE, sight_at=60, at=60)
    assert not book.mass_silence(60)
    for view in (seen(f"new-{n}", 100) for n in range(3)):
        book.see(view)
    book.move_passed(GRACE, sight_at=151, at=151)
    assert book.mass_silence(151)


def test_a_pool_that_was_unknown_counts_from_the_day_it_lives() -> None:
    view = views.see_lease(seen("pool-a", 0, "Unknown"), lease("pool-a", renew_time=renewal(1)), at=10, sight_at=10)
    book = book_of(view, seen("pool-b", 10), seen("pool-c", 10))
    book.move_passed(GRACE, sight_at=61, at=61)
    assert book.mass_silence(61)


def test_pools_that_never_reported_count_on_neither_side() -> None:
    never = [views.see_pool(views.first_sight(f"n-{n}", at=0, sight_at=0), pool(f"n-{n}"), at=0, sight_at=0) for n in range(5)]
    book = book_of(*never)
    book.move_passed(GRACE, sight_at=60, at=60)
    assert not book.mass_silence(60)


def test_mass_silence_ends_with_the_hour_and_its_pools_then_hide_no_other() -> None:
    book = book_of(*(seen(f"dead-{n}", 0) for n in range(3)))
    book.move_passed(GRACE, sight_at=60, at=60)
    assert book.mass_silence(60 + MASS_WINDOW_SECONDS - 1)
    assert not book.mass_silence(60 + MASS_WINDOW_SECONDS)
    later = 60 + MASS_WINDOW_SECONDS + 100
    for view in (seen(f"next-{n}", later) for n in range(3)):
        book.see(view)
    book.move_passed(GRACE, sight_at=later + 51, at=later + 51)
    assert book.mass_silence(later + 51)


def test_mass_silence_ends_when_the_pools_return() -> None:
    dead = [seen(f"dead-{n}", 0) for n in range(6)]
    book = book_of(*dead, *(seen(f"alive-{n}", 40) for n in range(4)))
    book.move_passed(GRACE, sight_at=60, at=60)
    book.see(views.see_lease(dead[0], lease("dead-0", renew_time=renewal(3)), at=61, sight_at=61))
    assert not book.mass_silence(61)


names = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(st.tuples(names, st.sampled_from(["renew", "look", "delete", "wait"]), st.floats(0, 40)), max_size=60))
def test_the_book_equals_a_literal_reading_of_every_view(steps: list[tuple[str, str, float]]) -> None:
    """After each step: passed are exactly the pools whose silence, rounded as the sample is, exceeds the grace."""
    book, known, now = SilenceBook(), {}, 0.0  # type: ignore[var-annotated]  # views by name
    for number, (name, what, wait) in enumerate(steps):
        now += wait
        if what == "delete":
            known.pop(name, None)
            book.forget(name)
        elif what == "renew":
            view = known.get(name) or seen(name, now)
            known[name] = views.see_lease(view, lease(name, renew_time=renewal(number)), at=now, sight_at=now)
            book.see(known[name])
        elif what == "look" and name in known:
            book.see(msgspec.structs.replace(known[name], marks=number))
        book.move_passed(GRACE, sight_at=now, at=now)
        assert set(book.passed) == {each for each, view in known.items() if round(now - view.silent_since, 3) > GRACE}
