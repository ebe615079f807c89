"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902), with the habits of the library that kube-apiserver uses.

Both return new documents and leave their input untouched; what a patch does not reach is shared, not copied. The habits, each seen on
the real server: a merge patch drops nulls also inside the objects of a list; a JSON patch may `replace` a key that is not there,
`copy` from one (giving null), `test` one for null, and count list indices from the end (`-1`). It refuses strategic merge patches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from loopwatch.sandbox.apiserver.jsons import Json

_INDEX: Final = re.compile(r"-?(?:0|[1-9]\d*)", re.ASCII)
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class PatchError(ValueError):
    """An operation that does not apply: a path that is not there, a failed test, an unknown operation."""


def merge(target: Json, patch: Json) -> Json:
    """`target` with `patch` merged in; null removes, anything but an object replaces."""
    if not isinstance(patch, dict):
        return without_nulls(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def without_nulls(value: Json) -> Json:
    """`value` without the null members of objects, at any depth; nulls that are items of a list stay."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def apply(document: Json, operations: list[Json]) -> Json:
    """`document` after a JSON patch: all operations, or PatchError."""
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError(f"an operation is an object, not {operation!r}")
        document = _apply_one(document, operation)
    return document


def _apply_one(document: Json, operation: dict[str, Json]) -> Json:
    name = operation.get("op")
    perform = _OPERATIONS.get(name) if isinstance(name, str) else None
    if perform is None:
        raise PatchError(f"op {name!r} is none of {', '.join(_OPERATIONS)}")
    return perform(document, operation)


def _add(document: Json, operation: dict[str, Json]) -> Json:
    return _put(document, _path(operation, "path"), _value(operation), insert=True)


def _replace(document: Json, operation: dict[str, Json]) -> Json:
    return _put(document, _path(operation, "path"), _value(operation), insert=False)


def _remove(document: Json, operation: dict[str, Json]) -> Json:
    return _drop(document, _path(operation, "path"))


def _move(document: Json, operation: dict[str, Json]) -> Json:
    source = _path(operation, "from")
    moved = _get(document, source)
    return _put(_drop(document, source), _path(operation, "path"), moved, insert=True)


def _copy(document: Json, operation: dict[str, Json]) -> Json:
    return _put(document, _path(operation, "path"), _get(document, _path(operation, "from")), insert=True)


def _test(document: Json, operation: dict[str, Json]) -> Json:
    path = _path(operation, "path")
    if _encode(_get(document, path)) != _encode(operation.get("value")):
        raise PatchError(f"test of /{'/'.join(path)} failed")
    return document


_OPERATIONS: Final[dict[str, Callable[[Json, dict[str, Json]], Json]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _path(operation: dict[str, Json], key: str) -> list[str]:
    pointer = operation.get(key)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f"{key} {pointer!r} is no JSON pointer; write it as /metadata/labels/a")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _value(operation: dict[str, Json]) -> Json:
    if "value" not in operation:
        raise PatchError(f"{operation.get('op')} wants a value")
    return operation["value"]


def _get(document: Json, path: list[str]) -> Json:
    """The value at `path`; None where the last step names a key that an object lacks."""
    for depth, part in enumerate(path):
        if isinstance(document, list):
            document = document[_index(part, len(document) - 1)]
        elif isinstance(document, dict):
            if part not in document:
                if depth < len(path) - 1:
                    raise PatchError(f"there is no {part!r}")
                return None
            document = document[part]
        else:
            raise PatchError(f"{part!r} is looked for in what is no object or list")
    return document


def _put(document: Json, path: list[str], value: Json, *, insert: bool) -> Json:
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(document, list):
        return _put_item(document, part, rest, value, insert=insert)
    if not isinstance(document, dict):
        raise PatchError(f"{part!r} is looked for in what is no object or list")
    if rest and part not in document:
        raise PatchError(f"there is no {part!r}")
    return document | {part: _put(document.get(part), rest, value, insert=insert)}


def _put_item(items: list[Json], part: str, rest: list[str], value: Json, *, insert: bool) -> list[Json]:
    if rest or not insert:
        index = _index(part, len(items) - 1)
        return [*items[:index], _put(items[index], rest, value, insert=insert), *items[index + 1 :]]
    index = len(items) if part == "-" else _index(part, len(items))
    return [*items[:index], value, *items[index:]]


def _drop(document: Json, path: list[str]) -> Json:
    if not path:
        raise PatchError("the whole document can't be removed")
    part, rest = path[0], path[1:]
    if isinstance(document, list):
        index = _index(part, len(document) - 1)
        return [*document[:index], *([_drop(document[index], rest)] if rest else []), *document[index + 1 :]]
    if not isinstance(document, dict) or part not in document:
        raise PatchError(f"there is no {part!r}")
    if rest:
        return document | {part: _drop(document[part], rest)}
    return {key: item for key, item in document.items() if key != part}


def _index(part: str, last: int) -> int:
    """A list index up to `last`; negative ones count from the end."""
    if not _INDEX.fullmatch(part):
        raise PatchError(f"{part!r} is no index of a list")
    index = int(part)
    index = index + last + 1 if index < 0 else index
    if not 0 <= index <= last:
        raise PatchError(f"index {part} is outside the list")
    return index
