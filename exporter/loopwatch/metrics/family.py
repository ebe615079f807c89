"""A metric family is data: what it is called, what it means, who may be believed about it, and how facts become its samples.

A room's `families.py` is a table of these, and reads like a table of contents. The store, docs/metrics.md, and the checks of alert
rules and boards all read the same rows. A row refuses what Prometheus' conventions refuse (see `check`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from loopwatch.metrics.values import Samples

Facts = TypeVar("Facts")

NAME = re.compile(r"[a-z][a-z0-9_]*")
LABEL_NAME = re.compile(r"[a-z][a-z0-9_]*")
GAUGE_SUFFIXES_TAKEN = ("_count", "_sum", "_bucket", "_total", "_created")
"""Endings that OpenMetrics gives to counters and histograms: a gauge that carries one is refused by promtool."""
UNITS = ("seconds", "bytes", "ratio")


class Kind(enum.Enum):
    """How the samples behave. A state set writes every state, exactly one of them 1; an info is always 1."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"
    STATE_SET = "state set"

    @property
    def text_type(self) -> str:
        """The TYPE of the text format, which knows neither infos nor state sets."""
        return self.value if self in {Kind.COUNTER, Kind.HISTOGRAM} else "gauge"


class Authority(enum.Enum):
    """Whose sample counts where several replicas expose the family; rules and boards follow it."""

    FRESHEST = "freshest"
    LEADER = "leader"
    COUNTER = "counter"
    OWN = "own"

    @property
    def meaning(self) -> str:
        """How a rule reads such a family."""
        return _AUTHORITY_MEANING[self]


_AUTHORITY_MEANING = {
    Authority.FRESHEST: "every replica measures it; the smallest is the truth (`min by`)",
    Authority.LEADER: "the leader's counts; any replica's while none leads",
    Authority.COUNTER: "every replica counts the same events; rates are not added up (`max by (rate(...))`)",
    Authority.OWN: "about the exposing process alone; summed over processes where a sum means something",
}


class Stability(enum.Enum):
    """What a name promises. Stable: neither renamed nor dropped within a major version. Alpha: may change with a word in CHANGELOG.md."""

    STABLE = "stable"
    ALPHA = "alpha"


class Component(enum.Enum):
    """A process that exposes families."""

    CONTROLLER = "controller"
    SIDECAR = "sidecar"


BOTH = (Component.CONTROLLER, Component.SIDECAR)


@dataclass(frozen=True, slots=True)
class Label:
    """A label and what bounds the number of its values."""

    name: str
    bound: str


@dataclass(frozen=True)  # no slots: with them Python 3.11 can't build `Family[Facts](…)`
class Family(Generic[Facts]):
    """One row: `labels` come after the labels of the object; `states` are a state set's, in the order they are written."""

    name: str
    kind: Kind
    help: str
    samples: Callable[[Facts], Samples]
    authority: Authority
    labels: tuple[Label, ...] = ()
    states: tuple[str, ...] = ()
    exposed_by: tuple[Component, ...] = BOTH
    stability: Stability = Stability.STABLE

    def __post_init__(self) -> None:
        problem = check(self)
        if problem:
            raise ValueError(f"metric family {self.name}: {problem}")

    @property
    def unit(self) -> str:
        """`seconds`, `bytes`, `ratio`, or nothing: what the name ends in before any `_total`."""
        stem = self.name.removesuffix("_total")
        return next((unit for unit in UNITS if stem.endswith(f"_{unit}")), "")


@dataclass(frozen=True)  # no slots: with them Python 3.11 can't build `Group[Facts](…)`
class Group(Generic[Facts]):
    """The families that one kind of object carries, and the labels that name such an object (none for the process itself)."""

    name: str
    labels: tuple[Label, ...]
    families: tuple[Family[Facts], ...]

    def __post_init__(self) -> None:
        of_object = [label.name for label in self.labels]
        for family in self.families:
            names = [*of_object, *(label.name for label in family.labels)]
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(f"metric family {family.name}: two of its labels are called {twice[0]!r}")

    def __hash__(self) -> int:
        return hash(self.name)

    def exposed_by(self, component: Component) -> Group[Facts]:
        """The rows that this component exposes, under the same group name."""
        return Group(self.name, self.labels, tuple(family for family in self.families if component in family.exposed_by))


def check(family: Family[Any]) -> str:
    """What is wrong with a row, in words; empty where nothing is."""
    if not NAME.fullmatch(family.name):
        return "a name is lower case letters, digits and underscores"
    if family.kind is Kind.COUNTER and not family.name.endswith("_total"):
        return "a counter's name ends in _total"
    if family.kind is not Kind.COUNTER and family.name.endswith(GAUGE_SUFFIXES_TAKEN):
        return f"only counters and histograms may end in {', '.join(GAUGE_SUFFIXES_TAKEN)}"
    if (family.kind is Kind.STATE_SET) != bool(family.states):
        return "a state set, and nothing else, lists its states"
    if len(set(family.states)) != len(family.states):
        return "a state stands there twice"
    if family.kind is Kind.STATE_SET and len(family.labels) != 1:
        return "a state set has one label of its own, which carries the state"
    if "\n" in family.help or not family.help:
        return "the help text is one line"
    bad = [label.name for label in family.labels if not LABEL_NAME.fullmatch(label.name) or label.name == "le"]
    return f"label {bad[0]!r} is no label name" if bad else ""
