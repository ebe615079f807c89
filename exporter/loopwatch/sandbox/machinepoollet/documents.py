"""What the machinepoollet puts into the API, as pure functions: the Ready condition, the status around it, and merge patches.

Names, messages and rules are upstream's, spelled out here once more on purpose: a stand-in that shared them with loopwatch could not
contradict it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Document = dict[str, Any]

READY = "Ready"
CLASS_COUNT_PREFIX = "class/machine."
_CONDITION_FIELDS = ("type", "status", "reason", "message", "observedGeneration", "lastUpdateTime", "lastTransitionTime")
_DIFFERENCE_FIELDS = ("status", "reason", "message", "observedGeneration")


def micro_time(moment: datetime.datetime) -> str:
    """A MicroTime: six digits, Z. `moment` is aware."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def whole_seconds(moment: datetime.datetime) -> str:
    """A metav1.Time: no fraction, Z. `moment` is aware."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ready_condition(generation: int, probe_error: str) -> Document:
    """The Ready condition that a probe's outcome asks for; `probe_error` is empty after a success."""
    condition: Document = {"type": READY, "observedGeneration": generation}
    if probe_error:
        return condition | {"status": "False", "reason": "RuntimeUnreachable", "message": probe_error}
    return condition | {"status": "True", "reason": "HeartbeatReceived", "message": "machine runtime status probe succeeded"}


def conditions_differ(existing: Mapping[str, Any] | None, desired: Mapping[str, Any]) -> bool:
    """True where the existing condition is worth a write: times alone are not."""
    if existing is None:
        return True
    return any((existing.get(field) or None) != (desired.get(field) or None) for field in _DIFFERENCE_FIELDS)


def with_condition(conditions: Sequence[Mapping[str, Any]], desired: Document, moment: datetime.datetime) -> list[Document]:
    """The whole list with `desired` in place of the first of its type, or added at the end.

    lastUpdateTime is always new; lastTransitionTime only where the status changes or nothing was there. Others are kept, as far as
    upstream's type knows their fields.
    """
    now = whole_seconds(moment)
    kept = [_typed(condition) for condition in conditions]
    place = next((index for index, condition in enumerate(kept) if condition["type"] == desired["type"]), None)
    if place is None:
        return [*kept, _typed(desired | {"lastUpdateTime": now, "lastTransitionTime": now})]
    same_status = kept[place]["status"] == desired["status"]
    since = kept[place]["lastTransitionTime"] if same_status else now
    kept[place] = _typed(desired | {"lastUpdateTime": now, "lastTransitionTime": since})
    return kept


def capacity(machine_classes: Iterable[str], quantities: Mapping[str, int]) -> Document:
    """`status.capacity` for those classes of the API that the runtime has."""
    return {f"{CLASS_COUNT_PREFIX}{name}": str(quantities[name]) for name in sorted(machine_classes) if name in quantities}


def allocatable(capacities: Mapping[str, str], used_classes: Iterable[str]) -> Document:
    """`status.allocatable` as v0.5.0 counts it: any number of machines of a class takes one away (ironcore#1528)."""
    used = {f"{CLASS_COUNT_PREFIX}{name}" for name in used_classes}
    return {key: str(max(int(count) - (key in used), 0)) for key, count in capacities.items()}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Document:
    """The JSON merge patch that turns `old` into `new`; lists are replaced whole, what is gone becomes null."""
    patch: Document = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            below = difference(before, value)
            if below:
                patch[key] = below
        elif key not in old or before != value:
            patch[key] = value
    return patch


def _typed(condition: Mapping[str, Any]) -> Document:
    typed = {field: condition.get(field) for field in _CONDITION_FIELDS}
    for field in ("type", "status", "reason", "message"):
        typed[field] = typed[field] or ""
    if not typed["observedGeneration"]:
        del typed["observedGeneration"]
    return typed
