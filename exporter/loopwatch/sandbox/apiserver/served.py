"""The resources that the sandbox serves, and how each is read, checked and changed.

A custom resource is checked by its CRD's schema, a built-in one (Lease, Event, Namespace) by its Go struct: the two differ in what they
refuse and how, and a client meets both. `ResourceType` hides the difference from the verbs.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec
import yaml

from loopwatch.kube.resources import EVENTS, LEASES, MACHINE_CLASSES, MACHINE_POOLS, MACHINES, NAMESPACES, Resource
from loopwatch.sandbox.apiserver import go_json, metadata, schema, statuses
from loopwatch.sandbox.apiserver.jsons import Json
from loopwatch.sandbox.apiserver.statuses import Cause

CRD_FILE: Final = "ironcore-crds.yaml"
_SHOWN: Final = 30
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_CRD_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_BUILT_IN_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_NO_SCHEMA: Final = schema.load({"x-kubernetes-preserve-unknown-fields": True})


class Decoded(NamedTuple):
    """An object as the server understands it, and the fields that it dropped."""

    body: dict[str, Any]
    unknown: tuple[str, ...]


class ResourceType(NamedTuple):
    """What the verbs need to know of a resource."""

    resource: Resource
    singular: str
    status: bool
    """Whether there is a status subresource: then each door leaves the other's part alone."""
    selectable: Mapping[str, tuple[str, ...]]
    """Field selectors beside metadata.name and metadata.namespace, with the path that each reads."""
    custom: bool
    generation: bool
    create_on_update: bool
    """Whether a PUT of an object that is not there makes it."""
    dots_in_name: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...]
    decode: Callable[[dict[str, Any]], Decoded]
    """Reads a document whose kind is right; DecodeFault where Go's decoder refuses it."""
    faults: Callable[[dict[str, Any], str], list[Cause]]
    """What is wrong with a decoded object, without its metadata; the subresource decides how much is looked at."""

    @property
    def list_kind(self) -> str:
        """`LeaseList`."""
        return f"{self.resource.kind}List"


DecodeFault = go_json.GoDecodeError


def check_kind(kind_of: ResourceType, document: Json) -> dict[str, Any]:
    """The document, where its type is right or may be judged later; a refusal (400) as the verb `create` gives it."""
    resource = kind_of.resource
    quoted = _encode(document).decode()
    if not isinstance(document, dict):
        what = (
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {go_json.go_kind(document)} into Go value of type struct"
        )
        raise statuses.bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {what}")
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind_of.custom:
        if not kind:
            where = f"Object 'Kind' is missing in '{quoted}' ({_cut(quoted)})"
            raise statuses.bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {where}")
        if version != resource.api_version:
            told = f"the API version in the data ({version or ''}) does not match the expected API version ({resource.api_version})"
            raise statuses.bad_request(told)
    elif (kind or resource.kind, version or resource.api_version) != (resource.kind, resource.api_version):
        version, kind = version or resource.api_version, kind or resource.kind
        unknown = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise statuses.bad_request(
            f'{kind} in version "{str(version).rpartition("/")[2]}" cannot be handled as a {resource.kind}: {unknown}'
        )
    return document


def kind_faults(kind_of: ResourceType, document: dict[str, Any]) -> list[Cause]:
    """A custom resource's wrong kind or apiVersion is a 422, found after decoding."""
    resource, faults = kind_of.resource, list[Cause]()
    if document.get("kind", resource.kind) != resource.kind:
        faults.append(Cause("kind", "FieldValueInvalid", f'Invalid value: "{document["kind"]}": must be {resource.kind}'))
    if document.get("apiVersion", resource.api_version) != resource.api_version:
        told = f'Invalid value: "{document["apiVersion"]}": must be {resource.api_version}'
        faults.append(Cause("apiVersion", "FieldValueInvalid", told))
    return faults


@functools.cache
def served_types() -> tuple[ResourceType, ...]:
    """Every resource of the sandbox."""
    schemas = _crd_schemas()
    selectors = {f"spec.{name}.name": ("spec", name, "name") for name in ("machinePoolRef", "machineClassRef")}
    return (
        _custom(MACHINE_POOLS, schemas, status=True),
        _custom(MACHINES, schemas, status=True, selectable=selectors),
        _custom(MACHINE_CLASSES, schemas, status=False),
        _built_in(LEASES, go_json.LEASE, _lease_faults, create_on_update=True),
        _built_in(EVENTS, go_json.EVENT, _event_faults, create_on_update=True, short_names=("ev",)),
        _built_in(NAMESPACES, go_json.NAMESPACE, _no_faults, status=True, dots_in_name=False, short_names=("ns",)),
    )


