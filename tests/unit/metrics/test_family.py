"""What the tables of families refuse."""

from __future__ import annotations

import pytest

from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label

WHERE = Label("where", "a few")


def family(name: str = "x", kind: Kind = Kind.GAUGE, text: str = "Help.", **more: object) -> Family[int]:
    return Family(name, kind, text, lambda facts: facts, Authority.OWN, **more)  # type: ignore[arg-type] # what a table should not hold is the point


@pytest.mark.parametrize("ending", ["_count", "_sum", "_bucket", "_total", "_created"])
@pytest.mark.parametrize("kind", [Kind.GAUGE, Kind.INFO, Kind.STATE_SET, Kind.HISTOGRAM])
def test_endings_of_counters_and_histograms_are_refused_elsewhere(kind: Kind, ending: str) -> None:
    with pytest.raises(ValueError, match="only counters and histograms may end"):
        family(f"x{ending}", kind)


def test_a_counter_ends_in_total() -> None:
    with pytest.raises(ValueError, match="ends in _total"):
        family("x_seconds", Kind.COUNTER)
    assert family("x_seconds_total", Kind.COUNTER).unit == "seconds"


@pytest.mark.parametrize("name", ["", "X", "x-y", "1x", "x y", "é"])
def test_a_name_is_lower_case(name: str) -> None:
    with pytest.raises(ValueError, match="lower case"):
        family(name)


@pytest.mark.parametrize(
    ("kind", "more", "complaint"),
    [
        (Kind.STATE_SET, {"labels": (WHERE,)}, "lists its states"),
        (Kind.GAUGE, {"states": ("a",)}, "lists its states"),
        (Kind.STATE_SET, {"states": ("a", "b")}, "one label of its own"),
        (Kind.STATE_SET, {"states": ("a", "b"), "labels": (WHERE, Label("x", "y"))}, "one label of its own"),
        (Kind.STATE_SET, {"states": ("a", "a"), "labels": (WHERE,)}, "twice"),
        (Kind.HISTOGRAM, {"labels": (Label("le", "y"),)}, "no label name"),
        (Kind.GAUGE, {"labels": (Label("Where", "y"),)}, "no label name"),
        (Kind.GAUGE, {"text": "two\nlines"}, "one line"),
        (Kind.GAUGE, {"text": ""}, "one line"),
    ],
)
def test_a_row_that_would_break_the_page_is_refused(kind: Kind, more: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        family(kind=kind, **more)  # type: ignore[arg-type] # see family


def test_a_label_may_not_stand_twice_in_a_series() -> None:
    with pytest.raises(ValueError, match="called 'where'"):
        Group("g", (WHERE,), (family(labels=(Label("where", "again"),)),))
    with pytest.raises(ValueError, match="called 'a'"):
        Group("g", (), (family(labels=(Label("a", "x"), Label("a", "x"))),))


@pytest.mark.parametrize(
    ("name", "kind", "unit"),
    [
        ("x_age_seconds", Kind.GAUGE, "seconds"),
        ("x_bytes_total", Kind.COUNTER, "bytes"),
        ("x_load_ratio", Kind.GAUGE, "ratio"),
        ("x_secondsish", Kind.GAUGE, ""),
        ("x_ready", Kind.GAUGE, ""),
    ],
)
def test_the_unit_is_what_the_name_ends_in(name: str, kind: Kind, unit: str) -> None:
    assert family(name, kind).unit == unit


def test_state_sets_and_infos_are_gauges_in_text() -> None:
    assert {kind: kind.text_type for kind in Kind} == {
        Kind.GAUGE: "gauge",
        Kind.COUNTER: "counter",
        Kind.HISTOGRAM: "histogram",
        Kind.INFO: "gauge",
        Kind.STATE_SET: "gauge",
    }


def test_a_component_exposes_only_its_rows() -> None:
    group = Group("g", (), (family("mine", exposed_by=(Component.SIDECAR,)), family("both")))
    assert [row.name for row in group.exposed_by(Component.CONTROLLER).families] == ["both"]
    assert [row.name for row in group.exposed_by(Component.SIDECAR).families] == ["mine", "both"]


def test_every_authority_says_how_a_rule_reads_it() -> None:
    assert len({authority.meaning for authority in Authority}) == len(Authority)
