"""Object metadata: what a client may set, what the server sets, and what names and labels may look like."""

from __future__ import annotations

import re
from typing import Any, Final

from loopwatch.sandbox.apiserver.statuses import Cause

_LABEL_PART: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME_PART: Final = re.compile(_LABEL_PART)
_LABEL_VALUE: Final = re.compile(rf"(?:{_LABEL_PART})?")
_SUBDOMAIN: Final = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_LABEL: Final = re.compile(_DNS_LABEL)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_RULE: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN_MAX: Final = 253
LABEL_MAX: Final = 63
SERVER_OWNED: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
"""What a create may not choose: dropped without a word, as the real one does."""
IMMUTABLE: Final = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def name_faults(name: str, *, dots: bool) -> list[Cause]:
    """What is wrong with an object's name; without `dots` a DNS label is wanted (namespaces)."""
    if not name:
        return [Cause("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")]
    if not dots and "." in name:
        return [_bad_name(name, "must not contain dots")]
    longest, pattern, rule = (SUBDOMAIN_MAX, _SUBDOMAIN, _SUBDOMAIN_RULE) if dots else (LABEL_MAX, _LABEL, _LABEL_RULE)
    faults = [_bad_name(name, f"must be no more than {longest} bytes")] if len(name.encode()) > longest else []
    return faults if pattern.fullmatch(name) else [*faults, _bad_name(name, rule)]


def label_faults(metadata: dict[str, Any]) -> list[Cause]:
    """What is wrong with labels and with the keys of annotations."""
    faults: list[Cause] = []
    for key, value in metadata.get("labels", {}).items():
        faults += _qualified_name_faults(key, "metadata.labels")
        if len(value) > LABEL_MAX:
            faults.append(
                Cause("metadata.labels", "FieldValueInvalid", f'Invalid value: "{value}": must be no more than {LABEL_MAX} bytes')
            )
        if not _LABEL_VALUE.fullmatch(value):
            faults.append(Cause("metadata.labels", "FieldValueInvalid", f'Invalid value: "{value}": {_LABEL_VALUE_RULE}'))
    for key in metadata.get("annotations", {}):
        faults += _qualified_name_faults(key.lower(), "metadata.annotations")
    return faults


def for_create(metadata: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A new object's metadata without what only the server may set, in its namespace (empty: cluster-scoped)."""
    dropped = {*SERVER_OWNED, "managedFields", "namespace"}
    kept = {key: value for key, value in metadata.items() if key not in dropped and value not in ({}, [])}
    return kept | ({"namespace": namespace} if namespace else {})


def for_update(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The metadata of an update: what the client may change from `new`, what it may not from `old`."""
    kept = {key: value for key, value in new.items() if value not in ({}, []) and key not in {"managedFields", "selfLink"}}
    for key in ("name", "namespace", "generateName", "generation", "creationTimestamp", "resourceVersion", "managedFields"):
        kept.pop(key, None)
        if key in old:
            kept[key] = old[key]
    kept.setdefault("uid", old["uid"])
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if key in old:
            kept[key] = old[key]
    return kept


def update_faults(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What an update may not do to metadata; the real server says each of these twice, once a validation."""
    faults = [
        Cause(f"metadata.{key}", "FieldValueInvalid", f'Invalid value: "{new[key]}": field is immutable')
        for key in IMMUTABLE
        if new.get(key) != old.get(key)
    ]
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ())))
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            faults.append(Cause("metadata.finalizers", "FieldValueForbidden", f"Forbidden: {why}"))
    return faults


def _qualified_name_faults(key: str, field: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        return [Cause(field, "FieldValueInvalid", f'Invalid value: "{key}": prefix part {_SUBDOMAIN_RULE}')]
    if len(name) > LABEL_MAX:
        return [Cause(field, "FieldValueInvalid", f'Invalid value: "{key}": name part must be no more than {LABEL_MAX} bytes')]
    if not _NAME_PART.fullmatch(name):
        return [Cause(field, "FieldValueInvalid", f'Invalid value: "{key}": {_NAME_PART_RULE}')]
    return []


def _bad_name(name: str, why: str) -> Cause:
    return Cause("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {why}')
