"""Asks the machinepoollet beside this sidecar whether its process is there.

Any HTTP status is an answer: what the process thinks of its own health is not the question, only whether somebody is there to vouch for.
It refuses proxies and redirects (this is a neighbour in the pod), and never raises for an answer that does not come.
"""

from __future__ import annotations

from typing import Final, Self

import aiohttp

TIMEOUT_SECONDS: Final = 30.0
"""A bound of last resort: whoever asks bounds each question by its own interval."""
READ_BYTES: Final = 2**14


class MachinepoolletHealthz:
    """One URL, asked over one connection. Use it as an async context manager: leaving closes the connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open a session; it connects at the first question."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BYTES,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it; a question under way ends unanswered."""
        if self._session is not None:
            await self._session.close()

    async def answers(self) -> bool:
        """True where an HTTP status came back; the body is not read."""
        if self._session is None:
            raise RuntimeError("ask within the context: async with MachinepoolletHealthz(url) as healthz")
        try:
            async with self._session.get(self._url, allow_redirects=False):
                return True
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False
