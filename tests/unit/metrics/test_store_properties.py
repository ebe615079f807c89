"""Whatever the objects, names and numbers: the page can be read, holds each series once, and says what `value` says."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from loopwatch.metrics.family import Authority, Family, Group, Kind, Label
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import IN_SIGHT, MONOTONIC, Clocked, CountOverdue, HistogramValue, Moment, Overdue, Samples, Since, Until

STATES = ("true", "false", 'hostile "\n\\')
BOUNDS = (0.005, 0.5, 10.0)


@dataclass(frozen=True)
class Facts:
    """What the rows below read."""

    gauge: Samples
    counts: Samples
    state: str | None
    histogram: HistogramValue | None


TWO_LABELS = (Label("a", "any"), Label("b", "any"))
Step = tuple[tuple[str, str], Facts | None]
"""A key with the facts to put, or None to drop it."""

OBJECTS = Group[Facts](
    "objects",
    (Label("kind", "any"), Label("name", "any")),
    (
        Family("x_gauge", Kind.GAUGE, 'Any "number"\\.', lambda facts: facts.gauge, Authority.OWN),
        Family("x_events_total", Kind.COUNTER, "Any.", lambda facts: facts.counts, Authority.OWN, labels=TWO_LABELS),
        Family("x_state", Kind.STATE_SET, "Any.", lambda facts: facts.state, Authority.OWN, labels=(Label("state", "3"),), states=STATES),
        Family("x_seconds", Kind.HISTOGRAM, "Any.", lambda facts: facts.histogram, Authority.OWN),
    ),
)
PROCESS = Group[Samples]("process", (), (Family("up", Kind.GAUGE, "Any.", lambda facts: facts, Authority.OWN),))

# Few letters, so that names meet; all the awkward ones, and anything else.
names = st.text(st.sampled_from('ab"\\\n\r{},= \t\x00\x85\u2028é\udc80\udc81#'), max_size=3) | st.text(max_size=3)
seconds = st.floats(min_value=-1e6, max_value=1e6)
clocks = st.sampled_from((MONOTONIC, IN_SIGHT))
clocked: st.SearchStrategy[Clocked] = st.one_of(
    st.builds(Since, seconds | st.just(float("nan")), clocks),
    st.builds(Overdue, seconds, seconds, clocks),
    st.builds(Until, seconds, clocks),
    st.builds(CountOverdue, st.integers(0, 10**6), seconds, seconds, clocks),
)
numbers = st.integers() | st.floats() | st.booleans() | st.sampled_from((float("nan"), 10**400, -(10**400), 2**63, 2**64, -(2**63)))
values = numbers | clocked
histograms = st.builds(
    HistogramValue,
    st.just(BOUNDS),
    st.tuples(*[st.integers(0, 2**40)] * 4),
    st.floats(allow_infinity=False) | st.just(float("nan")),
)
facts = st.builds(
    Facts,
    gauge=st.none() | values,
    counts=st.none() | st.dictionaries(st.tuples(names, names), values, max_size=4),
    state=st.none() | st.sampled_from(STATES) | names,
    histogram=st.none() | histograms,
)
keys = st.tuples(st.sampled_from(("pool", "lease")) | names, names)
puts = st.lists(st.tuples(keys, st.none() | facts), max_size=12)
moments = st.builds(Moment, seconds, seconds)


def filled(steps: list[Step], up: Samples) -> Store:
    store = Store(OBJECTS, PROCESS)
    store.put(PROCESS, (), up)
    for key, each in steps:
        if each is None:
            store.drop(OBJECTS, key)
        else:
            store.put(OBJECTS, key, each)
    return store


def series_of(page: bytes) -> list[tuple[str, dict[str, str], float]]:
    families = list(text_string_to_metric_families(page.decode("utf-8")))
    assert len({family.name for family in families}) == len(families), "a family stands on the page in two pieces"
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


@given(puts, st.none() | values, moments)
def test_any_page_is_read_whole_without_a_duplicate(steps: list[Step], up: Samples, now: Moment) -> None:
    page = filled(steps, up).render(now)
    series = series_of(page)
    assert len(series) == sum(not line.startswith(b"#") for line in page.split(b"\n")) - 1
    assert len({(name, tuple(sorted(labels.items()))) for name, labels, _ in series}) == len(series)


@given(puts, st.none() | values, moments)
def test_any_number_on_the_page_is_the_one_that_value_gives(steps: list[Step], up: Samples, now: Moment) -> None:
    store = filled(steps, up)
    for name, labels, number in series_of(store.render(now)):
        if not name.startswith("x_seconds"):
            assert store.value(name, labels, now) == float(number), (name, labels)


@given(puts, moments)
def test_a_state_set_shows_all_its_states_and_exactly_one(steps: list[Step], now: Moment) -> None:
    shown: dict[tuple[str, str], list[float]] = {}
    for name, labels, number in series_of(filled(steps, None).render(now)):
        if name == "x_state":
            shown.setdefault((labels["kind"], labels["name"]), []).append(number)
    assert all(sorted(numbers) == [0.0, 0.0, 1.0] for numbers in shown.values())


@given(puts, moments)
def test_buckets_never_fall_and_the_last_is_the_count(steps: list[Step], now: Moment) -> None:
    buckets: dict[tuple[str, str], list[float]] = {}
    counts: dict[tuple[str, str], float] = {}
    for name, labels, number in series_of(filled(steps, None).render(now)):
        key = labels.get("kind", ""), labels.get("name", "")
        if name == "x_seconds_bucket":
            buckets.setdefault(key, []).append(number)
        if name == "x_seconds_count":
            counts[key] = number
    assert buckets.keys() == counts.keys()
    assert all(numbers == sorted(numbers) and numbers[-1] == counts[key] for key, numbers in buckets.items())


@given(puts, st.none() | values, moments)
def test_the_order_in_which_objects_came_changes_no_series(steps: list[Step], up: Samples, now: Moment) -> None:
    last = dict(steps)
    in_order, fresh = filled(steps, up), filled([(key, each) for key, each in last.items() if each is not None], up)
    assert sorted(in_order.render(now).split(b"\n")) == sorted(fresh.render(now).split(b"\n"))