def crd_documents() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions as a client would apply them."""
    text = importlib.resources.files(__package__).joinpath(CRD_FILE).read_text(encoding="utf-8")
    return [cast("dict[str, Any]", document) for document in yaml.load_all(text, Loader=yaml.CSafeLoader)]


def _crd_schemas() -> dict[str, schema.Schema]:
    loaded: dict[str, schema.Schema] = {}
    for document in crd_documents():
        names, versions = document["spec"]["names"], document["spec"]["versions"]
        loaded[names["plural"]] = schema.load(versions[0]["schema"]["openAPIV3Schema"], names["kind"])
    return loaded


def _custom(
    resource: Resource, schemas: dict[str, schema.Schema], *, status: bool, selectable: Mapping[str, tuple[str, ...]] | None = None
) -> ResourceType:
    root = schemas[resource.plural]
    return ResourceType(
        resource=resource,
        singular=resource.kind.lower(),
        status=status,
        selectable=selectable or {},
        custom=True,
        generation=True,
        create_on_update=False,
        dots_in_name=True,
        verbs=_CRD_VERBS,
        short_names=(),
        decode=functools.partial(_decode_custom, root),
        faults=functools.partial(_schema_faults, root),
    )


def _built_in(
    resource: Resource,
    struct: go_json.Struct,
    faults: Callable[[dict[str, Any], str], list[Cause]],
    *,
    status: bool = False,
    create_on_update: bool = False,
    dots_in_name: bool = True,
    short_names: tuple[str, ...] = (),
) -> ResourceType:
    return ResourceType(
        resource=resource,
        singular=resource.kind.lower(),
        status=status,
        selectable={},
        custom=False,
        generation=False,
        create_on_update=create_on_update,
        dots_in_name=dots_in_name,
        verbs=tuple(verb for verb in _BUILT_IN_VERBS if verb != "deletecollection" or resource.namespaced),
        short_names=short_names,
        decode=functools.partial(_decode_built_in, resource, struct),
        faults=faults,
    )


def _decode_custom(root: schema.Schema, document: dict[str, Any]) -> Decoded:
    decoder = go_json.GoDecoder()
    meta = document.get("metadata")
    decoded_meta = decoder.decode({} if meta is None else meta, go_json.OBJECT_META, within="metadata")
    unknown: list[str] = []
    rest = {key: value for key, value in document.items() if key != "metadata"}
    body = cast("dict[str, Any]", schema.prune(rest, root, "", unknown))  # an object stays one
    return Decoded(body | {"metadata": decoded_meta}, tuple(sorted(unknown + decoder.unknown)))


def _decode_built_in(resource: Resource, struct: go_json.Struct, document: dict[str, Any]) -> Decoded:
    decoder = go_json.GoDecoder()
    body = decoder.decode({key: value for key, value in document.items() if key not in {"kind", "apiVersion"}}, struct)
    body.setdefault("metadata", {})
    if "spec" in struct.fields:
        body.setdefault("spec", {})
        for gated in ("strategy", "preferredHolder"):  # behind a feature gate that is off: taken, and dropped
            body["spec"].pop(gated, None)
    return Decoded({"kind": resource.kind, "apiVersion": resource.api_version} | body, tuple(sorted(decoder.unknown)))


def _schema_faults(root: schema.Schema, body: dict[str, Any], subresource: str) -> list[Cause]:
    if subresource:
        part = root.properties.get(subresource, _NO_SCHEMA)
        return schema.validate(body[subresource], part, subresource, "") if subresource in body else []
    return schema.validate({key: value for key, value in body.items() if key != "metadata"}, root, "", "")


def _lease_faults(body: dict[str, Any], _subresource: str) -> list[Cause]:
    spec = body["spec"]
    faults: list[Cause] = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        told = f"Invalid value: {spec['leaseDurationSeconds']}: must be greater than 0"
        faults.append(Cause("spec.leaseDurationSeconds", "FieldValueInvalid", told))
    if spec.get("leaseTransitions", 0) < 0:
        told = f"Invalid value: {spec['leaseTransitions']}: must be greater than or equal to 0"
        faults.append(Cause("spec.leaseTransitions", "FieldValueInvalid", told))
    return faults


def _event_faults(body: dict[str, Any], _subresource: str) -> list[Cause]:
    """An Event lies in its object's namespace; one about an object without a namespace in `default`."""
    namespace, of_object = body["metadata"].get("namespace", ""), body.get("involvedObject", {}).get("namespace", "")
    if namespace == of_object or (not of_object and namespace == "default"):
        return []
    return [Cause("involvedObject.namespace", "FieldValueInvalid", f'Invalid value: "{of_object}": does not match event.namespace')]


def _no_faults(_body: dict[str, Any], _subresource: str) -> list[Cause]:
    return []


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def metadata_faults(kind_of: ResourceType, body: dict[str, Any]) -> list[Cause]:
    """What is wrong with a new object's name and labels."""
    meta = body["metadata"]
    return metadata.name_faults(meta.get("name", ""), dots=kind_of.dots_in_name) + metadata.label_faults(meta)
