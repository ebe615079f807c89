"""metadata.managedFields: which manager owns which field, so that a second writer can be told from the first.

A write takes the fields it changes from every other entry; an entry that owns nothing goes. Lists are owned whole (none of our
resources has a keyed list that matters here, and `conditions` is atomic in IronCore as well). It refuses what clients send in
managedFields: the server alone keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from loopwatch.sandbox.apiserver.jsons import Json

Path = tuple[str, ...]
_STRUCTS: Final[frozenset[Path]] = frozenset({("spec",), ("spec", "."), ("status",), ("status", ".")})
"""What nobody owns of a built-in type: its structs are always there."""
_OWNED_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences", "generateName")


class Writer(NamedTuple):
    """Who writes, and through which door."""

    manager: str
    api_version: str
    subresource: str


class Ownership(NamedTuple):
    """One entry: the writer, the time of its last write, and the paths that it owns, also as the API shows them."""

    writer: Writer
    time: str
    paths: frozenset[Path]
    fields: Mapping[str, Any]


def after_write(
    owners: tuple[Ownership, ...], old: dict[str, Any], new: dict[str, Any], writer: Writer, time: str, *, custom: bool
) -> tuple[Ownership, ...]:
    """The entries after `writer` turned `old` into `new`; an object that changed always has its writer's time moved."""
    if old and not owners:  # made without a field of its own: the real server never tracks such an object
        return ()
    changed, gone = set[Path](), set[Path]()
    _differences(_owned_part(old), _owned_part(new), (), changed, gone)
    if not custom:
        changed -= _STRUCTS
    lost = changed | gone
    kept: list[Ownership] = []
    mine = Ownership(writer, time, frozenset(), {})
    for owner in owners:
        if owner.writer == writer:
            mine = owner
            continue
        paths = owner.paths if owner.paths.isdisjoint(lost) else owner.paths - lost
        if paths:
            kept.append(owner if paths is owner.paths else owner._replace(paths=paths, fields=_tree(paths)))
    paths = (mine.paths - gone) | changed
    if paths:
        kept.append(Ownership(writer, time, paths, mine.fields if paths == mine.paths else _tree(paths)))
    return tuple(sorted(kept, key=lambda owner: (owner.time, owner.writer.manager)))


def rendered(owners: tuple[Ownership, ...]) -> list[dict[str, Any]]:
    """As the API shows them."""
    return [_rendered_one(owner) for owner in owners]


def _rendered_one(owner: Ownership) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": owner.writer.manager,
        "operation": "Update",
        "apiVersion": owner.writer.api_version,
        "time": owner.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owner.fields,
    }
    return entry | ({"subresource": owner.writer.subresource} if owner.writer.subresource else {})


def _tree(paths: frozenset[Path]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in sorted(paths, key=lambda path: (-len(path), path[-1] == ".")):  # the members of an object before the object itself
        node = tree
        for part in path if path[-1] != "." else path[:-1]:
            node = node.setdefault(f"f:{part}", {})
        if path[-1] == "." and node:
            node["."] = {}
    return tree


def _owned_part(document: dict[str, Any]) -> dict[str, Any]:
    """What managers own of an object: all but its type and the metadata that the server keeps."""
    owned = {key: value for key, value in document.items() if key not in {"apiVersion", "kind", "metadata"}}
    metadata = document.get("metadata", {})
    shown = {key: metadata[key] for key in _OWNED_METADATA if key in metadata}
    return owned | ({"metadata": shown} if shown else {})


def _differences(old: dict[str, Any], new: dict[str, Any], path: Path, changed: set[Path], gone: set[Path]) -> None:
    for key, value in new.items():
        inner = (*path, key)
        before = old.get(key)
        if key in old and before == value and type(before) is type(value):
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            _differences(before, value, inner, changed, gone)
        else:
            gone.update(_leaves(before, inner) if key in old else ())
            changed.update(_leaves(value, inner))
    for key in old.keys() - new.keys():
        gone.update(_leaves(old[key], (*path, key)))


def _leaves(value: Json, path: Path) -> Iterator[Path]:
    """The paths that a value gives its writer: each leaf, and `.` for each object with members."""
    if not isinstance(value, dict) or not value:
        yield path
        return
    if path != ("metadata",):
        yield (*path, ".")
    for key, item in value.items():
        yield from _leaves(item, (*path, key))
