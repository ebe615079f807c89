"""Whole lines from chunks cut anywhere, however long a line is.

A watch sends one JSON document a line; a single object may be some megabytes, which is why no reader with a line limit will do
(aiohttp's own gives up at twice its buffer). Parts of an unfinished line are kept as they came and joined once, so that a long line
costs one copy, not one a chunk.
"""

from __future__ import annotations


class LineCutter:
    """The unfinished rest of one stream."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    @property
    def unfinished(self) -> bool:
        """Whether bytes came after the last newline."""
        return bool(self._parts)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, in order, without newlines and without empty ones."""
        end = chunk.rfind(b"\n")
        if end < 0:
            if chunk:
                self._parts.append(chunk)
            return []
        whole = chunk[:end]
        if self._parts:
            self._parts.append(whole)
            whole = b"".join(self._parts)
            self._parts.clear()
        if end + 1 < len(chunk):
            self._parts.append(chunk[end + 1 :])
        return [line for line in whole.split(b"\n") if line]
