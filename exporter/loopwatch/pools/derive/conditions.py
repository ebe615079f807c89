"""Reading and replacing one entry of a MachinePool's conditions list.

The list is atomic in the API (no patchStrategy, no list type: facts of IronCore v0.5.0), so whoever patches it sends all of it: our entry
is replaced, every other is kept as it was read, unknown fields included. Entries are therefore plain dicts here, never structs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RawCondition = Mapping[str, Any]


def find(conditions: Sequence[RawCondition], condition_type: str) -> RawCondition | None:
    """The first entry of that type, or None."""
    return next((entry for entry in conditions if entry.get("type") == condition_type), None)


def replace(conditions: Sequence[RawCondition], entry: RawCondition, now: str) -> list[dict[str, Any]]:
    """The list with `entry` in the place of the first of its type (appended where there is none; later doubles are dropped).

    lastUpdateTime becomes `now` on each write; lastTransitionTime only where the entry is new or its status differs (upstream's
    SetMachinePoolCondition). `now` is RFC 3339 in whole seconds with Z.
    """
    previous = find(conditions, entry["type"])
    moved = previous is None or previous.get("status") != entry["status"] or not previous.get("lastTransitionTime")
    transition = now if moved or previous is None else previous["lastTransitionTime"]
    ours = {**entry, "lastUpdateTime": now, "lastTransitionTime": transition}
    if previous is None:
        return [*(dict(other) for other in conditions), ours]
    kept: list[dict[str, Any]] = []
    for other in conditions:
        if other is previous:
            kept.append(ours)
        elif other.get("type") != entry["type"]:
            kept.append(dict(other))
    return kept
