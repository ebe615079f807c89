"""The documents that say what is served: /version, /api, /apis and what lies under them, /readyz and /healthz."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from loopwatch.sandbox.apiserver.served import ResourceType

HEALTH_PATHS: Final = frozenset({"/readyz", "/healthz", "/livez"})
VERSION: Final = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_encode: Final = msgspec.json.Encoder().encode


def document(path: str, served: Iterable[ResourceType]) -> bytes | None:
    """The JSON at a discovery path; None where there is none. `served` leaves out what a fault takes away."""
    types = list(served)
    fixed: dict[str, Callable[[], Any]] = {
        "/version": lambda: VERSION,
        "/api": lambda: {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": lambda: {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(types, name) for name in _groups(types)]},
        "/": lambda: {"paths": ["/api", "/apis", *sorted(HEALTH_PATHS), "/version"]},
    }
    wanted = path.rstrip("/") or "/"
    if wanted in fixed:
        return _encode(fixed[wanted]()) + b"\n"
    for name in _groups(types):
        if wanted == f"/apis/{name}":
            return _encode({"kind": "APIGroup", "apiVersion": "v1", **_group(types, name)}) + b"\n"
    listed = [kind_of for kind_of in types if kind_of.resource.root == wanted]
    return _encode(_resource_list(listed)) + b"\n" if listed else None


def _groups(types: list[ResourceType]) -> list[str]:
    return list(dict.fromkeys(kind_of.resource.group for kind_of in types if kind_of.resource.group))


def _group(types: list[ResourceType], name: str) -> dict[str, Any]:
    versions = dict.fromkeys(kind_of.resource.version for kind_of in types if kind_of.resource.group == name)
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(types: list[ResourceType]) -> dict[str, Any]:
    resources: list[dict[str, Any]] = []
    for kind_of in types:
        named = {"namespaced": kind_of.resource.namespaced, "kind": kind_of.resource.kind}
        shown = {"name": kind_of.resource.plural, "singularName": kind_of.singular, **named, "verbs": list(kind_of.verbs)}
        resources.append(shown | ({"shortNames": list(kind_of.short_names)} if kind_of.short_names else {}))
        if kind_of.status:
            verbs = ["get", "patch", "update"]
            resources.append({"name": f"{kind_of.resource.plural}/status", "singularName": "", **named, "verbs": verbs})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": types[0].resource.api_version, "resources": resources}
