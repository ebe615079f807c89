"""What is remembered of who may see what: allowed verdicts, by the hash of the token, for a while.

Within `kept_seconds` of a verdict it stands unasked. Later it is asked for again; while nobody can be asked it stands on for
`outage_seconds` after it was given, since an outage of the API server must not lock out the scrape that pages about it. Pure: moments are
passed in. It refuses to hold a token, to remember a refusal (who was granted a right need not wait), and to grow.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

KEPT_SECONDS: Final = 60.0
MOST_KEPT: Final = 1024
"""A scraper has one token and one path; those that come after a rotation push the oldest out."""


class Verdicts:
    """Allowed verdicts, the oldest first. Moments are monotonic seconds and never go back."""

    def __init__(self, *, outage_seconds: float, kept_seconds: float = KEPT_SECONDS, most: int = MOST_KEPT) -> None:
        self._outage_seconds = outage_seconds
        self._kept_seconds = kept_seconds
        self._most = most
        self._allowed_at: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._allowed_at)

    def allow(self, token: str, path: str, now: float) -> None:
        """The API server said yes."""
        key = _key(token, path)
        self._allowed_at[key] = now
        self._allowed_at.move_to_end(key)
        while len(self._allowed_at) > self._most or not self._young(next(iter(self._allowed_at.values())), now):
            self._allowed_at.popitem(last=False)

    def refuse(self, token: str, path: str) -> None:
        """The API server said no: what it said before is void, in an outage too."""
        self._allowed_at.pop(_key(token, path), None)

    def stands(self, token: str, path: str, now: float) -> bool:
        """Whether an allowed verdict is so recent that nobody need be asked."""
        return self._age(token, path, now) < self._kept_seconds

    def stands_in_outage(self, token: str, path: str, now: float) -> bool:
        """Whether an allowed verdict may still be gone by, now that nobody can be asked."""
        return self._age(token, path, now) < self._outage_seconds

    def _age(self, token: str, path: str, now: float) -> float:
        at = self._allowed_at.get(_key(token, path))
        return float("inf") if at is None else now - at

    def _young(self, at: float, now: float) -> bool:
        return now - at < max(self._kept_seconds, self._outage_seconds)


def _key(token: str, path: str) -> bytes:
    return hashlib.sha256(b"\0".join((token.encode(errors="surrogateescape"), path.encode(errors="surrogateescape")))).digest()
