"""Merge and JSON patches as pure functions."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.sandbox.apiserver import patches
from loopwatch.sandbox.apiserver.jsons import Json

KEYS = st.sampled_from("abcd~/")
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text("xyz", max_size=2)
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12)
OBJECTS = st.dictionaries(KEYS, DOCUMENTS, max_size=4)


def rfc7386(target: Any, patch: Any) -> Any:
    """The algorithm as RFC 7386, section 2, spells it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = rfc7386(result.get(name), value)
    return result


@given(DOCUMENTS, DOCUMENTS)
def test_a_merge_is_the_rfcs_but_for_nulls_inside_lists(target: Json, patch: Json) -> None:
    assert patches.merge(target, patches.without_nulls(patch)) == rfc7386(target, patches.without_nulls(patch))


@given(OBJECTS, OBJECTS)
def test_merging_the_same_patch_again_changes_nothing(target: dict[str, Json], patch: dict[str, Json]) -> None:
    once = patches.merge(target, patch)
    assert patches.merge(once, patch) == once


@given(DOCUMENTS)
def test_an_empty_patch_changes_no_object(document: Json) -> None:
    target: dict[str, Json] = document if isinstance(document, dict) else {"document": document}
    assert patches.merge(target, {}) == target


@given(OBJECTS, OBJECTS)
def test_a_merge_leaves_its_input_alone(target: dict[str, Json], patch: dict[str, Json]) -> None:
    kept, kept_patch = copy.deepcopy(target), copy.deepcopy(patch)
    patches.merge(target, patch)
    assert (target, patch) == (kept, kept_patch)


@given(OBJECTS)
def test_no_member_is_null_after_a_merge_into_nothing(patch: dict[str, Json]) -> None:
    def members(value: Json) -> list[Json]:
        if isinstance(value, dict):
            return [*value.values(), *(inner for item in value.values() for inner in members(item))]
        return [inner for item in value for inner in members(item)] if isinstance(value, list) else []

    assert None not in members(patches.merge({}, patch))


# The examples of RFC 7386, appendix A; the last two have a null where this library's habit differs.
RFC_EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC_EXAMPLES)
def test_the_rfcs_examples(target: Json, patch: Json, result: Json) -> None:
    assert patches.merge(target, patch) == result


@given(OBJECTS, DOCUMENTS)
def test_what_was_added_tests_true_and_can_be_removed_again(document: dict[str, Json], value: Json) -> None:
    document.pop("new", None)
    add: dict[str, Json] = {"op": "add", "path": "/new", "value": value}
    test: dict[str, Json] = {"op": "test", "path": "/new", "value": value}
    added = patches.apply(document, [add, test])
    assert added == document | {"new": value}
    assert patches.apply(added, [{"op": "remove", "path": "/new"}]) == document


@given(OBJECTS, st.sampled_from("abcd"), st.sampled_from("abcd"))
def test_a_move_is_a_copy_and_a_removal(document: dict[str, Json], source: str, target: str) -> None:
    document[source] = [1]
    move: dict[str, Json] = {"op": "move", "from": f"/{source}", "path": f"/{target}"}
    moved = patches.apply(document, [move])
    expected = {key: value for key, value in document.items() if key != source} | {target: [1]}
    assert moved == expected


@given(st.lists(st.integers(), max_size=4), st.data())
def test_an_index_inserts_before_and_counts_from_the_end_when_negative(items: list[Json], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(items)))
    assert patches.apply({"l": items}, [{"op": "add", "path": f"/l/{at}", "value": "x"}]) == {"l": [*items[:at], "x", *items[at:]]}
    if items:
        back = data.draw(st.integers(1, len(items)))
        expected = [*items[: len(items) - back], *items[len(items) - back + 1 :]]
        assert patches.apply({"l": items}, [{"op": "remove", "path": f"/l/-{back}"}]) == {"l": expected}


@given(OBJECTS, st.lists(st.sampled_from(["/a", "/b/c", "/a/0", "/d/-", ""]), min_size=1, max_size=3))
def test_a_json_patch_leaves_its_input_alone(document: dict[str, Json], paths: list[str]) -> None:
    kept = copy.deepcopy(document)
    operations: list[Json] = [{"op": "add", "path": path, "value": {"n": 1}} for path in paths]
    try:
        patches.apply(document, operations)
    except patches.PatchError:
        assert paths != ["/a"], "a member of the root can always be added"
    assert document == kept


def test_a_pointer_escapes_its_two_characters() -> None:
    document: Json = {"a/b": {"c~d": 1}}
    assert patches.apply(document, [{"op": "replace", "path": "/a~1b/c~0d", "value": 2}]) == {"a/b": {"c~d": 2}}
    assert patches.apply({"~1": 0}, [{"op": "test", "path": "/~01", "value": 0}]) == {"~1": 0}


@pytest.mark.parametrize("value", [True, 1, 1.0, "1", None, [1], {"a": 1}])
def test_a_test_tells_types_apart(value: Json) -> None:
    others: list[Json] = [True, 1, "1", None, [1], {"a": 1}]
    for other in others:
        operation: dict[str, Json] = {"op": "test", "path": "/v", "value": other}
        same = type(other) is type(value) and other == value
        if same:
            patches.apply({"v": value}, [operation])
        elif not (isinstance(value, float) and other == 1):
            with pytest.raises(patches.PatchError):
                patches.apply({"v": value}, [operation])
