"""Numbers and identities that depend on a text alone, the same in every run (Python's own hash of a text is not)."""

from __future__ import annotations

import uuid


def hash_of(text: str) -> int:
    """A number."""
    return uuid.uuid5(uuid.NAMESPACE_OID, text).int


def uuid_of(text: str) -> uuid.UUID:
    """A version 4 UUID."""
    return uuid.UUID(int=hash_of(text), version=4)
