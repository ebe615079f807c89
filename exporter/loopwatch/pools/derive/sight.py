"""Sight: whether silence may be counted at all.

In sight means that each API that matters (the one of Leases, the one of MachinePools) has answered a read with 200 within the last fifth
of the grace period. Time without sight is not silence: it is our own blindness. So silence is measured on a clock that stands still
meanwhile, and this module is that clock. Pure: it is told when answers came, and asked what the clock reads at a moment.

With the default grace of 50 s the window is 10 s: an API server that hangs at t=100 with its last answer at t=98 stops the clock at
t=108, and the 10 s that it ran on blind are less than the 10 s that a heartbeat may be late anyway.
"""

from __future__ import annotations

from typing import Final

import msgspec

NEVER: Final = float("-inf")
SIGHT_FRACTION: Final = 0.2
"""The share of the grace period for which an answer gives sight (design.md, "Lifecycle")."""


class Sight(msgspec.Struct, frozen=True):
    """The clock's state: it read `banked` at `anchor` and runs until `until`.

    `answers` holds the last answer of each resource (NEVER before the first), in the order of the names.
    """

    window: float
    resources: tuple[str, ...]
    answers: tuple[float, ...]
    banked: float = 0.0
    anchor: float = 0.0
    until: float = NEVER

    def seconds(self, at: float) -> float:
        """What the clock reads at monotonic `at`; it never runs backwards for moments that don't."""
        ran = min(at, self.until) - self.anchor
        return self.banked + ran if ran > 0 else self.banked

    def has(self, at: float) -> bool:
        """True while in sight."""
        return at < self.until

    def lost_at(self, resource: str) -> float:
        """The moment at which this resource's last answer stops to count; NEVER where none came yet."""
        return self.answers[self.resources.index(resource)] + self.window


def begin(grace_seconds: float, resources: tuple[str, ...], at: float) -> Sight:
    """No sight yet: a process starts blind, and its clock at 0."""
    return Sight(window=grace_seconds * SIGHT_FRACTION, resources=resources, answers=(NEVER,) * len(resources), anchor=at)


def answered(sight: Sight, resource: str, at: float) -> tuple[Sight, bool]:
    """The state after a read of `resource` was answered with 200, and whether a gap in sight ended with it.

    The first sight of all is no gap: nothing was in sight before that could have been missed. An answer stamped before the last one
    (two reads may be under way) counts as if it came with it.
    """
    at = max(at, sight.anchor)
    answers = tuple(max(at, last) if name == resource else last for name, last in zip(sight.resources, sight.answers, strict=True))
    until = min(answers) + sight.window
    regained = not sight.has(at) and until > at
    had_sight_before = sight.until != NEVER
    return (
        msgspec.structs.replace(sight, answers=answers, banked=sight.seconds(at), anchor=at, until=max(until, sight.until)),
        regained and had_sight_before,
    )
