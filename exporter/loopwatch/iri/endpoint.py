"""Where the machine runtime listens: what the operator wrote, or the first well-known socket that is there.

The rules are upstream's (flag, else environment, else the two well-known sockets), and the spelling is gRPC's. A mistake is refused here,
before anything runs, since gRPC would only answer Unavailable for ever. What is merely not there yet is no mistake: it is waited for.
The file system is passed in as one small function.
"""

from __future__ import annotations

import enum
import os
import re
import stat
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

FLAG = "--machine-runtime-endpoint"
ENVIRONMENT_VARIABLE = "IRI_MACHINE_RUNTIME_ENDPOINT"
WELL_KNOWN_SOCKETS = ("/var/run/iri-machinebroker.sock", "/var/run/iri-machineprovider.sock")
"""Where IronCore's broker and its providers listen, in upstream's order."""
SOCKET_PATH_LIMIT_BYTES = 107
"""What the kernel takes for the path of a unix socket, its closing zero byte left out."""
ALLOWED = "unix:/path, unix:///path, unix:path, dns:///host:port and host:port"

_DNS = re.compile(r"dns:(?:///)?(.*)", re.DOTALL)
_HOST_AND_PORT = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://|/)")


class EndpointError(ValueError):
    """An endpoint that can't be meant: says what was given, what is allowed and how to mend it."""


class PathKind(enum.Enum):
    """What is found at a path, links followed."""

    ABSENT = "absent"
    SOCKET = "socket"
    OTHER = "other"


KindOf = Callable[[str], PathKind]
"""Says what is at a path; OSError where it can't be looked at."""


SocketIdentity = tuple[int, int, int]
"""Device, inode and change time. The inode alone is not enough: file systems give a removed socket's number to the next one."""

IdentityOf = Callable[[str], SocketIdentity | None]
"""Says which file is at a path; None where none can be seen."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that was accepted.

    `target` is what gRPC is given; `socket_path` is the unix socket's path, decoded, and empty for a network address.
    """

    target: str
    socket_path: str = ""


def path_kind(path: str) -> PathKind:
    """What the file system has at `path`."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return PathKind.ABSENT
    return PathKind.SOCKET if stat.S_ISSOCK(mode) else PathKind.OTHER


def socket_identity(path: str) -> SocketIdentity | None:
    """Which file the file system has at `path`."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def choose(flag: str, environment: str, kind_of: KindOf = path_kind) -> Endpoint | None:
    """The endpoint that the flag names, else the environment variable; None where neither says one: sockets are to be looked for.

    EndpointError, which names the one that is wrong.
    """
    if flag:
        return parse(flag, FLAG, kind_of)
    if environment:
        return parse(environment, f"${ENVIRONMENT_VARIABLE}", kind_of)
    return None


def first_socket(paths: Iterable[str], kind_of: KindOf = path_kind) -> Endpoint | None:
    """The first of `paths` that is a socket; one that can't be looked at, or is something else, is passed over."""
    for path in paths:
        try:
            kind = kind_of(path)
        except OSError:
            continue
        if kind is PathKind.SOCKET:
            return socket_endpoint(path)
    return None


def socket_endpoint(path: str) -> Endpoint:
    """The endpoint of a socket's path. gRPC decodes percent signs in a target, so they are encoded."""
    return Endpoint(target=f"unix:{urllib.parse.quote(os.fsencode(path), safe='/')}", socket_path=path)


def parse(text: str, source: str, kind_of: KindOf = path_kind) -> Endpoint:
    """The endpoint that `text` spells; `source` is the flag or variable that an EndpointError names."""
    if text.startswith("unix:"):
        return _parse_socket(text, source, kind_of)
    address = _DNS.fullmatch(text)
    if address:
        return _parse_address(address[1], text, source)
    if text.startswith(("/", "./", "../")):
        raise EndpointError(f"{source}: {text!r} has no scheme; write unix:{text} for a socket (allowed are {ALLOWED})")
    scheme = _SCHEME.match(text)
    if scheme:
        raise EndpointError(f"{source}: {text!r} has the unknown scheme {scheme[1]!r}; allowed are {ALLOWED}")
    return _parse_address(text, text, source)


def _parse_address(address: str, text: str, source: str) -> Endpoint:
    parts = _HOST_AND_PORT.fullmatch(address)
    if not parts:
        raise EndpointError(f"{source}: {text!r} names no host and port, such as dns:///localhost:8090; allowed are {ALLOWED}")
    if not 1 <= int(parts["port"]) <= 65535:
        raise EndpointError(f"{source}: {text!r} has the port {parts['port']}; allowed are 1 to 65535")
    return Endpoint(target=f"dns:///{parts['host']}:{int(parts['port'])}")


def _parse_socket(text: str, source: str, kind_of: KindOf) -> Endpoint:
    spelled = text.removeprefix("unix:")
    if spelled.startswith("//"):
        spelled = spelled.removeprefix("//")
        if not spelled.startswith("/"):
            raise EndpointError(f"{source}: {text!r} must go on with a third slash: unix:///path, or unix:path for a relative one")
    path = os.fsdecode(urllib.parse.unquote_to_bytes(os.fsencode(spelled)))
    if not path or "\0" in path:
        raise EndpointError(f"{source}: {text!r} names no path; write unix:/path/of/the/socket")
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_LIMIT_BYTES:
        raise EndpointError(
            f"{source}: the path of {text!r} is {length} bytes long; a unix socket's may have {SOCKET_PATH_LIMIT_BYTES}: use a shorter one"
        )
    try:
        kind = kind_of(path)
    except OSError as error:
        raise EndpointError(
            f"{source}: {path!r} can't be looked at ({error.strerror}); let this process read the folders on the way"
        ) from error
    if kind is PathKind.OTHER:
        raise EndpointError(
            f"{source}: {path!r} is there but is no socket; name the socket of the machine runtime, or remove what is there"
        )
    return socket_endpoint(path)
