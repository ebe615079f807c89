"""The control door of the sandbox: faults, compaction, foreign objects and the record of requests, over HTTP.

    GET    /_sandbox/faults       the faults in force, with what is left of their counts
    POST   /_sandbox/faults       put one in force: {"verb": "patch", "resource": "leases", "effect": {"type": "hang"}}
    DELETE /_sandbox/faults       end all; with ?number=N that one
    POST   /_sandbox/compact      forget the history: older watches and continue tokens answer 410; ?revision=N forgets up to N
    POST   /_sandbox/objects      store an object past every check: {"resource": "machinepools", "object": {...}}
    GET    /_sandbox/requests     how many requests each client made of each verb and resource; DELETE forgets them

It is the sandbox's alone: no real API server has these paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from loopwatch.kube.resources import Resource
from loopwatch.kube.transport import Request
from loopwatch.sandbox.apiserver import Answer, ApiServer
from loopwatch.sandbox.apiserver.served import served_types
from loopwatch.sandbox.faults import Fault

PREFIX: Final = "/_sandbox/"


class _ForeignObject(msgspec.Struct):
    resource: str
    object: dict[str, Any]


def answer(api: ApiServer, request: Request) -> Answer:
    """The answer of the door: JSON, 400 with the reason for a body that it can't take, 404 for another path."""
    actions: Mapping[tuple[str, str], Callable[[ApiServer, Request], Any]] = {
        ("GET", "faults"): _list_faults,
        ("POST", "faults"): _add_fault,
        ("DELETE", "faults"): _remove_faults,
        ("POST", "compact"): _compact,
        ("POST", "objects"): _store_object,
        ("GET", "requests"): _count_requests,
        ("DELETE", "requests"): _forget_requests,
    }
    action = actions.get((request.method, request.path.removeprefix(PREFIX)))
    if action is None:
        known = ", ".join(f"{method} {PREFIX}{path}" for method, path in actions)
        return _json(404, {"error": f"{request.method} {request.path} is no control; there are {known}"})
    try:
        return _json(200, action(api, request))
    except (msgspec.DecodeError, ValueError) as error:
        return _json(400, {"error": str(error)})


def _list_faults(api: ApiServer, _request: Request) -> list[dict[str, Any]]:
    return [{"number": rule.number, "fault": rule.fault, "left": rule.left, "hits": rule.hits} for rule in api.faults.rules()]


def _add_fault(api: ApiServer, request: Request) -> dict[str, int]:
    return {"number": api.faults.add(msgspec.json.decode(request.body or b"", type=Fault))}


def _remove_faults(api: ApiServer, request: Request) -> dict[str, int]:
    before = len(api.faults.rules())
    number = dict(request.query).get("number")
    if number is None:
        api.faults.clear()
    elif not api.faults.remove(int(number)):
        raise ValueError(f"there is no fault {number}; GET {PREFIX}faults lists them")
    return {"removed": before - len(api.faults.rules())}


def _compact(api: ApiServer, request: Request) -> dict[str, int]:
    revision = dict(request.query).get("revision")
    api.compact(None if revision is None else int(revision))
    return {"revision": api.revision}


def _store_object(api: ApiServer, request: Request) -> dict[str, int]:
    asked = msgspec.json.decode(request.body or b"", type=_ForeignObject)
    api.inject_object(_resource(asked.resource), asked.object)
    return {"revision": api.revision}


def _count_requests(api: ApiServer, _request: Request) -> list[dict[str, Any]]:
    counts = sorted(api.requests.counts().items())
    return [{"client": client, "verb": verb, "resource": resource, "count": count} for (client, verb, resource), count in counts]


def _forget_requests(api: ApiServer, _request: Request) -> dict[str, int]:
    api.requests.clear()
    return {}


def _resource(plural: str) -> Resource:
    known = {kind_of.resource.plural: kind_of.resource for kind_of in served_types()}
    if plural not in known:
        raise ValueError(f"resource {plural!r} is not served; the sandbox has {', '.join(known)}")
    return known[plural]


def _json(status: int, body: object) -> Answer:
    return Answer(status, {"Content-Type": "application/json"}, msgspec.json.encode(body) + b"\n")
