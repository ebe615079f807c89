"""Keeps every sample of a process, and is the one place to ask for any of them.

Fixed values are rendered to bytes when their object changes, and only then; clocked values become numbers at the scrape. Each family
keeps its joined bytes until one of its objects changes, so a scrape of an idle fleet joins one piece a family. `value` is what the
lifecycle decides by, and by nothing else. It refuses NaN: what is not known is absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from loopwatch.metrics import text
from loopwatch.metrics.family import Family, Group
from loopwatch.metrics.values import Clocked, CountOverdue, HistogramValue, Moment, Overdue, Samples, Since, Until, Value

Facts = TypeVar("Facts")
Key = tuple[str, ...]

_CLOCKED = (Since, Overdue, Until, CountOverdue)
_NOTHING = object()


class Store:
    """The samples of one process. Not thread-safe: it lives on the event loop."""

    def __init__(self, *groups: Group[Any]) -> None:
        self._groups = {group.name: tuple(_Column(family, group) for family in group.families) for group in groups}
        if len(self._groups) != len(groups):
            raise ValueError("two groups have one name")
        self._columns = {column.family.name: column for columns in self._groups.values() for column in columns}
        if len(self._columns) != sum(len(columns) for columns in self._groups.values()):
            raise ValueError("two rows of the tables declare one family name")
        self._facts: dict[str, dict[Key, Any]] = {group.name: {} for group in groups}
        self._sources: list[Callable[[], None]] = []

    def put(self, group: Group[Facts], key: Key, facts: Facts) -> None:
        """Replace all samples of one object by what its group's rows make of `facts`: all of them, or none where a row raises."""
        if len(key) != len(group.labels):
            raise ValueError(f"{group.name} objects are named by {len(group.labels)} labels, got {key!r}")
        columns = self._groups[group.name]
        samples = [column.family.samples(facts) for column in columns]
        self._facts[group.name][key] = facts
        for column, made in zip(columns, samples, strict=True):
            column.put(key, made)

    def drop(self, group: Group[Any], key: Key) -> None:
        """Forget an object: its series vanish with it."""
        if self._facts[group.name].pop(key, _NOTHING) is not _NOTHING:
            for column in self._groups[group.name]:
                column.put(key, None)

    def facts(self, group: Group[Facts]) -> Mapping[Key, Facts]:
        """The facts last put, by object: what pages are made of."""
        return self._facts[group.name]

    def before_reading(self, source: Callable[[], None]) -> None:
        """Have `source` called before each scrape, to put facts that nobody announces (this process's memory, say)."""
        self._sources.append(source)

    def value(self, family: str, labels: Mapping[str, str], now: Moment) -> float | None:
        """The number of one series at `now`, exactly as a scrape at that moment shows it; None where there is no such series.

        KeyError for a family that no table declares; ValueError for a histogram, which has no one number.
        """
        return self._columns[family].number(labels, now)

    def refresh(self) -> None:
        """Call the sources."""
        for source in self._sources:
            source()

    def render(self, now: Moment) -> bytes:
        """The whole page in text format 0.0.4."""
        self.refresh()
        return b"".join(piece for column in self._columns.values() for piece in column.pieces(now))


