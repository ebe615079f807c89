"""An API server that only reviews: who a token's user is, and what that user may get. A Transport, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from loopwatch.kube.transport import Request, Timeout, TransportError

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """The body."""
        return self.body

    def chunks(self) -> AsyncIterator[bytes]:
        """Nobody watches a review."""
        raise NotImplementedError


class ReviewApi:
    """Knows `users` by token, and which (user, path) are `allowed`. `trouble`: "" none, "refused", "hangs", or an HTTP status."""

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        self.allowed: set[tuple[str, str]] = set()
        self.trouble: str | int = ""
        self.body = b""
        self.seconds = 0.0
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.at_once = 0
        self.most_at_once = 0

    def permit(self, token: str, user: str, path: str = "/metrics") -> None:
        """From now on this token is that user's, who may get the path."""
        self.users[token] = user
        self.allowed.add((user, path))

    @asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncIterator[_Answer]:
        """Answer a review."""
        del timeout
        self.asked.append((request.path, json.loads(request.body or b"{}")))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
            yield await self._answer(request)
        finally:
            self.at_once -= 1

    async def renew_credentials(self) -> bool:
        """There are none."""
        return False

    async def close(self) -> None:
        """Nothing is open."""

    async def _answer(self, request: Request) -> _Answer:
        if self.trouble == "refused":
            raise TransportError("connection refused")
        if self.trouble == "hangs":
            await asyncio.Event().wait()
        if isinstance(self.trouble, int):
            return _Answer(self.trouble, self.body, {})
        spec = json.loads(request.body or b"{}")["spec"]
        if request.path == TOKEN_REVIEWS:
            return _Answer(201, json.dumps({"status": self._token_status(spec["token"])}).encode(), {})
        allowed = (spec["user"], spec["nonResourceAttributes"]["path"]) in self.allowed
        return _Answer(201, json.dumps({"status": {"allowed": allowed, "reason": "RBAC"}}).encode(), {})

    def _token_status(self, token: str) -> dict[str, Any]:
        if token not in self.users:
            return {"user": {}, "error": "[invalid bearer token]"}
        extra = {"authentication.kubernetes.io/credential-id": ["JTI=1"]}
        return {"authenticated": True, "user": {"username": self.users[token], "uid": "u", "groups": ["g"], "extra": extra}}
