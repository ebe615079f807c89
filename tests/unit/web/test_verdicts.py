"""What is remembered of who may see what, at any sequence of answers and any pace of time."""

from __future__ import annotations

import gc

from hypothesis import given
from hypothesis import strategies as st

from loopwatch.web.verdicts import KEPT_SECONDS, MOST_KEPT, Verdicts

PATH = "/metrics"
OUTAGE_SECONDS = 900.0

tokens = st.sampled_from(["a", "b", "c", "d"])
paths = st.sampled_from([PATH, "/"])
steps = st.lists(
    st.tuples(st.sampled_from(["allow", "refuse"]), tokens, paths, st.sampled_from([0.0, 0.5, 59.0, 60.0, 61.0, 400.0, 900.0, 901.0])),
    max_size=30,
)


def test_an_allowed_verdict_stands_for_a_minute_and_in_an_outage_for_the_time_that_was_set() -> None:
    verdicts = Verdicts(outage_seconds=OUTAGE_SECONDS)
    verdicts.allow("token", PATH, 100.0)
    assert verdicts.stands("token", PATH, 159.9)
    assert not verdicts.stands("token", PATH, 160.0)
    assert verdicts.stands_in_outage("token", PATH, 999.9)
    assert not verdicts.stands_in_outage("token", PATH, 1000.0)


def test_a_verdict_holds_for_its_token_and_its_path_alone() -> None:
    verdicts = Verdicts(outage_seconds=OUTAGE_SECONDS)
    verdicts.allow("token", PATH, 0.0)
    assert not verdicts.stands("token", "/", 0.0)
    assert not verdicts.stands("other", PATH, 0.0)
    assert not verdicts.stands("tok", "en\0/metrics", 0.0), "token and path can't run into each other"


def test_a_refusal_voids_what_was_allowed_in_an_outage_too() -> None:
    verdicts = Verdicts(outage_seconds=OUTAGE_SECONDS)
    verdicts.allow("token", PATH, 0.0)
    verdicts.refuse("token", PATH)
    assert not verdicts.stands("token", PATH, 1.0)
    assert not verdicts.stands_in_outage("token", PATH, 1.0)
    assert len(verdicts) == 0


def test_without_an_outage_time_nobody_is_allowed_unasked_for_more_than_the_minute() -> None:
    verdicts = Verdicts(outage_seconds=0.0)
    verdicts.allow("token", PATH, 0.0)
    assert verdicts.stands("token", PATH, 1.0)
    assert not verdicts.stands_in_outage("token", PATH, 1.0)


def test_the_oldest_makes_room_for_the_newest() -> None:
    verdicts = Verdicts(outage_seconds=OUTAGE_SECONDS)
    for number in range(MOST_KEPT + 1):
        verdicts.allow(f"token-{number}", PATH, 1.0)
    assert len(verdicts) == MOST_KEPT
    assert not verdicts.stands("token-0", PATH, 1.0)
    assert verdicts.stands("token-1", PATH, 1.0)
    assert verdicts.stands(f"token-{MOST_KEPT}", PATH, 1.0)


def test_what_can_not_stand_any_more_is_forgotten() -> None:
    verdicts = Verdicts(outage_seconds=OUTAGE_SECONDS)
    verdicts.allow("old", PATH, 0.0)
    verdicts.allow("new", PATH, OUTAGE_SECONDS)
    assert len(verdicts) == 1


def test_no_token_is_kept() -> None:
    verdicts = Verdicts(outage_seconds=OUTAGE_SECONDS)
    verdicts.allow("a-secret-token", PATH, 0.0)
    held = list(vars(verdicts).values())
    while held:
        each = held.pop()
        assert b"a-secret-token" not in repr(each).encode()
        held += [inner for inner in gc.get_referents(each) if isinstance(inner, str | bytes | dict | tuple | list)]


@given(steps, tokens, paths, st.floats(0.0, 1000.0))
def test_whatever_happened_a_verdict_stands_exactly_as_long_as_its_newest_answer_says(
    happened: list[tuple[str, str, str, float]], token: str, path: str, later: float
) -> None:
    verdicts, now = Verdicts(outage_seconds=OUTAGE_SECONDS), 0.0
    allowed_at: dict[tuple[str, str], float] = {}
    for what, about, at, pause in happened:
        now += pause
        if what == "allow":
            verdicts.allow(about, at, now)
            allowed_at[about, at] = now
        else:
            verdicts.refuse(about, at)
            allowed_at.pop((about, at), None)
    now += later
    age = now - allowed_at.get((token, path), float("-inf"))
    assert verdicts.stands(token, path, now) == (age < KEPT_SECONDS)
    assert verdicts.stands_in_outage(token, path, now) == (age < OUTAGE_SECONDS)


@given(st.lists(st.tuples(st.text(max_size=3), st.floats(0.0, 50.0)), max_size=60), st.integers(1, 5))
def test_it_never_grows_beyond_its_bound_and_keeps_the_newest(given_: list[tuple[str, float]], most: int) -> None:
    verdicts, now = Verdicts(outage_seconds=OUTAGE_SECONDS, most=most), 0.0
    newest: list[str] = []
    for token, pause in given_:
        now += pause
        verdicts.allow(token, PATH, now)
        newest = [token, *(each for each in newest if each != token)][:most]
        assert len(verdicts) <= most
        assert verdicts.stands(token, PATH, now)
    assert all(verdicts.stands_in_outage(token, PATH, now) for token in newest if now < OUTAGE_SECONDS)
