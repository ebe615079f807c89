"""Text from elsewhere, made fit to be published.

What a runtime or an API server answers ends up in conditions, logs and pages. It refuses control characters (they garble terminals and
log lines, and the bidirectional ones can make a line read as another), halves of characters (an API server answers 400) and length.
Markup stays: it is text to whoever prints it, and escaping is the printer's job.
"""

from __future__ import annotations

import unicodedata

_BLANKED = frozenset({"Cc", "Zl", "Zp"})
"""Control characters, and the two separators that are line breaks by another name."""
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HALF_A_CHARACTER = "Cs"
REPLACEMENT = "\ufffd"


def clean_message(text: str, limit_bytes: int = 1024) -> str:
    """`text` without control characters, encodable, and at most `limit_bytes` of UTF-8, cut between characters.

    A control character becomes a space, a bidirectional control or a lone surrogate (what undecodable bytes leave behind) U+FFFD.
    Cleaning a cleaned text changes nothing.
    """
    # Each character is at least one byte: what is past the limit now is past it later, and need not be looked at.
    cleaned = "".join(map(_clean_character, text[:limit_bytes]))
    return cleaned.encode()[:limit_bytes].decode(errors="ignore")


def _clean_character(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    category = unicodedata.category(character)
    if category in _BLANKED:
        return " "
    return REPLACEMENT if category == _HALF_A_CHARACTER or character in _BIDIRECTIONAL else character
