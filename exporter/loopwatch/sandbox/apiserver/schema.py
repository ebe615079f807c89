"""Structural schemas of CustomResourceDefinitions: prune, drop nulls, validate, as kube-apiserver does with them.

Only the keywords that the CRDs of this package use are known; any other fails when the schema is loaded, so that a changed CRD can
never be half understood. It refuses defaulting, CEL rules and list types: none of the CRDs has them.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.sandbox.apiserver.jsons import Json
from loopwatch.sandbox.apiserver.statuses import Cause

_KNOWN: Final = frozenset(
    {
        "type",
        "properties",
        "items",
        "additionalProperties",
        "required",
        "enum",
        "format",
        "nullable",
        "anyOf",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
    }
)
_LARGEST: Final = {"int32": 2**31 - 1, "int64": 2**63 - 1}
_FORMATS: Final = frozenset({"date-time", *_LARGEST})
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_CLOCK_PART: Final = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})", re.ASCII)
_DATE_PART: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_encode: Final = msgspec.json.Encoder().encode


class Schema(NamedTuple):
    """One node of a structural schema."""

    type: str
    properties: Mapping[str, Schema]
    items: Schema | None
    additional: Schema | None
    required: tuple[str, ...]
    enum: tuple[str, ...]
    format: str
    nullable: bool
    preserve_unknown: bool
    int_or_string: bool


def load(document: Mapping[str, Any], path: str = "openAPIV3Schema") -> Schema:
    """A schema from a CRD's YAML; ValueError that names the place of a keyword, type or format that is not known here."""
    unknown = set(document) - _KNOWN
    if unknown:
        raise ValueError(f"{path}: keywords {sorted(unknown)} are not known to the sandbox; it knows {sorted(_KNOWN)}")
    if document.get("format", "date-time") not in _FORMATS:
        raise ValueError(f"{path}: format {document['format']!r} is not known to the sandbox; it knows {sorted(_FORMATS)}")
    if "anyOf" in document and document["anyOf"] != _INT_OR_STRING:
        raise ValueError(f"{path}: anyOf is known to the sandbox only as the pair integer, string")
    items, additional = document.get("items"), document.get("additionalProperties")
    return Schema(
        type=str(document.get("type", "")),
        properties={name: load(child, f"{path}.{name}") for name, child in document.get("properties", {}).items()},
        items=load(items, f"{path}[]") if items else None,
        additional=load(additional, f"{path}.*") if additional else None,
        required=tuple(document.get("required", ())),
        enum=tuple(document.get("enum", ())),
        format=str(document.get("format", "")),
        nullable=bool(document.get("nullable")),
        preserve_unknown=bool(document.get("x-kubernetes-preserve-unknown-fields")),
        int_or_string=bool(document.get("x-kubernetes-int-or-string")),
    )


def prune(value: Json, schema: Schema, path: str, unknown: list[str]) -> Json:
    """`value` without fields that the schema does not name and without nulls where it allows none; `unknown` gets the paths.

    A number such as 1.0 becomes the integer that it is where the schema asks for one.
    """
    if isinstance(value, dict):
        return _prune_object(value, schema, path, unknown)
    if isinstance(value, list) and schema.items is not None:
        return [prune(item, schema.items, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if isinstance(value, float) and schema.type == "integer" and value.is_integer():
        return int(value)
    return value


def _prune_object(value: dict[str, Any], schema: Schema, path: str, unknown: list[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, item in value.items():
        child = schema.properties.get(name, schema.additional)
        inner = f"{path}.{name}" if path else name
        if child is None:
            if schema.preserve_unknown:
                kept[name] = item
            else:
                unknown.append(inner)
        elif item is not None or child.nullable:
            kept[name] = prune(item, child, inner, unknown)
    return kept


def validate(value: Json, schema: Schema, field: str, body: str) -> list[Cause]:
    """What is wrong with a pruned value. `field` is its path in the object, `body` the path that the messages use.

    The two differ on a status subresource: there the real server validates the status alone and says `state in body` of `status.state`.
    """
    if value is None and schema.nullable:
        return []
    kind = _kind(value)
    if not _type_fits(kind, schema):
        causes = [_wrong_type(field, body, "integer,string" if schema.int_or_string else schema.type, kind)]
        return causes + ([_unsupported(field, value, schema.enum)] if schema.enum else [])
    if isinstance(value, dict):
        return _validate_object(value, schema, field, body)
    if isinstance(value, list):
        return _validate_items(value, schema, field, body)
    return _validate_scalar(value, schema, field, body)


def _validate_object(value: dict[str, Any], schema: Schema, field: str, body: str) -> list[Cause]:
    causes = [Cause(_join(field, name), "FieldValueRequired", "Required value") for name in schema.required if name not in value]
    for name, item in value.items():
        child = schema.properties.get(name, schema.additional)
        if child is not None:
            causes += validate(item, child, _join(field, name), _join(body, name))
    return causes


def _validate_items(value: list[Json], schema: Schema, field: str, body: str) -> list[Cause]:
    if schema.items is None:
        return []
    causes: list[Cause] = []
    for index, item in enumerate(value):
        causes += validate(item, schema.items, f"{field}[{index}]", f"{body}[{index}]")
    return causes


def _validate_scalar(value: Json, schema: Schema, field: str, body: str) -> list[Cause]:
    if schema.enum and value not in schema.enum:
        return [_unsupported(field, value, schema.enum)]
    if isinstance(value, str) and schema.format == "date-time" and not is_date_time(value):
        message = f"Invalid value: {_quoted(value)}: {body} in body must be of type date-time: {_quoted(value)}"
        return [Cause(field, "FieldValueTypeInvalid", message)]
    most = _LARGEST.get(schema.format)
    if most is not None and isinstance(value, int) and not -most - 1 <= value <= most:
        root, _, inner = field.partition(".")
        message = f'Invalid value: "": Checked value must be of type integer with format {schema.format} in {inner or root}'
        return [Cause(root, "FieldValueInvalid", message)]
    return []


def is_date_time(text: str) -> bool:
    """As go-openapi's strfmt decides: a date, a T, a time with seconds, any fraction, and Z or an offset."""
    date, _, clock = text.lower().partition("t")
    match = _CLOCK_PART.match(clock)
    if match is None or match.end() != len(clock) or not _DATE_PART.fullmatch(date):
        return False
    try:
        datetime.date.fromisoformat(date)
    except ValueError:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _type_fits(kind: str, schema: Schema) -> bool:
    if schema.int_or_string:
        return kind in {"integer", "string"}
    return not schema.type or kind == schema.type or (schema.type == "number" and kind == "integer")


def _kind(value: Json) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _wrong_type(field: str, body: str, wanted: str, kind: str) -> Cause:
    return Cause(field, "FieldValueTypeInvalid", f'Invalid value: "{kind}": {body or field} in body must be of type {wanted}: "{kind}"')


def _unsupported(field: str, value: Json, allowed: tuple[str, ...]) -> Cause:
    listed = ", ".join(_quoted(item) for item in allowed)
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {_quoted(value)}: supported values: {listed}")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _quoted(value: Json) -> str:
    return _encode(value).decode()
