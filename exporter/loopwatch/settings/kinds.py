"""The kinds of settings: how each reads a text, and how a page names what it takes.

Every parser takes the text as given and raises ValueError with what is allowed. Nothing here knows a flag's name.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from loopwatch import durations

LONGEST_SHOWN = 80
DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_DNS_SUBDOMAIN = 253
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_DNS_LABEL = 63
HIGHEST_PORT = 65_535

# What Go's strconv.ParseBool takes, since the machinepoollet's flags stand beside ours.
TRUE = ("1", "t", "T", "TRUE", "true", "True")
FALSE = ("0", "f", "F", "FALSE", "false", "False")


class Kind(enum.Enum):
    """What a setting takes; the value names it in help and docs."""

    DURATION = "duration"
    BOOLEAN = "true|false"
    TEXT = "text"
    CHOICE = "choice"
    ADDRESS = "host:port"
    PATH = "path"
    COUNT = "whole number"
    URL = "URL"

    @property
    def parse(self) -> Callable[[str], Any]:
        """From a text to the value that checks see."""
        return _PARSERS[self]


class Address(NamedTuple):
    """Where to listen; an empty host is every address."""

    host: str
    port: int


def shown(text: str) -> str:
    """`text` quoted, on one line and cut, for an error's sentence."""
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")


def boolean(text: str) -> bool:
    """True or False."""
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError(f"must be true or false, got {shown(text)}")


def count(text: str) -> int:
    """A whole number of 0 or more, in decimal digits."""
    if not (text.isascii() and text.isdecimal()) or len(text) > LONGEST_SHOWN:
        raise ValueError(f"must be a whole number, got {shown(text)}")
    return int(text)


def duration(text: str) -> float:
    """Seconds."""
    try:
        return durations.parse(text)
    except ValueError:
        raise ValueError(f"must be a duration such as 10s, 1m30s or 500ms, got {shown(text)}") from None


def address(text: str) -> Address:
    """`host:port`, `[IPv6]:port` or `:port`."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    plain = not re.search(r"[\s\[\]/]", host) and (":" in host) == bracketed
    if not colon or not plain or not (port.isascii() and port.isdecimal()) or len(port) > LONGEST_SHOWN or int(port) > HIGHEST_PORT:
        raise ValueError(f"must be host:port, [IPv6 address]:port or :port with a port from 0 to {HIGHEST_PORT}, got {shown(text)}")
    return Address(host, int(port))


def http_url(text: str) -> str:
    """An http:// URL with a host, as it stands."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:  # a port that is no number, or a broken IPv6 address
        usable = False
    if not usable or not text.isprintable() or " " in text:
        raise ValueError(f"must be a URL such as http://127.0.0.1:8081/healthz, got {shown(text)}")
    return text


def dns_subdomain_problem(name: str) -> str:
    """What is wrong with a name as Kubernetes sees it (RFC 1123 subdomain); empty where nothing is."""
    if len(name) <= LONGEST_DNS_SUBDOMAIN and DNS_SUBDOMAIN.fullmatch(name):
        return ""
    return (
        f"must be a DNS subdomain (at most {LONGEST_DNS_SUBDOMAIN} characters: a-z, 0-9, '-' and '.', "
        f"each part beginning and ending with a letter or digit), got {shown(name)}"
    )


def dns_label_problem(name: str) -> str:
    """What is wrong with a namespace's name as Kubernetes sees it (RFC 1123 label); empty where nothing is."""
    if len(name) <= LONGEST_DNS_LABEL and DNS_LABEL.fullmatch(name):
        return ""
    return (
        f"must be a DNS label (at most {LONGEST_DNS_LABEL} characters: a-z, 0-9 and '-', "
        f"beginning and ending with a letter or digit), got {shown(name)}"
    )


def _as_it_stands(text: str) -> str:
    return text


_PARSERS: dict[Kind, Callable[[str], Any]] = {
    Kind.DURATION: duration,
    Kind.BOOLEAN: boolean,
    Kind.TEXT: _as_it_stands,
    Kind.CHOICE: _as_it_stands,
    Kind.ADDRESS: address,
    Kind.PATH: _as_it_stands,
    Kind.COUNT: count,
    Kind.URL: http_url,
}
