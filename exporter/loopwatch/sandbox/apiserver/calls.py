"""From an HTTP request to a call: which verb on which resource, and what it asks for.

The paths of the API are a small grammar, and everything after (faults, records, authorization texts) speaks of verbs and resources, as
RBAC does. A path that no API has is a call without a resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from loopwatch.kube.resources import ObjectKey, Resource
from loopwatch.kube.transport import Request
from loopwatch.sandbox.apiserver import statuses
from loopwatch.sandbox.apiserver.served import ResourceType

_VERB_OF_METHOD: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_INT64_MAX: Final = 2**63 - 1


TypesByPath = Mapping[tuple[str, str, str], ResourceType]
"""The served resources by group, version and plural."""


class Identity(NamedTuple):
    """Who calls: the User-Agent and the bearer token, if any, as they came."""

    user_agent: str
    token: str | None = None

    @property
    def client(self) -> str:
        """The User-Agent up to the first slash: what the real server names a field manager by."""
        return self.user_agent.split("/", 1)[0]


class Call(NamedTuple):
    """One request in the words of RBAC; `kind_of` is None where the path names no resource that is served."""

    verb: str
    request: Request
    headers: Mapping[str, str]
    query: Mapping[str, str]
    identity: Identity
    kind_of: ResourceType | None
    key: ObjectKey
    subresource: str

    @property
    def resource_name(self) -> str:
        """The plural; for other paths the path itself."""
        return self.kind_of.resource.plural if self.kind_of else self.request.path

    def flag(self, name: str) -> bool:
        """A boolean parameter as the API reads it: anything but 0 and false is true."""
        return name in self.query and self.query[name].lower() not in {"0", "false"}

    def number(self, name: str) -> int:
        """An integer parameter, 0 where it is absent; a refusal (400) where it is none."""
        text = self.query.get(name, "")
        if not text:
            return 0
        try:
            number = int(text)
        except ValueError:
            raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
        if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
            raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
        return number


def parse(request: Request, identity: Identity, types: TypesByPath) -> Call:
    """The call that a request makes; never fails: what it can't place has no resource."""
    query: dict[str, str] = {}
    for name, value in request.query:
        query.setdefault(name, value)
    kind_of, key, subresource = _place(request.path, types)
    call = Call(
        verb=_VERB_OF_METHOD.get(request.method, request.method.lower()),
        request=request,
        headers={name.lower(): value for name, value in request.headers.items()},
        query=query,
        identity=identity,
        kind_of=kind_of,
        key=key,
        subresource=subresource,
    )
    if kind_of and not key.name and call.verb == "get":
        return call._replace(verb="watch" if call.flag("watch") else "list")
    return call


def _place(path: str, types: TypesByPath) -> tuple[ResourceType | None, ObjectKey, str]:
    nowhere = (None, ObjectKey("", ""), "")
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" and len(parts) > 1 else _group(parts)
    if not rest:
        return nowhere
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in {"status", "finalize"}):
        namespace, rest = rest[1], rest[2:]
    kind_of = types.get((group, version, rest[0]))
    name, subresource = (rest[1] if len(rest) > 1 else ""), "/".join(rest[2:])
    if kind_of is None or not _scope_fits(kind_of.resource, namespace, name):
        return nowhere
    return kind_of, ObjectKey(namespace, name), subresource


def _group(parts: list[str]) -> tuple[str, str, list[str]]:
    return (parts[1], parts[2], parts[3:]) if parts[0] == "apis" and len(parts) > 3 else ("", "", [])


def _scope_fits(resource: Resource, namespace: str, name: str) -> bool:
    """A namespaced object has no path without its namespace, a cluster-scoped one none with it."""
    return (resource.namespaced or not namespace) and (bool(namespace) or not resource.namespaced or not name)
