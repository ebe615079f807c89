"""Label and field selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from loopwatch.sandbox.apiserver import statuses
from loopwatch.sandbox.apiserver.served import ResourceType
from loopwatch.sandbox.apiserver.store import Stored

_COMMA_OUTSIDE_SET: Final = re.compile(r",(?![^()]*\))")
_KEY: Final = r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)"
_EQUALITY: Final = re.compile(rf"\s*{_KEY}\s*(?P<operator>=|==|!=)\s*(?P<value>[-A-Za-z0-9_.]*)\s*")
_EXISTENCE: Final = re.compile(rf"\s*(?P<negated>!?)\s*{_KEY}\s*")
_SET: Final = re.compile(rf"\s*{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*")
_FIELD: Final = re.compile(r"(?P<key>[^=!,]+)(?P<operator>==|!=|=)(?P<value>[^,]*)")

Test = Callable[[Stored], bool]


class Selection(NamedTuple):
    """What a list or a watch asks for."""

    namespace: str
    name: str
    """The one name that can match, where the field selector says so; else empty."""
    tests: tuple[Test, ...]
    moving: bool
    """Whether an object can enter or leave the selection while it lives (labels, fields of its spec)."""

    @property
    def everything(self) -> bool:
        """Whether nothing but the namespace narrows it: only then is the rest of a page counted."""
        return not self.tests

    def matches(self, stored: Stored) -> bool:
        """Whether an object is selected."""
        return (not self.namespace or stored.key.namespace == self.namespace) and all(test(stored) for test in self.tests)


def select(kind_of: ResourceType, namespace: str, labels: str, fields: str) -> Selection:
    """The selection of a request; a refusal (400) for selectors that the real server does not take either."""
    label_tests = _label_tests(labels)
    field_tests, name, of_spec = _field_tests(kind_of, fields)
    return Selection(namespace, name, (*label_tests, *field_tests), moving=bool(label_tests) or of_spec)


def _label_tests(selector: str) -> list[Test]:
    return [_label_test(part) for part in _COMMA_OUTSIDE_SET.split(selector)] if selector.strip() else []


def _label_test(part: str) -> Test:
    if match := _EQUALITY.fullmatch(part):
        return _in_test(match["key"], frozenset({match["value"]}), negated=match["operator"] == "!=")
    if match := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return _in_test(match["key"], values, negated=match["operator"] == "notin")
    if match := _EXISTENCE.fullmatch(part):
        key, present = match["key"], not match["negated"]
        return lambda stored: (key in _labels(stored)) == present
    raise statuses.bad_request(f"unable to parse requirement: {part!r} is none of key=value, key!=value, key in (a,b), key, !key")


def _in_test(key: str, values: frozenset[str], *, negated: bool) -> Test:
    if negated:
        return lambda stored: _labels(stored).get(key) not in values
    return lambda stored: _labels(stored).get(key) in values


def _labels(stored: Stored) -> dict[str, str]:
    labels = stored.body["metadata"].get("labels", {})
    return labels if isinstance(labels, dict) else {}


def _field_tests(kind_of: ResourceType, selector: str) -> tuple[list[Test], str, bool]:
    tests: list[Test] = []
    name, of_spec = "", False
    for part in selector.split(",") if selector else []:
        match = _FIELD.fullmatch(part)
        if match is None:
            raise statuses.bad_request(f"invalid selector: '{selector}'; can't understand '{part}'")
        key, value, equal = match["key"].strip(), match["value"], match["operator"] != "!="
        tests.append(_field_test(kind_of, key, value, equal=equal))
        of_spec = of_spec or key in kind_of.selectable
        if key == "metadata.name" and equal:
            name = value
    return tests, name, of_spec


def _field_test(kind_of: ResourceType, key: str, value: str, *, equal: bool) -> Test:
    if key == "metadata.name":
        return lambda stored: (stored.key.name == value) == equal
    if key == "metadata.namespace":
        return lambda stored: (stored.key.namespace == value) == equal
    path = kind_of.selectable.get(key)
    if path is None and kind_of.custom:
        raise statuses.bad_request(f"field label not supported: {key}")
    if path is None:
        raise statuses.bad_request(f'"{key}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    return lambda stored: (_field(stored.body, path) == value) == equal


def _field(body: dict[str, Any], path: tuple[str, ...]) -> str:
    value: Any = body
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
