"""Writes: create, replace, patch, delete, each through the same checks in the real server's order.

What a client may not change is taken from the stored object, a write that changes nothing leaves the object as it is (same
resourceVersion, no event), and the two doors of a resource with a status subresource each leave the other's part alone.
"""

from __future__ import annotations

import datetime
import uuid
from typing import Any, Final, NamedTuple

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.resources import NAMESPACES, ObjectKey
from loopwatch.sandbox.apiserver import documents, go_time, managed_fields, metadata, served, statuses
from loopwatch.sandbox.apiserver.calls import Call
from loopwatch.sandbox.apiserver.managed_fields import Ownership
from loopwatch.sandbox.apiserver.served import ResourceType
from loopwatch.sandbox.apiserver.store import Collection, Store, Stored, path_of

PROTECTED_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What the real server ends a generated name with: no vowels, so that no words come out."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class Written(NamedTuple):
    """What a write answers: the status, the body, and the names of fields that were dropped."""

    code: int
    body: bytes
    unknown: tuple[str, ...] = ()


class Writes:
    """The writing half of the API server."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(self, call: Call, kind_of: ResourceType) -> Written:
        """POST to a collection."""
        decoded = documents.read_new(call, kind_of)
        self._check_namespace(kind_of, call.key.namespace, decoded.body["metadata"].get("name", ""))
        return self._insert(call, kind_of, decoded)

    def update(self, call: Call, kind_of: ResourceType) -> Written:
        """PUT of an object or of its status."""
        decoded = documents.read_new(call, kind_of)
        documents.check_name(call.key.name, decoded.body)
        stored = self._find(kind_of, call.key)
        if stored is None:
            if not kind_of.create_on_update or call.subresource:
                raise statuses.not_found(kind_of.resource, call.key.name)
            self._check_namespace(kind_of, call.key.namespace, call.key.name)
            decoded.body["metadata"].pop("resourceVersion", None)
            return self._insert(call, kind_of, decoded)
        return self._change(call, kind_of, stored, decoded)

    def patch(self, call: Call, kind_of: ResourceType) -> Written:
        """PATCH of an object or of its status."""
        media_type = documents.patch_type(call, kind_of)
        stored = self._find(kind_of, call.key)
        if stored is None:
            raise statuses.not_found(kind_of.resource, call.key.name)
        decoded = documents.read_patched(call, kind_of, stored, media_type)
        documents.check_name(call.key.name, decoded.body)
        return self._change(call, kind_of, stored, decoded)

    def delete(self, call: Call, kind_of: ResourceType) -> Written:
        """DELETE of an object: at once, or by a deletionTimestamp where finalizers hold it."""
        preconditions = documents.read_preconditions(call)
        stored = self._find(kind_of, call.key)
        if stored is None:
            raise statuses.not_found(kind_of.resource, call.key.name)
        _check_preconditions(kind_of, stored, preconditions)
        collection = self._store.collections[kind_of.resource]
        if kind_of.resource == NAMESPACES:
            return self._delete_namespace(collection, stored)
        meta = stored.body["metadata"]
        if meta.get("finalizers"):
            if "deletionTimestamp" not in meta:
                stored = self._mark_deleted(kind_of, collection, stored)
            return Written(200, collection.whole(stored) + b"\n")
        self._remove(collection, stored)
        return Written(200, statuses.success(kind_of.resource, call.key.name, meta.get("uid", "")))

    def _find(self, kind_of: ResourceType, key: ObjectKey) -> Stored | None:
        return self._store.collections[kind_of.resource].objects.get(path_of(key))

    def _check_namespace(self, kind_of: ResourceType, namespace: str, name: str) -> None:
        if not kind_of.resource.namespaced:
            return
        found = self._store.collections[NAMESPACES].objects.get(path_of(ObjectKey("", namespace)))
        if found is None:
            raise statuses.not_found(NAMESPACES, namespace)
        if "deletionTimestamp" in found.body["metadata"]:
            raise statuses.forbidden_by_namespace(kind_of.resource, name, namespace)

    def _insert(self, call: Call, kind_of: ResourceType, decoded: served.Decoded) -> Written:
        given = decoded.body["metadata"]
        body = decoded.body | {"metadata": metadata.for_create(given, call.key.namespace)}
        if given.get("generateName") and not given.get("name"):
            body["metadata"]["name"] = given["generateName"] + self._suffix()
        if kind_of.status:
            body.pop("status", None)
        if kind_of.resource == NAMESPACES:
            _default_namespace(body)
        self._check(kind_of, body, served.kind_faults(kind_of, body) + served.metadata_faults(kind_of, body), "")
        if given.get("resourceVersion"):
            raise statuses.internal("resourceVersion should not be set on objects to be created")
        key = ObjectKey(call.key.namespace, body["metadata"]["name"])
        if self._find(kind_of, key) is not None:
            raise statuses.already_exists(kind_of.resource, key.name)
        meta = body["metadata"] | {"uid": self._uid(), "creationTimestamp": self._now()} | ({"generation": 1} if kind_of.generation else {})
        body = body | {"metadata": meta}
        written = {"metadata": meta} if kind_of.resource == NAMESPACES else body  # the rest of a namespace is the server's own
        owners = managed_fields.after_write((), {}, written, documents.writer(call, kind_of), self._now(), custom=kind_of.custom)
        return Written(201, self._commit(call, kind_of, "ADDED", key, body, owners, None), decoded.unknown)

    def _change(self, call: Call, kind_of: ResourceType, stored: Stored, decoded: served.Decoded) -> Written:
        _check_version(kind_of, stored, decoded.body["metadata"].get("resourceVersion", ""))
        collection = self._store.collections[kind_of.resource]
        body = _merged_doors(call, kind_of, stored.body, decoded.body)
        old_meta, new_meta = stored.body["metadata"], body["metadata"]
        faults = served.kind_faults(kind_of, decoded.body) + metadata.update_faults(new_meta, old_meta) + metadata.label_faults(new_meta)
        self._check(kind_of, body, faults, call.subresource)
        if collection.item(body) == stored.item:
            return Written(200, collection.whole(stored) + b"\n", decoded.unknown)
        if kind_of.generation and _spec_part(kind_of, body) != _spec_part(kind_of, stored.body):
            new_meta["generation"] = old_meta["generation"] + 1
        writer = documents.writer(call, kind_of)
        owners = managed_fields.after_write(stored.owners, stored.body, body, writer, self._now(), custom=kind_of.custom)
        if "deletionTimestamp" in new_meta and not new_meta.get("finalizers"):
            self._remove(collection, stored._replace(body=body, item=collection.item(body)))
            return Written(200, collection.whole(stored._replace(item=collection.item(body))) + b"\n", decoded.unknown)
        return Written(200, self._commit(call, kind_of, "MODIFIED", stored.key, body, owners, stored), decoded.unknown)

    def _check(self, kind_of: ResourceType, body: dict[str, Any], faults: list[statuses.Cause], subresource: str) -> None:
        faults = faults or kind_of.faults(body, subresource)
        if faults:
            wrong_kind = body.get("kind", "") if body.get("kind") != kind_of.resource.kind else ""
            raise statuses.invalid(kind_of.resource, body["metadata"].get("name", ""), faults, kind=wrong_kind)

    def _commit(
        self,
        call: Call,
        kind_of: ResourceType,
        event: str,
        key: ObjectKey,
        body: dict[str, Any],
        owners: tuple[Ownership, ...],
        before: Stored | None,
    ) -> bytes:
        collection = self._store.collections[kind_of.resource]
        dry = call.query.get("dryRun") == "All"
        revision = self._store.revision if dry else self._store.next_revision()
        stored = versioned(collection, key, body, owners, revision)
        if not dry:
            collection.record(event, stored, before)
        return collection.whole(stored) + b"\n"

    def _remove(self, collection: Collection, stored: Stored) -> None:
        """Delete: the event carries the last state at the revision of the deletion."""
        before = collection.objects[path_of(stored.key)]
        gone = versioned(collection, stored.key, stored.body, stored.owners, self._store.next_revision())
        collection.record("DELETED", gone, before)

    def _mark_deleted(self, kind_of: ResourceType, collection: Collection, stored: Stored) -> Stored:
        meta = stored.body["metadata"] | {"deletionTimestamp": self._now(), "deletionGracePeriodSeconds": 0}
        if kind_of.generation:
            meta["generation"] += 1
        marked = versioned(collection, stored.key, stored.body | {"metadata": meta}, stored.owners, self._store.next_revision())
        collection.record("MODIFIED", marked, stored)
        return marked

    def _delete_namespace(self, collection: Collection, stored: Stored) -> Written:
        """As with a namespace controller: Terminating, then its contents go, then itself."""
        if stored.key.name in PROTECTED_NAMESPACES:
            raise statuses.forbidden_deletion(NAMESPACES, stored.key.name)
        meta = stored.body["metadata"] | {"deletionTimestamp": self._now()}
        body = stored.body | {"metadata": meta, "status": {"phase": "Terminating"}}
        marked = versioned(collection, stored.key, body, stored.owners, self._store.next_revision())
        collection.record("MODIFIED", marked, stored)
        for other in self._store.collections.values():
            for inside in [found for found in other.objects.values() if found.key.namespace == stored.key.name]:
                self._remove(other, inside)
        self._remove(collection, marked)
        return Written(200, collection.whole(marked) + b"\n")

    def _now(self) -> str:
        return go_time.render_seconds(self._clock.utcnow().astimezone(datetime.UTC))

    def _suffix(self) -> str:
        return "".join(SUFFIX_LETTERS[int(self._clock.random() * len(SUFFIX_LETTERS))] for _ in range(5))

    def _uid(self) -> str:
        """A version 4 UUID from the clock's chance, so that a seeded run repeats."""
        bits = 0
        for _ in range(4):
            bits = bits << 32 | int(self._clock.random() * 2**32)
        return str(uuid.UUID(int=bits, version=4))


