"""From a call to its answer: the API server without time and faults.

Everything here answers at once; only a watch's body goes on. Tokens, faults, records and gzip are the business of `api.ApiServer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from loopwatch.clock import Clock
from loopwatch.kube.resources import Resource
from loopwatch.sandbox.apiserver import discovery, listing, negotiation, selectors, statuses, watching
from loopwatch.sandbox.apiserver.calls import Call
from loopwatch.sandbox.apiserver.served import ResourceType, served_types
from loopwatch.sandbox.apiserver.store import Collection, Store, path_of
from loopwatch.sandbox.apiserver.writes import Writes, Written
from loopwatch.sandbox.faults import FaultTable, StreamFaults, Traits

_WATCH_METHODS: Final = frozenset({"GET", "HEAD"})


class Answer(NamedTuple):
    """An answer: a whole body, or a stream that goes on."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    stream: watching.Watch | None = None
    warnings: tuple[str, ...] = ()
    """Values of Warning headers, which may come more than once."""


class Router:
    """Answers calls from a store."""

    def __init__(self, clock: Clock, faults: FaultTable, store: Store, *, bookmark_seconds: float, history_limit: int) -> None:
        self.store = store
        self.types: dict[Resource, ResourceType] = {kind_of.resource: kind_of for kind_of in served_types()}
        for resource, kind_of in self.types.items():
            store.collections[resource] = Collection(resource, custom=kind_of.custom, history_limit=history_limit)
        self.writes = Writes(store, clock)
        self._clock = clock
        self._faults = faults
        self._bookmark_seconds = bookmark_seconds

    def answer(self, call: Call) -> Answer:
        """The answer to a call; Refusal for every Status."""
        if call.kind_of is None:
            return self._other(call)
        kind_of = call.kind_of
        if call.subresource and not (kind_of.status and call.subresource == "status"):
            raise statuses.not_found(kind_of.resource, call.key.name) if kind_of.custom else statuses.not_served()
        if call.verb == "delete" and call.subresource:
            raise statuses.method_not_allowed()
        if call.verb != "create" or not kind_of.custom:
            negotiation.check_accept(kind_of, call.headers)
        verbs: dict[str, Callable[[Call, ResourceType], Answer]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._on_object(self.writes.update),
            "patch": self._on_object(self.writes.patch),
            "delete": self._on_object(self.writes.delete),
        }
        if call.verb not in verbs:
            raise statuses.method_not_allowed()
        return verbs[call.verb](call, kind_of)

    def _other(self, call: Call) -> Answer:
        path = call.request.path
        if path in discovery.HEALTH_PATHS:
            return Answer(200, {"Content-Type": "text/plain; charset=utf-8"}, b"ok")
        document = discovery.document(path, (kind_of for kind_of in self.types.values() if self._faults.served(kind_of.resource.plural)))
        if document is None:
            return page_not_found()
        if call.request.method not in _WATCH_METHODS:
            raise statuses.method_not_allowed()
        return Answer(200, {"Content-Type": statuses.JSON_TYPE}, document)

    def _get(self, call: Call, kind_of: ResourceType) -> Answer:
        version = call.query.get("resourceVersion", "")
        revision = self.store.revision
        if version:
            if not (version.isascii() and version.isdigit()):
                raise statuses.internal(
                    f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
                )
            frozen = self._faults.frozen(traits_of(call))
            revision = revision if frozen is None else frozen
            if int(version) > revision:
                raise statuses.version_too_large(int(version), revision)
        collection = self.store.collections[kind_of.resource]
        stored = collection.objects.get(path_of(call.key))
        if revision != self.store.revision:
            stored = collection.at_path(max(revision, collection.horizon), path_of(call.key))
        if stored is None:
            raise statuses.not_found(kind_of.resource, call.key.name)
        return Answer(200, {"Content-Type": statuses.JSON_TYPE}, collection.whole(stored) + b"\n")

    def _list(self, call: Call, kind_of: ResourceType) -> Answer:
        frozen = self._frozen(call, kind_of)
        return Answer(200, {"Content-Type": statuses.JSON_TYPE}, listing.list_body(self.store, kind_of, call, frozen))

    def _watch(self, call: Call, kind_of: ResourceType) -> Answer:
        options = listing.read_options(call)
        selection = selectors.select(kind_of, call.key.namespace, call.query.get("labelSelector", ""), call.query.get("fieldSelector", ""))
        bookmarks = call.flag("allowWatchBookmarks")
        start = watching.begin(self.store, kind_of, selection, options, bookmarks=bookmarks, frozen=self._frozen(call, kind_of))
        asked = call.number("timeoutSeconds")
        timing = watching.Timing(
            timeout_seconds=float(asked) if asked > 0 else watching.MIN_TIMEOUT_SECONDS * (1 + self._clock.random()),
            bookmark_seconds=self._bookmark_seconds if bookmarks else None,
        )
        faults = StreamFaults(self._faults, traits_of(call))
        watch = watching.Watch(self.store, kind_of, selection, start, self._clock, timing, faults)
        return Answer(200, {"Content-Type": statuses.JSON_TYPE}, stream=watch)

    def _frozen(self, call: Call, kind_of: ResourceType) -> int | None:
        """Where cached reads stand still; never for a consistent read, and never before what can still be rebuilt."""
        if not call.query.get("resourceVersion") or call.query.get("continue"):
            return None
        frozen = self._faults.frozen(traits_of(call))
        return None if frozen is None else max(frozen, self.store.collections[kind_of.resource].horizon)

    def _create(self, call: Call, kind_of: ResourceType) -> Answer:
        if kind_of.resource.namespaced and not call.key.namespace:
            if kind_of.custom:
                return page_not_found()
            raise statuses.method_not_allowed()
        if call.key.name:
            raise statuses.method_not_allowed()
        return _written(self.writes.create(call, kind_of))

    def _on_object(self, write: Callable[[Call, ResourceType], Written]) -> Callable[[Call, ResourceType], Answer]:
        def perform(call: Call, kind_of: ResourceType) -> Answer:
            if call.key.name:
                return _written(write(call, kind_of))
            if kind_of.custom and call.verb != "delete":
                raise statuses.bad_request("name must be provided")
            raise statuses.method_not_allowed()

        return perform


def traits_of(call: Call) -> Traits:
    """What faults look at."""
    return Traits(call.verb, call.resource_name, call.subresource, call.key.namespace, call.key.name, call.identity.client)


def page_not_found() -> Answer:
    """404 for a path that no API has."""
    return Answer(404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n")


def _written(written: Written) -> Answer:
    warnings = tuple(f'299 - "unknown field \\"{field}\\""' for field in written.unknown)
    return Answer(written.code, {"Content-Type": statuses.JSON_TYPE}, written.body, warnings=warnings)
