"""What a real API server was asked, from its own audit log: the judge of every claim about request counts."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},  # the server's own loopback client
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
        {"level": "Metadata"},  # all else: also a request that nobody thought of must be counted
    ],
}


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """One request as the server saw it.

    `resource` is `leases`, `machinepools/status`, …, or empty for a path that is no resource. A watch under way has `finished` None.
    The times are the server's wall clock: on one machine they can be compared with each other, and are never used for deadlines.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    path: str
    user: str
    user_agent: str
    code: int
    received: datetime.datetime
    finished: datetime.datetime | None


def parse(line: bytes) -> tuple[str, AuditedRequest]:
    """One line of the log: the request's id (a watch has two lines) and the request."""
    event = json.loads(line)
    target = event.get("objectRef", {})
    subresource = target.get("subresource", "")
    return event["auditID"], AuditedRequest(
        verb=event["verb"],
        resource=target.get("resource", "") + (f"/{subresource}" if subresource else ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        path=event["requestURI"],
        user=event.get("user", {}).get("username", ""),
        user_agent=event.get("userAgent", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        received=datetime.datetime.fromisoformat(event["requestReceivedTimestamp"]),
        finished=datetime.datetime.fromisoformat(event["stageTimestamp"]) if event["stage"] == "ResponseComplete" else None,
    )


@dataclass(frozen=True, slots=True)
class AuditLog:
    """The log file of one server. Lines are written before the answer leaves, so what was answered can be read."""

    path: Path

    def position(self) -> int:
        """Where the log ends now; hand it to `requests` to see only what came later."""
        return self.path.stat().st_size if self.path.exists() else 0

    def requests(self, *, since: int = 0, user_agent: str = "") -> list[AuditedRequest]:
        """Requests in the order they were received, each once, from clients whose User-Agent holds this text."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(since)
            whole_lines = [line for line in file if line.endswith(b"\n")]
        newest = dict(parse(line) for line in whole_lines)
        return sorted((request for request in newest.values() if user_agent in request.user_agent), key=lambda request: request.received)
