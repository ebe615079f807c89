"""Text from elsewhere, made fit to be published.

What a runtime or an API server answers ends up in conditions, logs and pages. It refuses control characters (they garble terminals and
log lines, and the bidirectional ones can make a line read as another), halves of characters (an API server answers 400) and length.
Markup stays: it is text to whoever prints it, and escaping is the printer's job.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_BLANKED = frozenset({"Cc", "Zl", "Zp"})
"""Control characters, and the two separators that are line breaks by another name."""
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HALF_A_CHARACTER = "Cs"
REPLACEMENT = "\ufffd"
BLANK: Final = "***"
_NAMES_OF_SECRETS: Final = (
    r"(?:token|authorization|password|passwd|client[-_]?secret|client-key-data|client-certificate-data|certificate-authority-data)"
)
_SECRETS: Final = (
    # A key, as PEM; also one that was cut off, or whose line breaks were escaped.
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), BLANK),
    # A signed token (JWT), wherever it stands: ServiceAccounts' and OIDC's.
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?", re.ASCII), BLANK),
    (re.compile(r"\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1\2{BLANK}"),
    # `token: abc…`, `"client-key-data": "abc…"`, `password=abc…`; a value of words that explains a name is left.
    (re.compile(rf"({_NAMES_OF_SECRETS}[\\\"']*\s*[:=]\s*[\\\"']*)[^\s\"'\\,;&]{{8,}}", re.IGNORECASE), rf"\1{BLANK}"),
    # The password of a URL.
    (re.compile(r"(://[^\s/:@]{0,64}:)[^\s/@]{1,1024}@"), rf"\1{BLANK}@"),
)


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


def without_secrets(text: str) -> str:
    """`text` with `***` in the place of what looks like a credential: a key, a token, a header, a kubeconfig's field, a URL's password.

    The last net, below code that never puts one into a text: what an exec plugin or a proxy wrote may hold one. It errs towards `***`.
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text
