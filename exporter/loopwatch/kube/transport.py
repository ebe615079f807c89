"""The seam below every request: who sends it is passed in.

`kube/connection.py` sends over the network with kubernetes.aio; the sandbox offers a transport that calls it without a socket, so
that tests can run on a stepped clock. A transport sends one request once: it never retries, never follows, never raises for a status.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Timeout:
    """How long a request may take, in seconds.

    `connect` bounds the wait for a free or new connection, `read` each wait for more bytes (what finds a half-open connection),
    `total` the whole exchange; None leaves it unbounded, which only a watch may do.
    """

    connect: float
    read: float
    total: float | None


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to an API server; the transport adds credentials and the User-Agent."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


class Response(Protocol):
    """An answer whose head has arrived."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; look-ups ignore case."""
        ...

    async def read(self) -> bytes:
        """The whole body, decompressed."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, cut anywhere."""
        ...


class Transport(Protocol):
    """Sends requests to one API server."""

    def send(self, request: Request, timeout: Timeout) -> AbstractAsyncContextManager[Response]:
        """Send once. Entering may raise TransportError, and so may reading the body; leaving closes what is unread."""
        ...

    async def renew_credentials(self) -> bool:
        """Read the credentials again, after a 401; True where they differ from those that were refused."""
        ...

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        ...


class TransportError(Exception):
    """No answer, or half of one. `kind` is the value of the label `kind` in loopwatch_reflector_errors_total."""

    kind = "connection"


class TransportTimeout(TransportError):
    """An answer, a connection or more bytes did not come in time."""

    kind = "timeout"


class CredentialsError(TransportError):
    """The credentials can't be read or made (file missing, exec plugin failed); the request was not sent."""

    kind = "credentials"
