"""Who is let in, when the API server answers and when it does not."""

from __future__ import annotations

import asyncio

import pytest

from loopwatch.kube.review import Reviewer
from loopwatch.web.auth import ASKED_AT_ONCE, REST_SECONDS, REVIEW_SECONDS, TURN_SECONDS, KubernetesAuth, Verdict
from loopwatch.web.verdicts import KEPT_SECONDS
from tests.support.logs import Lines
from tests.support.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS, ReviewApi
from tests.support.stepped import SteppedClock, stepped

OUTAGE_SECONDS = 900.0
PATH = "/metrics"
SCRAPER = "scrapers-token"
SECRET = "eyJhbGciOiJSUzI1NiJ9.secret"


class World:
    """A judge and the API server that it asks, which knows one scraper."""

    def __init__(self, outage_seconds: float = OUTAGE_SECONDS) -> None:
        self.clock = SteppedClock()
        self.api = ReviewApi()
        self.api.permit(SCRAPER, "prometheus")
        self.auth = KubernetesAuth(
            Reviewer(self.api, self.clock, timeout_seconds=REVIEW_SECONDS), self.clock, outage_seconds=outage_seconds
        )

    async def judge(self, token: str = SCRAPER, path: str = PATH) -> Verdict:
        """One request."""
        return await self.auth.judge(token, path)


@stepped
async def test_the_four_answers() -> None:
    world = World()
    world.api.users["other"] = "curious"
    assert await world.judge() is Verdict.ALLOWED
    assert await world.judge("other") is Verdict.DENIED
    assert await world.judge("wrong") is Verdict.NOT_AUTHENTICATED
    world.api.trouble = "refused"
    assert await world.judge("new") is Verdict.UNDECIDED


@stepped
async def test_without_a_token_nobody_is_asked() -> None:
    world = World()
    assert await world.judge("") is Verdict.NOT_AUTHENTICATED
    assert world.api.asked == []


@stepped
async def test_a_token_that_is_nobodys_costs_one_review_and_one_that_is_somebodys_two() -> None:
    world = World()
    await world.judge("wrong")
    await world.judge()
    assert [path for path, _ in world.api.asked] == [TOKEN_REVIEWS, TOKEN_REVIEWS, ACCESS_REVIEWS]


@stepped
async def test_within_a_minute_an_allowed_scraper_is_not_asked_about_again() -> None:
    world = World()
    await world.judge()
    for _ in range(3):
        await world.clock.sleep(KEPT_SECONDS / 4)
        assert await world.judge() is Verdict.ALLOWED
    assert len(world.api.asked) == 2
    await world.clock.sleep(KEPT_SECONDS / 4)
    assert await world.judge() is Verdict.ALLOWED
    assert len(world.api.asked) == 4


@stepped
async def test_each_path_has_a_verdict_of_its_own() -> None:
    world = World()
    assert await world.judge() is Verdict.ALLOWED
    assert await world.judge(path="/") is Verdict.DENIED


@stepped
async def test_a_right_that_is_taken_away_ends_with_the_minute_and_does_not_come_back_in_an_outage() -> None:
    world = World()
    await world.judge()
    world.api.allowed.clear()
    assert await world.judge() is Verdict.ALLOWED
    await world.clock.sleep(KEPT_SECONDS)
    assert await world.judge() is Verdict.DENIED
    world.api.trouble = "refused"
    assert await world.judge() is Verdict.UNDECIDED


@stepped
async def test_a_right_that_is_granted_is_seen_at_the_next_scrape() -> None:
    world = World()
    world.api.users["other"] = "curious"
    assert await world.judge("other") is Verdict.DENIED
    world.api.allowed.add(("curious", PATH))
    assert await world.judge("other") is Verdict.ALLOWED


@pytest.mark.parametrize("trouble", ["refused", "hangs", 401, 403, 429, 500, 503])
@stepped
async def test_in_an_outage_an_allowed_scraper_is_let_in_up_to_the_outage_time_and_a_new_one_is_not(trouble: str | int) -> None:
    world = World()
    await world.judge()
    began = world.clock.monotonic()
    world.api.trouble = trouble
    while world.clock.monotonic() - began < OUTAGE_SECONDS - 30.0:
        await world.clock.sleep(15.0)
        asked_at = world.clock.monotonic()
        assert await world.judge() is Verdict.ALLOWED
        assert world.clock.monotonic() - asked_at <= TURN_SECONDS + REVIEW_SECONDS, "a scrape is not kept waiting"
        assert await world.judge("new") is Verdict.UNDECIDED
    await world.clock.sleep(30.0)
    assert await world.judge() is Verdict.UNDECIDED
    world.api.trouble = ""
    await world.clock.sleep(REST_SECONDS)
    assert await world.judge() is Verdict.ALLOWED


