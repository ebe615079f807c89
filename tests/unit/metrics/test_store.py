"""The store: facts in, exact text out, and one number for every reader."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families

from loopwatch.metrics.family import Authority, Family, Group, Kind, Label
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import IN_SIGHT, Clocked, CountOverdue, HistogramValue, Moment, Overdue, Samples, Since, Until

NOW = Moment(monotonic=1000.0, in_sight=900.0)
POOL_LABEL = Label("pool", "one per pool")


@dataclass(frozen=True)
class Facts:
    """What the rows below read."""

    gauge: Samples = None
    counts: Samples = None
    state: str | None = None
    info: Samples = None
    histogram: HistogramValue | None = None


POOLS = Group[Facts](
    "pools",
    (POOL_LABEL,),
    (
        Family("pool_age_seconds", Kind.GAUGE, "Age.", lambda facts: facts.gauge, Authority.FRESHEST),
        Family("pool_writes_total", Kind.COUNTER, "Writes.", lambda facts: facts.counts, Authority.OWN, labels=(Label("result", "2"),)),
        Family(
            "pool_ready",
            Kind.STATE_SET,
            "Ready.",
            lambda facts: facts.state,
            Authority.LEADER,
            labels=(Label("status", "3"),),
            states=("true", "false", "unknown"),
        ),
        Family("pool_info", Kind.INFO, "Info.", lambda facts: facts.info, Authority.LEADER, labels=(Label("provider_id", "1"),)),
        Family("pool_probe_seconds", Kind.HISTOGRAM, "Probe.", lambda facts: facts.histogram, Authority.OWN),
    ),
)
PROCESS = Group[int]("process", (), (Family("up", Kind.GAUGE, "Up.", lambda facts: facts, Authority.OWN),))


def store() -> Store:
    return Store(POOLS, PROCESS)


def page(facts: Facts, key: tuple[str, ...] = ("a",), now: Moment = NOW) -> str:
    filled = store()
    filled.put(POOLS, key, facts)
    return filled.render(now).decode()


def block(name: str, help_text: str, kind: str, *lines: str) -> str:
    return "".join(f"{line}\n" for line in (f"# HELP {name} {help_text}", f"# TYPE {name} {kind}", *lines))


def age(shown: str) -> str:
    return block("pool_age_seconds", "Age.", "gauge", f'pool_age_seconds{{pool="a"}} {shown}')


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (Facts(), ""),
        (Facts(gauge=0), age("0")),
        (Facts(gauge=True), age("1")),
        (Facts(gauge=-1.5), age("-1.5")),
        (Facts(gauge=10**400), age("+Inf")),
        (Facts(gauge=Since(987.5)), age("12.5")),
        (Facts(gauge=Since(890.0, IN_SIGHT)), age("10")),
        (Facts(gauge=math.inf), age("+Inf")),
        (Facts(gauge=math.nan), ""),
        (Facts(gauge=Since(math.nan)), ""),
        (
            Facts(counts={("ok",): 3, ("error",): 0}),
            block(
                "pool_writes_total",
                "Writes.",
                "counter",
                'pool_writes_total{pool="a",result="ok"} 3',
                'pool_writes_total{pool="a",result="error"} 0',
            ),
        ),
        (
            Facts(state="false"),
            block(
                "pool_ready",
                "Ready.",
                "gauge",
                'pool_ready{pool="a",status="true"} 0',
                'pool_ready{pool="a",status="false"} 1',
                'pool_ready{pool="a",status="unknown"} 0',
            ),
        ),
        (Facts(state="no state of the set"), ""),
        (
            Facts(info={('x://"1"\n\\',): 1}),
            block("pool_info", "Info.", "gauge", 'pool_info{pool="a",provider_id="x://\\"1\\"\\n\\\\"} 1'),
        ),
        (
            Facts(histogram=HistogramValue((0.1, 1.0), (1, 2, 3), 9.25)),
            block(
                "pool_probe_seconds",
                "Probe.",
                "histogram",
                'pool_probe_seconds_bucket{pool="a",le="0.1"} 1',
                'pool_probe_seconds_bucket{pool="a",le="1"} 3',
                'pool_probe_seconds_bucket{pool="a",le="+Inf"} 6',
                'pool_probe_seconds_sum{pool="a"} 9.25',
                'pool_probe_seconds_count{pool="a"} 6',
            ),
        ),
        (Facts(histogram=HistogramValue((), (0,), math.nan)), ""),
    ],
)
def test_an_object_becomes_exactly_this_text(facts: Facts, expected: str) -> None:
    assert page(facts) == expected


def test_an_object_without_labels_becomes_a_series_without_labels() -> None:
    filled = store()
    filled.put(PROCESS, (), 1)
    assert filled.render(NOW) == b"# HELP up Up.\n# TYPE up gauge\nup 1\n"


def test_a_family_stands_in_one_piece_whatever_the_order_of_puts() -> None:
    filled = store()
    filled.put(POOLS, ("b",), Facts(gauge=1, counts={("ok",): 1}))
    filled.put(PROCESS, (), 1)
    filled.put(POOLS, ("a",), Facts(gauge=Since(999.0), counts={("ok",): 2}))
    lines = filled.render(NOW).decode().splitlines()
    assert [line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")] == [
        "pool_age_seconds",
        "pool_age_seconds",
        "pool_writes_total",
        "pool_writes_total",
        "up",
    ]


def test_clocked_values_move_with_now_and_fixed_ones_stand() -> None:
    filled = store()
    filled.put(POOLS, ("a",), Facts(gauge=Since(1000.0), counts={("ok",): 1}))
    first, later = filled.render(NOW), filled.render(Moment(1007.25, 900.0))
    assert b'pool_age_seconds{pool="a"} 0\n' in first
    assert b'pool_age_seconds{pool="a"} 7.25\n' in later
    assert first.count(b"pool_writes_total{") == later.count(b"pool_writes_total{") == 1


@pytest.mark.parametrize(
    "value",
    [
        Since(993.1234),
        Since(880.0, IN_SIGHT),
        Overdue(900.0, 50.0),
        Overdue(990.0, 50.0),
        Until(1000.5),
        Until(1.0),
        CountOverdue(3, 900.0, 50.0),
        CountOverdue(3, 990.0, 50.0),
    ],
)
def test_value_is_the_number_on_the_page_at_the_same_moment(value: Clocked) -> None:
    filled = store()
    filled.put(POOLS, ("a",), Facts(gauge=value))
    for passed in (0.0, 0.0004, 1.0, 333.3333):
        now = Moment(NOW.monotonic + passed, NOW.in_sight + passed / 3)
        shown = filled.render(now).decode().splitlines()[-1].rpartition(" ")[2]
        assert filled.value("pool_age_seconds", {"pool": "a"}, now) == float(shown)


def test_value_of_what_is_not_there_is_none() -> None:
    filled = store()
    filled.put(POOLS, ("a",), Facts(gauge=math.nan, counts={("ok",): 1}, state="gone"))
    assert filled.value("pool_age_seconds", {"pool": "a"}, NOW) is None
    assert filled.value("pool_age_seconds", {"pool": "b"}, NOW) is None
    assert filled.value("pool_writes_total", {"pool": "a", "result": "error"}, NOW) is None
    assert filled.value("pool_ready", {"pool": "a", "status": "true"}, NOW) is None


def test_value_reads_state_sets_by_their_label() -> None:
    filled = store()
    filled.put(POOLS, ("a",), Facts(state="true"))
    assert filled.value("pool_ready", {"pool": "a", "status": "true"}, NOW) == 1.0
    assert filled.value("pool_ready", {"pool": "a", "status": "unknown"}, NOW) == 0.0
    assert filled.value("pool_ready", {"pool": "a", "status": "sideways"}, NOW) is None


def test_value_refuses_what_has_no_one_answer() -> None:
    filled = store()
    filled.put(POOLS, ("a",), Facts(histogram=HistogramValue((), (1,), 1.0)))
    with pytest.raises(ValueError, match="histogram"):
        filled.value("pool_probe_seconds", {"pool": "a"}, NOW)
    with pytest.raises(ValueError, match="label 'pool'"):
        filled.value("pool_age_seconds", {}, NOW)
    with pytest.raises(KeyError):
        filled.value("no_such_family", {}, NOW)


def test_a_vanished_objects_series_vanish_and_return_with_it() -> None:
    filled = store()
    full = Facts(gauge=Since(0.0), counts={("ok",): 1}, state="true", info={("p",): 1}, histogram=HistogramValue((), (1,), 1.0))
    filled.put(POOLS, ("a",), full)
    filled.put(POOLS, ("b",), full)
    both = filled.render(NOW)
    filled.drop(POOLS, ("a",))
    assert b'pool="a"' not in filled.render(NOW)
    assert filled.value("pool_age_seconds", {"pool": "a"}, NOW) is None
    filled.put(POOLS, ("a",), full)
    assert sorted(filled.render(NOW).splitlines()) == sorted(both.splitlines())
    filled.drop(POOLS, ("a",))
    filled.drop(POOLS, ("a",))
    filled.drop(POOLS, ("b",))
    assert filled.render(NOW) == b""
    assert dict(filled.facts(POOLS)) == {}


def test_a_sample_that_is_no_longer_known_leaves_the_page() -> None:
    filled = store()
    filled.put(POOLS, ("a",), Facts(gauge=1, counts={("ok",): 1, ("error",): 1}))
    filled.put(POOLS, ("a",), Facts(counts={("ok",): 1}))
    assert filled.render(NOW).splitlines()[2:] == [b'pool_writes_total{pool="a",result="ok"} 1']


def test_a_value_may_change_between_fixed_and_clocked() -> None:
    filled = store()
    for value, shown in ((1, b"1"), (Since(990.0), b"10"), (2, b"2"), (Until(1001.0), b"1")):
        filled.put(POOLS, ("a",), Facts(gauge=value))
        assert [line for line in filled.render(NOW).splitlines() if line[:1] != b"#"] == [b'pool_age_seconds{pool="a"} ' + shown]


def test_a_row_that_raises_leaves_the_object_as_it_was() -> None:
    def fails_for_two(facts: int) -> Samples:
        if facts == 2:
            raise ZeroDivisionError
        return facts

    group = Group[int](
        "g",
        (POOL_LABEL,),
        (
            Family("first", Kind.GAUGE, "1.", lambda facts: facts, Authority.OWN),
            Family("second", Kind.GAUGE, "2.", fails_for_two, Authority.OWN),
        ),
    )
    filled = Store(group)
    filled.put(group, ("a",), 1)
    before = filled.render(NOW)
    with pytest.raises(ZeroDivisionError):
        filled.put(group, ("a",), 2)
    assert filled.render(NOW) == before
    assert filled.facts(group)[("a",)] == 1


def test_a_key_of_another_length_is_refused_before_anything_changes() -> None:
    filled = store()
    for key in ((), ("a", "b")):
        with pytest.raises(ValueError, match="named by 1 labels"):
            filled.put(POOLS, key, Facts(gauge=1))
    assert filled.render(NOW) == b""


def test_what_has_no_utf8_is_absent_for_every_reader() -> None:
    filled = store()
    filled.put(POOLS, ("\udc80",), Facts(gauge=1))
    filled.put(POOLS, ("\udc81",), Facts(gauge=2))
    filled.put(POOLS, ("a",), Facts(gauge=3, counts={("\ud800",): 1, ("ok",): 2}))
    assert [line for line in filled.render(NOW).splitlines() if line[:1] != b"#"] == [
        b'pool_age_seconds{pool="a"} 3',
        b'pool_writes_total{pool="a",result="ok"} 2',
    ]
    assert filled.value("pool_age_seconds", {"pool": "\udc80"}, NOW) is None
    assert filled.value("pool_writes_total", {"pool": "a", "result": "\ud800"}, NOW) is None


def test_one_name_may_not_be_declared_twice() -> None:
    other = Group[int]("other", (), PROCESS.families)
    with pytest.raises(ValueError, match="one family name"):
        Store(PROCESS, other)
    with pytest.raises(ValueError, match="groups have one name"):
        Store(PROCESS, Group[int]("process", (), (Family("down", Kind.GAUGE, "Down.", lambda facts: facts, Authority.OWN),)))
    with pytest.raises(ValueError, match="one family name"):
        Store(Group[int]("twice", (), PROCESS.families * 2))


def test_sources_are_asked_before_each_page() -> None:
    filled = store()
    asked: list[int] = []

    def source() -> None:
        asked.append(1)
        filled.put(PROCESS, (), len(asked))

    filled.before_reading(source)
    assert filled.render(NOW).endswith(b"up 1\n")
    assert filled.render(NOW).endswith(b"up 2\n")


def test_prometheus_reads_the_whole_page() -> None:
    filled = store()
    filled.put(PROCESS, (), 1)
    for number, name in enumerate(("a", 'q"\\\n', "")):
        filled.put(
            POOLS,
            (name,),
            Facts(
                gauge=Since(900.0 + number),
                counts={("ok",): number},
                state="unknown",
                info={(name,): 1},
                histogram=HistogramValue((0.5,), (number, 1), 1.5),
            ),
        )
    families = {family.name: family for family in text_string_to_metric_families(filled.render(NOW).decode())}
    assert {name: (family.type, len(family.samples)) for name, family in families.items()} == {
        "pool_age_seconds": ("gauge", 3),
        "pool_writes": ("counter", 3),
        "pool_ready": ("gauge", 9),
        "pool_info": ("gauge", 3),
        "pool_probe_seconds": ("histogram", 12),
        "up": ("gauge", 1),
    }
    assert [sample.labels["pool"] for sample in families["pool_age_seconds"].samples] == ["a", 'q"\\\n', ""]


def test_a_moment_that_moves_shows_the_new_one_and_one_that_is_no_number_takes_the_series_away() -> None:
    filled = store()
    shown = []
    for value in (Since(990.0), Since(995.0), Until(1001.0), Since(math.nan), Since(998.0)):
        filled.put(POOLS, ("a",), Facts(gauge=value))
        shown.append(filled.value("pool_age_seconds", {"pool": "a"}, NOW))
        page_says = [line for line in filled.render(NOW).decode().splitlines() if not line.startswith("#")]
        assert page_says == ([] if shown[-1] is None else [f'pool_age_seconds{{pool="a"}} {shown[-1]:.0f}'])
    assert shown == [10.0, 5.0, 1.0, None, 2.0]
