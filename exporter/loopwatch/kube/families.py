"""What each reflector exposes of itself: whether its copy is whole, how it came by it, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from loopwatch.kube.reflector import ERROR_KINDS, Reflector
from loopwatch.metrics.family import Authority, Family, Group, Kind, Label
from loopwatch.metrics.store import Store
from loopwatch.metrics.values import Samples, Since


class ReflectorFacts(msgspec.Struct, frozen=True):
    """A reflector's counts at one moment."""

    synced: bool
    objects: int
    lists: int
    watches: int
    errors: tuple[tuple[str, int], ...]
    undecodable: int
    last_contact_at: float | None


def _last_contact_age(facts: ReflectorFacts) -> Samples:
    return None if facts.last_contact_at is None else Since(facts.last_contact_at)


REFLECTOR: Final = Group(
    "reflector",
    (Label("resource", "the resources that this process watches"),),
    (
        Family[ReflectorFacts](
            "loopwatch_reflector_synced",
            Kind.GAUGE,
            "1 once the first complete list of the resource is in.",
            lambda facts: int(facts.synced),
            Authority.OWN,
        ),
        Family[ReflectorFacts](
            "loopwatch_reflector_objects",
            Kind.GAUGE,
            "Objects in this process's copy of the resource, without those that can't be decoded.",
            lambda facts: facts.objects,
            Authority.OWN,
        ),
        Family[ReflectorFacts](
            "loopwatch_reflector_lists_total",
            Kind.COUNTER,
            "Complete lists read.",
            lambda facts: facts.lists,
            Authority.OWN,
        ),
        Family[ReflectorFacts](
            "loopwatch_reflector_watches_total",
            Kind.COUNTER,
            "Watches opened.",
            lambda facts: facts.watches,
            Authority.OWN,
        ),
        Family[ReflectorFacts](
            "loopwatch_reflector_errors_total",
            Kind.COUNTER,
            "Requests and watches that failed, by kind.",
            lambda facts: {(kind,): count for kind, count in facts.errors},
            Authority.OWN,
            labels=(Label("kind", ", ".join(ERROR_KINDS)),),
        ),
        Family[ReflectorFacts](
            "loopwatch_reflector_undecodable_objects",
            Kind.GAUGE,
            "Objects that can't be decoded at present; each costs its own series only.",
            lambda facts: facts.undecodable,
            Authority.OWN,
        ),
        Family[ReflectorFacts](
            "loopwatch_reflector_last_contact_age_seconds",
            Kind.GAUGE,
            "Seconds since the API server last sent anything about the resource, bookmarks included.",
            _last_contact_age,
            Authority.OWN,
        ),
    ),
)


def install(store: Store, reflectors: Iterable[Reflector[Any]]) -> None:  # whatever they hold
    """Have the reflectors' counts read before each scrape."""
    watched = tuple(reflectors)

    def collect() -> None:
        for reflector in watched:
            store.put(REFLECTOR, (reflector.resource.plural,), _facts(reflector))

    store.before_reading(collect)


def _facts(reflector: Reflector[Any]) -> ReflectorFacts:
    stats = reflector.stats
    return ReflectorFacts(
        synced=stats.synced,
        objects=stats.objects,
        lists=stats.lists_total,
        watches=stats.watches_total,
        errors=tuple(stats.errors_total.items()),
        undecodable=stats.undecodable_objects,
        last_contact_at=stats.last_contact_at,
    )
