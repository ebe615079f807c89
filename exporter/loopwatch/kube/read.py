"""The reading door: get, list a page, watch.

Answers stay bytes (msgspec.Raw for list items), so that each caller decodes only the fields it uses and a broken object costs itself.
It refuses to retry, but for the one 401 (see `exchange`): pace and back-off are the caller's, and an ApiError carries Retry-After.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError, Call, StreamError
from loopwatch.kube.exchange import UNAUTHORIZED, exchange, refusal, retry_after_header
from loopwatch.kube.lines import LineCutter
from loopwatch.kube.resources import ObjectKey, Resource
from loopwatch.kube.transport import Request, Response, Timeout, Transport, TransportTimeout

_JSON: Final = {"Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list. `continue_token` is empty on the last one; `remaining` is None where the server does not say."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str
    remaining: int | None


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_decode_list: Final = msgspec.json.Decoder(_List).decode


class WatchStream:
    """An open watch. Iterate it for lines, or `batches()` for the lines that each chunk completes (possibly none)."""

    def __init__(self, response: Response, call: Call) -> None:
        self._chunks = aiter(response.chunks())
        self._cutter = LineCutter()
        self._call = call
        self.received = False
        """Whether any byte came."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Each whole line, without its newline."""
        async for batch in self.batches():
            for line in batch:
                yield line

    def batches(self) -> _Batches:
        """The lines of each chunk; an empty list says that bytes came but no line ended."""
        return _Batches(self)

    async def _next_batch(self) -> list[bytes]:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            if self._cutter.unfinished:
                raise StreamError(f"{self._call}: the stream ended within a line") from None
            raise
        self.received = True
        return self._cutter.feed(chunk)


class _Batches:
    """A plain iterator: an async generator left half-way would be closed by the garbage collector, out of order."""

    def __init__(self, stream: WatchStream) -> None:
        self._next = stream._next_batch  # noqa: SLF001 - the two are one thing

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> list[bytes]:
        return await self._next()


class Reader:
    """Reads one API server through a transport; `timeout_seconds` holds where a call names none."""

    def __init__(self, transport: Transport, clock: Clock, *, timeout_seconds: float = 10.0) -> None:
        self._transport = transport
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    async def get(self, resource: Resource, key: ObjectKey, *, timeout_seconds: float | None = None, resource_version: str = "") -> bytes:
        """One object as JSON; with `resource_version` "0" it may come from the server's cache, without it is the newest.

        Raises ApiError, TransportError.
        """
        call = Call.on("get", resource, key)
        query = (("resourceVersion", resource_version),) if resource_version else ()
        body = await self._fetch(Request("GET", resource.object_path(key), query, _JSON), call, timeout_seconds)
        if body.lstrip()[:1] != b"{":
            raise ApiError.from_answer(200, body, call=call)
        return body

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        timeout_seconds: float | None = None,
    ) -> ListPage:
        """One page of at most `limit` objects (0: all); without `resource_version` the list is consistent and newest.

        Raises ApiError (410 where `continue_token` has expired: begin the list again), TransportError.
        """
        call = Call("list", resource, namespace)
        query = _query(
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            **{"continue": continue_token},
            resourceVersion="" if continue_token else resource_version,
        )
        body = await self._fetch(Request("GET", resource.collection_path(namespace), query, _JSON), call, timeout_seconds)
        try:
            page = _decode_list(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ApiError.from_answer(200, body, call=call) from error
        meta = page.metadata
        return ListPage(page.items or [], meta.resource_version, meta.continue_token or "", meta.remaining_item_count)

    @contextlib.asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        resource_version: str,
        server_timeout_seconds: float,
        read_timeout_seconds: float,
    ) -> AsyncIterator[WatchStream]:
        """Events after `resource_version`, bookmarks among them, until the server ends the stream after `server_timeout_seconds`.

        `read_timeout_seconds` bounds each wait for bytes: a half-open connection shows in no other way. Entering has this reader's
        own timeout. Raises ApiError (410: the version has expired, list again), TransportError, both on entering and while iterating.
        """
        call = Call("watch", resource, namespace)
        query = _query(
            watch="1",
            allowWatchBookmarks="true",
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            timeoutSeconds=str(max(math.ceil(server_timeout_seconds), 1)),
        )
        request = Request("GET", resource.collection_path(namespace), query, _JSON)
        timeout = Timeout(connect=self._timeout_seconds, read=read_timeout_seconds, total=None)
        async with contextlib.AsyncExitStack() as stack:
            response = await self._open(stack, request, timeout, call)
            yield WatchStream(response, call)

    async def _open(self, stack: contextlib.AsyncExitStack, request: Request, timeout: Timeout, call: Call) -> Response:
        """A 200 answer, kept open by `stack`; the same 401 rule as everywhere."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response = await self._enter(stack, request, timeout)
                if response.status == UNAUTHORIZED:
                    await stack.aclose()
                    await self._transport.renew_credentials()
                    response = await self._enter(stack, request, timeout)
                if response.status == 200:
                    return response
                body = await response.read()
        except TimeoutError as error:
            raise TransportTimeout(f"{call}: no answer within {self._timeout_seconds:g} s") from error
        raise refusal(response.status, retry_after_header(response), body, call, self._clock)

    async def _enter(self, stack: contextlib.AsyncExitStack, request: Request, timeout: Timeout) -> Response:
        return await stack.enter_async_context(self._transport.send(request, timeout))

    async def _fetch(self, request: Request, call: Call, timeout_seconds: float | None) -> bytes:
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        return await exchange(self._transport, self._clock, request, call, seconds)


def _query(**parameters: str) -> tuple[tuple[str, str], ...]:
    """Those parameters that have a value."""
    return tuple((name, value) for name, value in parameters.items() if value)
