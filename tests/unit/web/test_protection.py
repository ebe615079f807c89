"""Who gets what from a protected listen address, over real sockets on the loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from loopwatch.clock import SystemClock
from loopwatch.web.auth import Verdict
from loopwatch.web.certificate import ServingCertificate
from loopwatch.web.protection import Protection
from tests.real_servers.pki import Authority
from tests.unit.web.serving import World


class OneScraper:
    """A judge who knows one token, and cannot say anything about another."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def judge(self, token: str, path: str) -> Verdict:
        """ALLOWED for `good`."""
        self.asked.append((token, path))
        verdicts = {"": Verdict.NOT_AUTHENTICATED, "good": Verdict.ALLOWED, "poor": Verdict.DENIED, "new": Verdict.UNDECIDED}
        return verdicts.get(token, Verdict.NOT_AUTHENTICATED)


@asynccontextmanager
async def protected() -> AsyncIterator[tuple[World, OneScraper]]:
    judge = OneScraper()
    world = World(page=lambda: "<p>page</p>", protection=Protection(judge))
    async with world.server.listening("127.0.0.1", 0) as world.port:
        yield world, judge


@pytest.mark.parametrize("path", ["/metrics", "/", "/page.css"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_what_is_protected_is_answered_to_whom_the_judge_allows_alone(path: str, method: str) -> None:
    async with protected() as (world, judge):
        assert (await world.ask(path, method, Authorization="Bearer good")).status == 200
        assert (await world.ask(path, method, Authorization="bearer  good")).status == 200
        denied = await world.ask(path, method, Authorization="Bearer poor")
        undecided = await world.ask(path, method, Authorization="Bearer new")
        nobody = await world.ask(path, method)
    assert (denied.status, undecided.status, nobody.status) == (403, 503, 401)
    assert nobody.header("WWW-Authenticate") == 'Bearer realm="loopwatch"'
    assert undecided.header("Retry-After") == "5"
    assert {answer.header("Cache-Control") for answer in (denied, undecided, nobody)} == {"no-store"}
    if method == "GET":
        assert "bearer token" in nobody.text
        assert "nonResourceURL" in denied.text
    assert judge.asked == [(token, path) for token in ("good", "good", "poor", "new", "")]


async def test_healthz_and_readyz_stay_open_since_probes_bring_no_token() -> None:
    async with protected() as (world, judge):
        assert (await world.ask("/healthz")).status == 200
        assert (await world.ask("/readyz")).status == 503
        world.health.readiness.met("leases listed")
        assert (await world.ask("/readyz")).status == 200
    assert judge.asked == []


async def test_nobody_is_judged_for_what_is_not_there() -> None:
    async with protected() as (world, judge):
        assert (await world.ask("/nothing")).status == 404
        assert (await world.ask("/metrics", "POST")).status == 405
    assert judge.asked == []


@pytest.mark.parametrize("path", ["/%6detrics", "/metrics?x=/healthz", "/metrics?", "//metrics", "/healthz/../metrics", "/./metrics"])
async def test_no_spelling_of_a_path_gets_past_the_judge(path: str) -> None:
    async with protected() as (world, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        status = (await reader.read()).split()[1]
        writer.close()
    assert status in {b"401", b"404"}


@pytest.mark.parametrize(
    "sent",
    ["good", "Bearer", "Bearer ", "Basic good", "Bearer good good", "Bearer good\tgood", "Bearer g\xf6\xf6d", "Bearer good, Bearer good"],
)
async def test_a_header_that_is_no_bearer_token_is_none(sent: str) -> None:
    async with protected() as (world, judge):
        assert (await world.ask("/metrics", Authorization=sent)).status == 401
    assert judge.asked == [("", "/metrics")]


async def test_two_authorizations_are_none() -> None:
    async with protected() as (world, judge):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nAuthorization: Bearer good\r\nConnection: close\r\n\r\n"
        )
        answer = await reader.read()
        writer.close()
    assert answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 400"))
    assert judge.asked in ([], [("", "/metrics")])


async def test_a_certificate_makes_it_https_alone(tmp_path: Path) -> None:
    authority = Authority.create("tests")
    pair = authority.server("localhost", ["127.0.0.1"])
    (tmp_path / "crt").write_bytes(pair.certificate)
    (tmp_path / "key").write_bytes(pair.key)
    world = World(protection=Protection(certificate=ServingCertificate(tmp_path / "crt", tmp_path / "key", SystemClock())))
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    for host in ("127.0.0.1", ""):
        async with world.server.listening(host, 0) as world.port, aiohttp.ClientSession() as session:
            async with session.get(f"https://127.0.0.1:{world.port}/healthz", ssl=context) as response:
                assert (response.status, await response.text()) == (200, "ok\n")
            with pytest.raises(aiohttp.ClientError):
                await world.ask("/healthz")