def versioned(collection: Collection, key: ObjectKey, body: dict[str, Any], owners: tuple[Ownership, ...], revision: int) -> Stored:
    """`body` as it is stored at `revision`: with its resourceVersion, its owners and its bytes."""
    meta = body["metadata"] | {"resourceVersion": str(revision)}
    if owners:
        meta["managedFields"] = managed_fields.rendered(owners)
    else:
        meta.pop("managedFields", None)
    body = body | {"metadata": meta}
    return Stored(key, revision, body, owners, collection.item(body))


def _check_version(kind_of: ResourceType, stored: Stored, version: str) -> None:
    name = stored.key.name
    if version in {"", "0"}:
        raise statuses.version_required(kind_of.resource, name)
    if not (version.isascii() and version.isdigit()):
        raise statuses.internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if int(version) != stored.revision:
        raise statuses.conflict(kind_of.resource, name)


def _check_preconditions(kind_of: ResourceType, stored: Stored, preconditions: dict[str, str]) -> None:
    uid, version = stored.body["metadata"].get("uid", ""), str(stored.revision)
    resource, name = kind_of.resource, stored.key.name
    if preconditions.get("uid", uid) != uid:
        why = (
            f"the UID in the precondition ({preconditions['uid']}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise statuses.precondition_failed(resource, name, why)
    if preconditions.get("resourceVersion", version) != version:
        why = (
            f"the ResourceVersion in the precondition ({preconditions['resourceVersion']}) does not match the ResourceVersion in record "
            f"({version}). The object might have been modified"
        )
        raise statuses.precondition_failed(resource, name, why)


def _merged_doors(call: Call, kind_of: ResourceType, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The object that a write makes: through the status door only the status is the client's, through the other all but the status."""
    if call.subresource:
        kept = {key: value for key, value in old.items() if key != "status"}
        given = {"uid": new["metadata"].get("uid") or old["metadata"]["uid"]}
        meta = metadata.for_update(old["metadata"] | given, old["metadata"])
        return kept | {"metadata": meta} | ({"status": new["status"]} if "status" in new else {})
    body = new | {"metadata": metadata.for_update(new["metadata"], old["metadata"])}
    if kind_of.status:
        body.pop("status", None)
        if "status" in old:
            body["status"] = old["status"]
    return body


def _spec_part(kind_of: ResourceType, body: dict[str, Any]) -> bytes:
    """What a generation counts: all but metadata, and the status where it has its own door."""
    skipped = {"metadata", "status"} if kind_of.status else {"metadata"}
    return _encode({key: value for key, value in body.items() if key not in skipped})


def _default_namespace(body: dict[str, Any]) -> None:
    body["spec"] = {"finalizers": ["kubernetes"]}
    body["status"] = {"phase": "Active"}
    labels = body["metadata"].get("labels", {}) | {"kubernetes.io/metadata.name": body["metadata"].get("name", "")}
    body["metadata"]["labels"] = labels
