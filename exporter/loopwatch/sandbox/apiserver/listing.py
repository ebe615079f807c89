"""Lists: pages of a consistent snapshot, continue tokens, and what a resourceVersion asks for.

A page after the first shows the collection as it was at the first; when the events since then are gone the answer is 410 with a token
for an inconsistent rest, as in a cluster.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.sandbox.apiserver import selectors, statuses
from loopwatch.sandbox.apiserver.calls import Call
from loopwatch.sandbox.apiserver.served import ResourceType
from loopwatch.sandbox.apiserver.store import Collection, Store, Stored, path_of

_INCONSISTENT: Final = -1
_FORMAT: Final = "meta.k8s.io/v1"
_MATCHES: Final = ("Exact", "NotOlderThan")
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class ListOptions(NamedTuple):
    """The parameters of a list or watch that the API defaults and checks together."""

    limit: int
    resume: str
    """The continue token."""
    version: str
    match: str
    initial_events: bool | None


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def read_options(call: Call) -> ListOptions:
    """The parameters, defaulted; refusals for numbers that are none (400) and for parameters that exclude each other (422)."""
    call.number("timeoutSeconds")
    query = call.query
    initial = call.flag("sendInitialEvents") if "sendInitialEvents" in query else None
    options = ListOptions(
        call.number("limit"), query.get("continue", ""), query.get("resourceVersion", ""), query.get("resourceVersionMatch", ""), initial
    )
    watch = call.verb == "watch"
    if watch and initial is None and not options.match and options.version in {"", "0"}:
        # A watch from nowhere is a list and a watch in one: the API defaults it so since 1.34.
        options = options._replace(initial_events=True, match="NotOlderThan")
    causes = _watch_faults(options) if watch else _list_faults(options)
    if causes:
        raise statuses.invalid_list_options(causes)
    return options


def list_body(store: Store, kind_of: ResourceType, call: Call, frozen: int | None) -> bytes:
    """The answer to a list. `frozen` is the revision at which reads from the cache stand still, None when they don't."""
    options = read_options(call)
    collection = store.collections[kind_of.resource]
    selection = selectors.select(kind_of, call.key.namespace, call.query.get("labelSelector", ""), call.query.get("fieldSelector", ""))
    prefix = f"/{call.key.namespace}/" if call.key.namespace else "/"
    revision, start, limit = _position(store, collection, options, prefix, frozen)
    found = collection.at(revision, prefix, start)
    selected = found if selection.everything else [stored for stored in found if selection.matches(stored)]
    page = selected[:limit] if limit else selected
    # A token is given while any object follows, selected or not, and the rest is counted only where no selector narrows it.
    resume = _make_token(revision, page[-1], prefix) if limit and len(page) == limit and page[-1] is not found[-1] else ""
    rest = len(selected) - len(page) if resume and selection.everything else None
    return _assembled(kind_of, [stored.item for stored in page], revision, resume, rest)


def _assembled(kind_of: ResourceType, items: list[bytes], revision: int, resume: str, remaining: int | None) -> bytes:
    meta: dict[str, Any] = {"resourceVersion": str(revision)}
    if resume or kind_of.custom:
        meta["continue"] = resume
    if remaining is not None:
        meta["remainingItemCount"] = remaining
    head = _encode({"kind": kind_of.list_kind, "apiVersion": kind_of.resource.api_version, "metadata": meta})
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}\n"


def _position(store: Store, collection: Collection, options: ListOptions, prefix: str, frozen: int | None) -> tuple[int, str, int]:
    """The revision to list at, the path to start from and the limit that holds."""
    if options.resume:
        revision, start = _read_token(store, collection, options, prefix)
        return revision, start, max(options.limit, 0)
    limit = max(options.limit, 0)
    if not options.version:
        store.progress = store.revision
        return store.revision, "", limit
    cached = store.revision if frozen is None else frozen
    if options.version == "0":
        return cached, "", 0  # the cache answers, and it has no pages
    asked = parse_version(options.version)
    if options.match == "Exact" or (not options.match and limit):
        return _exact(store, collection, asked), "", limit
    if asked > cached:
        raise statuses.version_too_large(asked, cached)
    return cached, "", limit if options.match else 0


def _exact(store: Store, collection: Collection, revision: int) -> int:
    if revision > store.revision:
        raise statuses.version_too_large(revision, store.revision)
    if revision < collection.horizon:
        raise statuses.expired("The resourceVersion for the provided list is too old.")
    return revision


def parse_version(text: str) -> int:
    """A resourceVersion of a list as a revision; a refusal (400) where it is none."""
    if text.isascii() and text.isdigit():
        return int(text)
    told = f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
    raise statuses.bad_request(told)


def _make_token(revision: int, last: Stored, prefix: str) -> str:
    start = "/" + path_of(last.key).removeprefix(prefix) + "\0"
    return _encoded(_Token(_FORMAT, revision, start))


def _encoded(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read_token(store: Store, collection: Collection, options: ListOptions, prefix: str) -> tuple[int, str]:
    token = _decoded(options.resume)
    if options.version not in {"", "0"}:
        raise statuses.bad_request("specifying resource version is not allowed when using continue")
    start = prefix + token.start.removeprefix("/")
    if token.rv == _INCONSISTENT:
        return store.revision, start
    if token.rv < collection.horizon:
        raise statuses.continue_expired(_encoded(_Token(_FORMAT, _INCONSISTENT, token.start)))
    if token.rv > store.revision:
        raise statuses.version_too_large(token.rv, store.revision)
    return token.rv, start


def _decoded(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise statuses.bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if token.v != _FORMAT or not token.start.startswith("/") or token.rv == 0:
        raise statuses.bad_request("invalid continue token: continue key is not valid: it names no version, start or revision")
    return token


def _list_faults(options: ListOptions) -> list[tuple[str, str]]:
    causes: list[tuple[str, str]] = []
    if options.match:
        causes += _match_faults(options)
    if options.initial_events is not None:
        causes.append(("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"))
    return causes


def _match_faults(options: ListOptions) -> list[tuple[str, str]]:
    field = "resourceVersionMatch"
    causes = [] if options.version else [(field, "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")]
    if options.resume:
        causes.append((field, "Forbidden: resourceVersionMatch is forbidden when continue is provided"))
    if options.match not in _MATCHES:
        causes.append((field, f'Unsupported value: "{options.match}": supported values: "Exact", "NotOlderThan", ""'))
    if options.match == "Exact" and options.version == "0":
        causes.append((field, 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return causes


def _watch_faults(options: ListOptions) -> list[tuple[str, str]]:
    field = "resourceVersionMatch"
    if options.initial_events is None:
        return (
            [(field, "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")]
            if options.match
            else []
        )
    if options.match != "NotOlderThan":
        return [(field, "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")]
    if options.resume:
        return [(field, "Forbidden: resourceVersionMatch is forbidden when continue is provided")]
    return []
