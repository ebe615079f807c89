"""Who may see a protected page: a bearer token's owner, where the API server says so (`--metrics-auth kubernetes`).

As Kubernetes' own components protect /metrics: a TokenReview tells whose token it is, a SubjectAccessReview whether that one may `get`
the path. What the API server said stands for a minute, and through an outage for as long as was set (`verdicts`); a token of which
nothing is known is refused then. It refuses to log a token, to ask without a bound, and to answer a stranger more than that.
"""

from __future__ import annotations

import asyncio
import enum
from typing import Final, Protocol

from loopwatch.clock import Clock
from loopwatch.kube.errors import ApiError
from loopwatch.kube.review import Reviewer, User
from loopwatch.kube.sayings import Sayings
from loopwatch.kube.transport import TransportError
from loopwatch.log import Repeated, get_logger
from loopwatch.text import clean_message
from loopwatch.web.verdicts import Verdicts

REVIEW_SECONDS: Final = 2.0
"""For each of the two reviews. A scrape has 10 s by Prometheus' default: what is remembered must be served within them."""
TURN_SECONDS: Final = 1.0
ASKED_AT_ONCE: Final = 4
"""Tokens that nobody knows cost the API server that many requests at a time, however many are sent here."""
SHORTEST_SECRET: Final = 16
REST_SECONDS: Final = 5.0
"""After a failure nobody is asked for so long: an API server that hangs costs some scrapes a wait, and not all."""
_NO_VERDICT: Final = "no verdict on a scrape's token can be had; who was allowed before stays so for the outage time, nobody else is"


class Verdict(enum.Enum):
    """What a request is answered by."""

    ALLOWED = "allowed"
    NOT_AUTHENTICATED = "not authenticated"
    """No token, or one that the API server does not accept."""
    DENIED = "denied"
    UNDECIDED = "undecided"
    """The API server can't be asked, and nothing is remembered of the token."""


class Judges(Protocol):
    """Whoever decides about a request."""

    async def judge(self, token: str, path: str) -> Verdict:
        """The verdict on the owner of `token` (empty: none was sent) who asks for `path`."""
        ...


class KubernetesAuth:
    """Judges by the API server's word; `reviewer` has REVIEW_SECONDS for a request."""

    def __init__(self, reviewer: Reviewer, clock: Clock, *, outage_seconds: float) -> None:
        self._reviewer = reviewer
        self._clock = clock
        self._verdicts = Verdicts(outage_seconds=outage_seconds)
        self._turns = asyncio.Semaphore(ASKED_AT_ONCE)
        self._rests_until = float("-inf")
        self._sayings = Sayings(clock)
        self._repeated = Repeated(clock)
        self._log = get_logger()

    async def judge(self, token: str, path: str) -> Verdict:
        """See Judges. Takes at most TURN_SECONDS and two REVIEW_SECONDS."""
        if not token:
            return Verdict.NOT_AUTHENTICATED
        if self._verdicts.stands(token, path, self._clock.monotonic()):
            return Verdict.ALLOWED
        if not await self._has_turn():
            return self._remembered(token, path)
        try:
            if self._clock.monotonic() < self._rests_until:
                return self._remembered(token, path)
            return await self._ask(token, path)
        finally:
            self._turns.release()

    async def _has_turn(self) -> bool:
        """False where too many ask at once: that one is judged by what is remembered, and the next is asked for again."""
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            return False
        return True

    async def _ask(self, token: str, path: str) -> Verdict:
        try:
            user = await self._reviewer.user_of(token)
            allowed = user is not None and await self._reviewer.may_get(user, path)
        except (ApiError, TransportError) as error:
            self._failed(error, token)
            return self._remembered(token, path)
        if self._sayings.forget():
            self._log.info("verdicts on scrapes' tokens can be had again")
        if allowed:
            self._verdicts.allow(token, path, self._clock.monotonic())
            return Verdict.ALLOWED
        self._verdicts.refuse(token, path)
        self._say_refused(user, path)
        return Verdict.DENIED if user else Verdict.NOT_AUTHENTICATED

    def _remembered(self, token: str, path: str) -> Verdict:
        known = self._verdicts.stands_in_outage(token, path, self._clock.monotonic())
        return Verdict.ALLOWED if known else Verdict.UNDECIDED

    def _failed(self, error: ApiError | TransportError, token: str) -> None:
        self._rests_until = self._clock.monotonic() + REST_SECONDS
        if self._sayings.due(error.kind):
            # No API server repeats a token in an error; some proxy between might. What is short is no token, but may be a word of ours.
            words = str(error)
            self._log.warning(_NO_VERDICT, error=words.replace(token, "…") if len(token) >= SHORTEST_SECRET else words)

    def _say_refused(self, user: User | None, path: str) -> None:
        if user is None:
            self._repeated.say(self._log.warning, "a scrape was refused: the API server does not accept its token", path=path)
            return
        self._repeated.say(
            self._log.warning,
            "a scrape was refused: its user has no right to it; grant the verb get on this nonResourceURL in a ClusterRole",
            about=user.name,
            user=clean_message(user.name, 256),
            path=path,
        )
