"""Which of two sights of one object is older.

A GET may overtake the watch, so that the watch then brings states that are past. Resource versions of one object are whole numbers that
rise (etcd's revisions; Kubernetes 1.35 promises it), and are only compared where both are.
"""

from __future__ import annotations


def is_older(candidate: str, known: str) -> bool:
    """True where `candidate` is certainly an earlier resourceVersion than `known`; False where nobody can tell."""
    return candidate.isdecimal() and known.isdecimal() and int(candidate) < int(known)
