"""One request and its whole answer, by the rule that both doors keep: a 401 renews the credentials once, and the request goes once more.

A token may be refused a moment before its file is replaced, or the process may have read it a moment too early; a second 401 is the
answer. Nothing else is ever sent twice here: whether to try again after an error or a lost answer is for the caller to decide, who
knows what the request meant.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError, Call, retry_after_seconds
from loopwatch.kube.transport import Request, Response, Timeout, Transport, TransportTimeout

UNAUTHORIZED = 401


class _Answer(NamedTuple):
    status: int
    retry_after: str | None
    body: bytes


async def exchange(transport: Transport, clock: Clock, request: Request, call: Call, timeout_seconds: float) -> bytes:
    """The body of a 2xx answer; everything, credentials included, has `timeout_seconds`.

    Raises ApiError for any other status, TransportError for none.
    """
    timeout = Timeout(connect=timeout_seconds, read=timeout_seconds, total=timeout_seconds)
    try:
        async with asyncio.timeout(timeout_seconds):
            answer = await _send(transport, request, timeout)
            if answer.status == UNAUTHORIZED:
                await transport.renew_credentials()
                answer = await _send(transport, request, timeout)
    except TimeoutError as error:
        raise TransportTimeout(f"{call}: no answer within {timeout_seconds:g} s") from error
    if 200 <= answer.status < 300:
        return answer.body
    raise refusal(answer.status, answer.retry_after, answer.body, call, clock)


def refusal(status: int, retry_after: str | None, body: bytes, call: Call, clock: Clock) -> ApiError:
    """The ApiError of an answer that is no success."""
    return ApiError.from_answer(status, body, call=call, retry_after=retry_after_seconds(retry_after, clock.utcnow()))


def retry_after_header(response: Response) -> str | None:
    """The Retry-After of an answer, as it stands."""
    return response.headers.get("Retry-After")


async def _send(transport: Transport, request: Request, timeout: Timeout) -> _Answer:
    async with transport.send(request, timeout) as response:
        return _Answer(response.status, retry_after_header(response), await response.read())