class _Column:
    """One family's samples, by object."""

    def __init__(self, family: Family[Any], group: Group[Any]) -> None:
        self.family = family
        self._object_labels = tuple(label.name for label in group.labels)
        self._own_labels = tuple(label.name for label in family.labels)
        self._header = text.header(family.name, family.help, family.kind.text_type)
        self._samples: dict[Key, Samples] = {}
        self._fixed: dict[Key, bytes] = {}
        self._clocked: dict[Key, tuple[tuple[bytes, Clocked], ...]] = {}
        self._joined: bytes | None = None

    def put(self, key: Key, samples: Samples) -> None:
        before = self._samples.get(key)
        if before == samples:
            return
        if isinstance(samples, _CLOCKED) and isinstance(before, _CLOCKED) and not _is_nan(samples) and key in self._clocked:
            # What each heartbeat does to a pool's ages: the series stays, its moment moves.
            self._samples[key] = samples
            self._clocked[key] = ((self._clocked[key][0][0], samples),)
            return
        fixed: list[bytes] = []
        clocked: list[tuple[bytes, Clocked]] = []
        for own, value in self._values(key, samples):
            if isinstance(value, _CLOCKED):
                clocked.append((self._series(self.family.name, key, own), value))
            elif isinstance(value, HistogramValue):
                fixed.extend(self._histogram(key, own, value))
            else:
                fixed.append(self._series(self.family.name, key, own) + text.number(value).encode() + b"\n")
        _keep(self._samples, key, samples)
        _keep(self._clocked, key, tuple(clocked))
        rendered = b"".join(fixed)
        if self._fixed.get(key, b"") != rendered:
            _keep(self._fixed, key, rendered)
            self._joined = None

    def number(self, labels: Mapping[str, str], now: Moment) -> float | None:
        try:
            key = tuple(labels[name] for name in self._object_labels)
            own = tuple(labels[name] for name in self._own_labels)
        except KeyError as missing:
            raise ValueError(f"{self.family.name} has the label {missing}, which was not given") from None
        for labelled, value in self._values(key, self._samples.get(key)):
            if labelled == own:
                if isinstance(value, HistogramValue):
                    raise ValueError(f"{self.family.name} is a histogram: it has no one number")
                return value.number(now) if isinstance(value, _CLOCKED) else text.as_float(value)
        return None

    def pieces(self, now: Moment) -> Iterator[bytes]:
        if self._joined is None:
            self._joined = b"".join(self._fixed.values())
        if not self._joined and not self._clocked:
            return
        yield self._header
        yield self._joined
        number = text.number
        for lines in self._clocked.values():
            for series, value in lines:
                yield series + number(value.number(now)).encode() + b"\n"

    def _values(self, key: Key, samples: Samples) -> Iterator[tuple[Key, Value]]:
        """The series of one object that can be shown: what is NaN, no state of the set, or has no UTF-8 is absent."""
        for own, value in self._listed(samples):
            if not _is_nan(value) and text.encodable((*key, *own)):
                yield own, value

    def _listed(self, samples: Samples) -> Iterable[tuple[Key, Value]]:
        if samples is None:
            return ()
        if isinstance(samples, str):
            states = self.family.states
            return [((state,), int(state == samples)) for state in states] if samples in states else ()
        if isinstance(samples, Mapping):
            return samples.items()
        return (((), samples),)

    def _series(self, name: str, key: Key, own: Key, *more: tuple[str, str]) -> bytes:
        return text.series(name, (*zip(self._object_labels, key, strict=True), *zip(self._own_labels, own, strict=True), *more))

    def _histogram(self, key: Key, own: Key, value: HistogramValue) -> Iterator[bytes]:
        name, below = self.family.name, 0
        for bound, count in zip((*value.bounds, math.inf), value.counts, strict=True):
            below += count
            yield self._series(f"{name}_bucket", key, own, ("le", text.number(bound))) + b"%d\n" % below
        yield self._series(f"{name}_sum", key, own) + text.number(value.sum).encode() + b"\n"
        yield self._series(f"{name}_count", key, own) + b"%d\n" % below


def _is_nan(value: Value) -> bool:
    number = value.at if isinstance(value, _CLOCKED) else value.sum if isinstance(value, HistogramValue) else value
    return isinstance(number, float) and math.isnan(number)


def _keep(kept: dict[Key, Any], key: Key, thing: Any) -> None:  # noqa: ANN401 - samples, bytes or pairs; empty ones are not kept
    if thing is None or thing in (b"", ()):
        kept.pop(key, None)
    else:
        kept[key] = thing