@stepped
async def test_an_outage_between_the_two_reviews_is_an_outage() -> None:
    world = World()
    await world.judge()
    await world.clock.sleep(KEPT_SECONDS)
    world.api.seconds = 1.0
    async with asyncio.TaskGroup() as tasks:
        scrape = tasks.create_task(world.judge())
        await world.clock.sleep(1.5)
        world.api.trouble = 503
    assert scrape.result() is Verdict.ALLOWED


@stepped
async def test_without_an_outage_time_an_outage_lets_nobody_in_after_the_minute() -> None:
    world = World(outage_seconds=0.0)
    await world.judge()
    world.api.trouble = "refused"
    assert await world.judge() is Verdict.ALLOWED
    await world.clock.sleep(KEPT_SECONDS)
    assert await world.judge() is Verdict.UNDECIDED


@stepped
async def test_after_a_failure_the_api_server_is_left_alone_for_a_while() -> None:
    world = World()
    world.api.trouble = "refused"
    for _ in range(50):
        assert await world.judge("new") is Verdict.UNDECIDED
    assert len(world.api.asked) == 1
    await world.clock.sleep(REST_SECONDS)
    await world.judge("new")
    assert len(world.api.asked) == 2


@stepped
async def test_strangers_by_the_hundred_are_few_requests_at_a_time_and_lock_out_nobody_who_is_known() -> None:
    world = World()
    await world.judge()
    await world.clock.sleep(KEPT_SECONDS)
    world.api.seconds = 0.5
    async with asyncio.TaskGroup() as tasks:
        strangers = [tasks.create_task(world.judge(f"stranger-{number}")) for number in range(100)]
        scrape = tasks.create_task(world.judge())
    assert world.api.most_at_once == ASKED_AT_ONCE
    assert {task.result() for task in strangers} == {Verdict.NOT_AUTHENTICATED, Verdict.UNDECIDED}
    assert scrape.result() is Verdict.ALLOWED
    assert await world.judge("stranger-0") is Verdict.NOT_AUTHENTICATED, "a queue is no failure of the API server"


@stepped
async def test_a_scrape_that_is_given_up_leaves_its_turn_to_the_next() -> None:
    world = World()
    world.api.trouble = "hangs"
    for _ in range(2 * ASKED_AT_ONCE):
        async with asyncio.TaskGroup() as tasks:
            scrape = tasks.create_task(world.judge("new"))
            await world.clock.sleep(0.1)
            scrape.cancel()
    world.api.trouble = ""
    assert await world.judge() is Verdict.ALLOWED


@stepped
async def test_an_outage_is_said_once_a_minute_and_its_end_once() -> None:
    world, lines = World(), Lines()
    with lines.caught():
        world.api.trouble = 403
        for _ in range(13):
            await world.judge()
            await world.clock.sleep(10.0)
        world.api.trouble = ""
        await world.judge()
        await world.judge()
    warnings = lines.texts("warning")
    assert len(warnings) == 3
    assert "no right to create tokenreviews.authentication.k8s.io; grant that verb in its Role or ClusterRole" in warnings[0]
    assert lines.texts("info") == ["verdicts on scrapes' tokens can be had again"]


@stepped
async def test_a_refusal_is_said_once_a_minute_with_the_user_and_what_would_help() -> None:
    world, lines = World(), Lines()
    world.api.users["other"] = "a\x1b[2Jcurious"
    with lines.caught():
        for _ in range(5):
            await world.judge("other")
            await world.judge("wrong")
    refused, unknown = lines.texts()
    assert "grant the verb get on this nonResourceURL in a ClusterRole" in refused
    assert "user=a [2Jcurious path=/metrics" in refused
    assert "does not accept its token" in unknown


@stepped
async def test_no_token_is_ever_logged_not_even_one_that_comes_back_in_an_error() -> None:
    world, lines = World(), Lines()
    with lines.caught():
        world.api.trouble, world.api.body = 500, f"<html>you sent {SECRET}</html>".encode()
        await world.judge(SECRET)
        world.api.trouble = ""
        await world.clock.sleep(REST_SECONDS)
        await world.judge(SECRET)
    assert lines.texts()
    assert not any(SECRET in line for line in lines.texts())
