"""Structural schemas: loading, pruning, validating."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.sandbox.apiserver import schema
from loopwatch.sandbox.apiserver.jsons import Json
from loopwatch.sandbox.apiserver.served import crd_documents, served_types

POOL = schema.load(
    next(document for document in crd_documents() if document["spec"]["names"]["kind"] == "MachinePool")["spec"]["versions"][0]["schema"][
        "openAPIV3Schema"
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
NAMES = st.sampled_from(["spec", "status", "conditions", "taints", "key", "effect", "type", "state", "capacity", "providerID", "junk"])
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=15)


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"type": "object", "oneOf": []}, "oneOf"),
        ({"type": "string", "format": "uuid"}, "uuid"),
        ({"anyOf": [{"type": "string"}]}, "anyOf"),
        ({"properties": {"a": {"x-kubernetes-list-type": "map"}}}, "openAPIV3Schema.a"),
    ],
)
def test_a_keyword_that_is_not_known_is_refused_by_name(document: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        schema.load(document)


@given(DOCUMENTS)
def test_pruning_twice_is_pruning_once(document: Json) -> None:
    once = schema.prune(document, POOL, "", [])
    unknown: list[str] = []
    assert schema.prune(once, POOL, "", unknown) == once
    assert unknown == []


@given(DOCUMENTS)
def test_validation_answers_any_document_and_names_a_field_for_each_fault(document: Json) -> None:
    pruned = schema.prune(document, POOL, "", [])
    for cause in schema.validate(pruned, POOL, "object", "object"):
        assert cause.field.startswith("object")
        assert cause.message


@given(st.integers())
def test_an_int32_ends_where_it_ends(port: int) -> None:
    body: Json = {"status": {"daemonEndpoints": {"machinepoolletEndpoint": {"port": port}}}}
    assert bool(schema.validate(body, POOL, "", "")) == (not -(2**31) <= port < 2**31)


def test_every_custom_resource_has_a_schema_that_loads() -> None:
    assert [kind_of.resource.kind for kind_of in served_types() if kind_of.custom] == ["MachinePool", "Machine", "MachineClass"]


def test_conditions_are_atomic_and_quantities_are_numbers_or_texts() -> None:
    assert schema.validate({"status": {"capacity": {"a": 1, "b": "2Gi"}}}, POOL, "", "") == []
    (fault,) = schema.validate({"status": {"capacity": {"a": True}}}, POOL, "", "")
    assert fault.field == "status.capacity.a"
