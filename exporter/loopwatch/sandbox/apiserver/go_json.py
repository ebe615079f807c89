"""Reads the fields of a built-in type as Go's JSON decoder does, with its error texts.

A Lease, a Namespace and the metadata of every object are Go structs in the real server: a wrong type is refused while decoding, in
the decoder's words, and a field that the struct lacks is dropped with a warning. As in Go, a time that can't be parsed ends the
decoding at once, while the first wrong type is remembered and told at the end.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.sandbox.apiserver import go_time
from loopwatch.sandbox.apiserver.jsons import Json

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_encode: Final = msgspec.json.Encoder().encode


class GoDecodeError(ValueError):
    """A document that Go's decoder refuses, with its words."""


class Struct(NamedTuple):
    """A Go struct: its name as errors say it (`LeaseSpec`), and its fields by JSON name."""

    name: str
    fields: Mapping[str, FieldType]


FieldType = str | Struct
"""`string`, `int32`, `int64`, `micro-time`, `time`, `string-map`, `string-list`, `any`, or a Struct."""

OBJECT_META: Final = Struct(
    "ObjectMeta",
    {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "selfLink": "string",
        "uid": "string",
        "resourceVersion": "string",
        "generation": "int64",
        "creationTimestamp": "time",
        "deletionTimestamp": "time",
        "deletionGracePeriodSeconds": "int64",
        "labels": "string-map",
        "annotations": "string-map",
        "ownerReferences": "any",
        "finalizers": "string-list",
        "managedFields": "any",
    },
)
LEASE: Final = Struct(
    "Lease",
    {
        "metadata": OBJECT_META,
        "spec": Struct(
            "LeaseSpec",
            {
                "holderIdentity": "string",
                "leaseDurationSeconds": "int32",
                "acquireTime": "micro-time",
                "renewTime": "micro-time",
                "leaseTransitions": "int32",
                "strategy": "string",
                "preferredHolder": "string",
            },
        ),
    },
)
NAMESPACE: Final = Struct(
    "Namespace",
    {
        "metadata": OBJECT_META,
        "spec": Struct("NamespaceSpec", {"finalizers": "string-list"}),
        "status": Struct("NamespaceStatus", {"phase": "string", "conditions": "any"}),
    },
)
EVENT: Final = Struct(
    "Event",
    {
        "metadata": OBJECT_META,
        "involvedObject": Struct(
            "ObjectReference",
            dict.fromkeys(("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"), "string"),
        ),
        "reason": "string",
        "message": "string",
        "source": Struct("EventSource", {"component": "string", "host": "string"}),
        "firstTimestamp": "time",
        "lastTimestamp": "time",
        "count": "int32",
        "type": "string",
        "eventTime": "micro-time",
        "series": Struct("EventSeries", {"count": "int32", "lastObservedTime": "micro-time"}),
        "action": "string",
        "related": "any",
        "reportingComponent": "string",
        "reportingInstance": "string",
    },
)


class GoDecoder:
    """One decoding: collects the names of unknown fields and the first wrong type."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._first: str = ""

    def decode(self, document: Json, struct: Struct, *, within: str = "") -> dict[str, Any]:
        """The fields of `struct` that `document` sets; `within` prefixes the names of unknown fields. GoDecodeError as in Go."""
        if not isinstance(document, dict):
            raise GoDecodeError(f"json: cannot unmarshal {go_kind(document)} into Go value of type v1.{struct.name}")
        decoded = self._struct(document, struct, (), within)
        if self._first:
            raise GoDecodeError(self._first)
        return decoded

    def _struct(self, document: dict[str, Any], struct: Struct, path: tuple[str, ...], within: str) -> dict[str, Any]:
        decoded: dict[str, Any] = {}
        for name, value in document.items():
            field = struct.fields.get(name)
            if field is None:
                self.unknown.append(".".join((*([within] if within else []), *path, name)))
            elif value is not None:
                self._field(decoded, name, value, field, (struct.name, *path, name), within)
        return decoded

    def _field(self, decoded: dict[str, Any], name: str, value: Json, field: FieldType, path: tuple[str, ...], within: str) -> None:
        if isinstance(field, Struct):
            if isinstance(value, dict):
                decoded[name] = self._struct(value, field, path[1:], within)
            else:
                self._wrong(go_kind(value), path, f"v1.{field.name}")
            return
        result = _SCALARS[field](value)
        if isinstance(result, _Wrong):
            self._wrong(result.kind, path, result.wanted)
        else:
            decoded[name] = result

    def _wrong(self, kind: str, path: tuple[str, ...], wanted: str) -> None:
        self._first = self._first or f"json: cannot unmarshal {kind} into Go struct field {'.'.join(path)} of type {wanted}"


class _Wrong(NamedTuple):
    kind: str
    wanted: str


Reader = Callable[[Json], "Json | _Wrong"]
"""Reads one JSON value into a Go field; a time that can't be parsed is raised at once."""


def go_kind(value: Json) -> str:
    """What Go's decoder calls a JSON value."""
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _string(value: Json) -> Json | _Wrong:
    return value if isinstance(value, str) else _Wrong(go_kind(value), "string")


def _integer(most: int, wanted: str) -> Reader:
    def read(value: Json) -> Json | _Wrong:
        if isinstance(value, int) and not isinstance(value, bool) and -most - 1 <= value <= most:
            return value
        kind = go_kind(value)
        return _Wrong(f"number {_encode(value).decode()}" if kind == "number" else kind, wanted)

    return read


def _time(parse: Callable[[str], datetime.datetime], render: Callable[[datetime.datetime], str]) -> Reader:
    def read(value: Json) -> Json | _Wrong:
        if not isinstance(value, str):
            return _Wrong(go_kind(value), "string")
        try:
            moment = parse(value)
        except go_time.GoTimeError as error:
            raise GoDecodeError(str(error)) from None
        return None if moment == go_time.ZERO else render(moment)

    return read


def _string_map(value: Json) -> Json | _Wrong:
    if not isinstance(value, dict):
        return _Wrong(go_kind(value), "map[string]string")
    wrong = next((item for item in value.values() if item is not None and not isinstance(item, str)), None)
    return {key: item or "" for key, item in value.items()} if wrong is None else _Wrong(go_kind(wrong), "string")


def _string_list(value: Json) -> Json | _Wrong:
    if not isinstance(value, list):
        return _Wrong(go_kind(value), "[]string")
    wrong = next((item for item in value if item is not None and not isinstance(item, str)), None)
    return [item or "" for item in value] if wrong is None else _Wrong(go_kind(wrong), "string")


def _any(value: Json) -> Json | _Wrong:
    return value


_SCALARS: Final[Mapping[str, Reader]] = {
    "string": _string,
    "int32": _integer(INT32_MAX, "int32"),
    "int64": _integer(INT64_MAX, "int64"),
    "micro-time": _time(go_time.parse_micro, go_time.render_micro),
    "time": _time(go_time.parse_seconds, go_time.render_seconds),
    "string-map": _string_map,
    "string-list": _string_list,
    "any": _any,
}
