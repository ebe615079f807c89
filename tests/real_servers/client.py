"""An administrator's client for tests: blocking, one connection a request, no retries, no cleverness.

It stands apart from loopwatch's own client on purpose: what judges must not share the faults of what is judged.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
REQUEST_SECONDS = 30.0


class UnexpectedStatus(Exception):
    """An answer that the test did not expect; its text is the whole answer."""


class Answer(NamedTuple):
    """Status and decoded body ({} where there is none; text where it is no JSON)."""

    status: int
    body: Any

    def expect(self, *statuses: int) -> Any:
        """The body, if the status is one of these."""
        if self.status not in statuses:
            raise UnexpectedStatus(f"expected {statuses}, got {self.status}: {self.body}")
        return self.body


class WatchEvent(NamedTuple):
    """One event, and when this process read it (time.monotonic, seconds)."""

    at: float
    type: str
    object: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Client:
    """Speaks to one API server with one certificate, or with one token in `headers`."""

    host: str
    port: int
    tls: ssl.SSLContext
    user_agent: str = "loopwatch-tests"
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = JSON, timeout_seconds: float = REQUEST_SECONDS
    ) -> Answer:
        """Send once; OSError when there is no answer."""
        return self.send(method, path, None if body is None else json.dumps(body).encode(), content_type, timeout_seconds)

    def send(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON, timeout_seconds: float = REQUEST_SECONDS
    ) -> Answer:
        """As `request`, with a body as it stands."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=timeout_seconds, context=self.tls)
        try:
            headers = {"Accept": JSON, "Content-Type": content_type, "User-Agent": self.user_agent} | self.headers
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, _decoded(response.read()))
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """GET."""
        return self.request("GET", path)

    def create(self, collection: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """POST; the object as stored, or UnexpectedStatus."""
        stored: dict[str, Any] = self.request("POST", collection, manifest).expect(201)
        return stored

    def merge_patch(self, path: str, patch: dict[str, Any]) -> dict[str, Any]:
        """PATCH by JSON merge patch; the object as stored, or UnexpectedStatus."""
        stored: dict[str, Any] = self.request("PATCH", path, patch, MERGE_PATCH).expect(200)
        return stored

    def apply(self, path: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply, by force: creates or updates; the object as stored, or UnexpectedStatus."""
        query = f"?fieldManager={self.user_agent}&force=true"
        stored: dict[str, Any] = self.request("PATCH", path + query, manifest, APPLY_PATCH).expect(200, 201)
        return stored

    def apply_yaml(self, path: str, manifest: str) -> dict[str, Any]:
        """Server-side apply of a manifest as it stands: the server reads the YAML."""
        query = f"?fieldManager={self.user_agent}&force=true"
        stored: dict[str, Any] = self.send("PATCH", path + query, manifest.encode(), APPLY_PATCH).expect(200, 201)
        return stored

    def delete(self, path: str) -> Answer:
        """DELETE; a 404 is as good as a 200."""
        answer = self.request("DELETE", path)
        answer.expect(200, 202, 404)
        return answer

    def watch(self, path: str, resource_version: str, within_seconds: float) -> WatchStream:
        """Events of a collection after `resource_version`; the server ends the stream after that many seconds."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=within_seconds + REQUEST_SECONDS, context=self.tls)
        query = f"?watch=1&resourceVersion={resource_version}&timeoutSeconds={max(1, round(within_seconds))}"
        connection.request("GET", path + query, headers={"Accept": JSON, "User-Agent": self.user_agent})
        response = connection.getresponse()
        if response.status != http.client.OK:
            body = response.read()
            connection.close()
            raise UnexpectedStatus(f"watch of {path}: {response.status}: {_decoded(body)}")
        return WatchStream(connection, response)


class WatchStream:
    """An open watch. Iterate in one thread; `close` may be called from another and ends the iteration."""

    def __init__(self, connection: http.client.HTTPSConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self._closed = False

    def __iter__(self) -> Iterator[WatchEvent]:
        try:
            while line := self._response.readline():
                event = json.loads(line)
                yield WatchEvent(time.monotonic(), event["type"], event["object"])
        except (OSError, http.client.HTTPException, ValueError):
            if not self._closed:
                raise
        finally:
            self._connection.close()

    def close(self) -> None:
        """End it; harmless when it has ended."""
        self._closed = True
        with contextlib.suppress(OSError, AttributeError):  # both mean that the connection is gone already
            self._connection.sock.shutdown(socket.SHUT_RDWR)


def _decoded(body: bytes) -> Any:
    if not body:
        return {}
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
