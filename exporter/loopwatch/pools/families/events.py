"""What became of the Events about pools."""

from __future__ import annotations

from typing import Final

import msgspec

from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label

RESULTS: Final = ("ok", "dropped", "forbidden", "error")


class EventsFacts(msgspec.Struct, frozen=True):
    """Counts by result, in the order of RESULTS."""

    counts: tuple[int, ...] = (0,) * len(RESULTS)


EVENTS: Final = Group(
    "events",
    (),
    (
        Family[EventsFacts](
            "loopwatch_events_total",
            Kind.COUNTER,
            "Kubernetes Events about pools by what became of them; dropped: too many waited. None matters to a decision.",
            lambda facts: {(result,): count for result, count in zip(RESULTS, facts.counts, strict=True)},
            Authority.OWN,
            labels=(Label("result", ", ".join(RESULTS)),),
            exposed_by=(Component.CONTROLLER,),
        ),
    ),
)
