"""What a process answers over HTTP, over real sockets on the loopback."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from structlog.testing import capture_logs

from loopwatch.metrics.values import Moment
from loopwatch.web.page import PoolRow, render
from loopwatch.web.server import ListenError
from tests.support.stepped import SteppedClock, stepped
from tests.unit.web.serving import POOLS, World


@asynccontextmanager
async def running(page: Callable[[], str] | None = None) -> AsyncIterator[World]:
    world = World(page)
    async with world.server.listening("127.0.0.1", 0) as world.port:
        yield world


async def test_metrics_is_the_stores_page_at_this_moment_under_exactly_its_content_type() -> None:
    async with running() as world:
        world.store.put(POOLS, ("a",), 90.0)
        first = await world.ask("/metrics")
        world.now = Moment(107.5, 100.0)
        later = await world.ask("/metrics")
    assert first.status == 200
    assert first.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    assert first.text.endswith('pool_age_seconds{pool="a"} 10\n')
    assert later.text.endswith('pool_age_seconds{pool="a"} 17.5\n')


async def test_a_fault_while_rendering_costs_that_answer_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as world:
        faults = [ZeroDivisionError("of a source")]

        def source() -> None:
            if faults:
                raise faults.pop()

        world.store.before_reading(source)
        world.store.put(POOLS, ("a",), 90.0)
        with caplog.at_level(logging.ERROR):
            assert (await world.ask("/metrics")).status == 500
        assert "ZeroDivisionError" in caplog.text
        assert (await world.ask("/healthz")).status == 200
        assert (await world.ask("/metrics")).status == 200


async def test_healthz_names_the_stuck_loop() -> None:
    async with running() as world:
        assert (await world.ask("/healthz")).text == "ok\n"
        loop = world.health.loops.register("lease", -1.0)
        answer = await world.ask("/healthz")
        assert answer.status == 503
        assert answer.text.startswith("stuck: lease (no turn for ")
        world.health.loops.ended(loop)
        assert (await world.ask("/healthz")).status == 200


async def test_readyz_names_what_is_missing_and_healthz_does_not_care() -> None:
    async with running() as world:
        answer = await world.ask("/readyz")
        assert (answer.status, answer.text) == (503, "not yet: leases listed\n")
        assert (await world.ask("/healthz")).status == 200
        world.health.readiness.met("leases listed")
        answer = await world.ask("/readyz")
        assert (answer.status, answer.text) == (200, "ok\n")


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/", "/page.css"])
async def test_head_is_get_without_a_body_and_nothing_else_is_answered(path: str) -> None:
    async with running(page=lambda: "<p>page</p>") as world:
        get, head = await world.ask(path), await world.ask(path, "HEAD")
        assert (head.status, head.text) == (get.status, "")
        assert head.header("Content-Type") == get.header("Content-Type")
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            answer = await world.ask(path, method)
            assert (answer.status, answer.header("Allow")) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/nothing", "/metrics/", "/%3Cscript%3E", "//metrics", "/healthz/x"])
async def test_an_unknown_path_is_404_in_plain_text_that_reflects_nothing(path: str) -> None:
    async with running() as world:
        answer = await world.ask(path, Accept="text/html")
    assert answer.status == 404
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"
    assert answer.text == "loopwatch serves /metrics, /healthz and /readyz here.\n"


async def test_every_answer_forbids_sniffing_and_hides_what_serves_it() -> None:
    async with running() as world:
        for path in ("/metrics", "/healthz", "/readyz", "/", "/nothing"):
            answer = await world.ask(path)
            assert (answer.header("X-Content-Type-Options"), answer.header("Server")) == ("nosniff", "loopwatch")


async def test_the_page_comes_under_a_strict_policy_with_its_style_beside_it() -> None:
    async with running(page=lambda: render("t", [PoolRow(pool="<b>\udc80")])) as world:
        page, style = await world.ask("/"), await world.ask("/page.css")
    assert page.status == 200
    assert page.header("Content-Type") == "text/html; charset=utf-8"
    assert page.header("Content-Security-Policy").startswith("default-src 'none'; style-src 'self'")
    assert "&lt;b&gt;?" in page.text, "a half character becomes a question mark, not an error"
    assert style.header("Content-Type") == "text/css; charset=utf-8"
    assert "color-scheme" in style.text


async def test_a_process_without_a_page_says_what_it_serves() -> None:
    async with running() as world:
        assert (await world.ask("/")).text == "loopwatch serves /metrics, /healthz and /readyz here.\n"
        assert (await world.ask("/page.css")).status == 404


async def test_requests_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with running() as world:
            await world.ask("/metrics?token=secret")
    assert "secret" not in caplog.text


async def test_an_empty_host_listens_on_every_address() -> None:
    world = World()
    async with world.server.listening("", 0) as world.port:
        assert (await world.ask("/healthz")).status == 200
        with socket.create_connection(("127.0.0.2", world.port)):
            pass
        if socket.has_dualstack_ipv6():
            with socket.create_connection(("::1", world.port)):
                pass


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
async def test_a_port_in_use_is_told_with_what_to_do(host: str) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError) as caught:
            async with World().server.listening(host, port):
                pass
    assert str(caught.value) == (
        f"can't listen on {host}:{port}: the port is in use; stop what listens there or give another with --listen-address (demo: --port)"
    )


async def test_an_address_that_is_not_ours_is_told() -> None:
    with pytest.raises(ListenError, match=r"can't listen on 192\.0\.2\.1:9808: .*give another address with --listen-address"):
        async with World().server.listening("192.0.2.1", 9808):
            pass


async def test_the_port_is_free_again_once_the_context_is_left() -> None:
    async with running() as world:
        port = world.port
        await world.ask("/healthz")
    with pytest.raises(aiohttp.ClientConnectorError):
        await world.ask("/healthz")
    async with world.server.listening("127.0.0.1", port) as again:
        assert again == port


async def test_an_open_connection_does_not_hold_up_the_end() -> None:
    async with asyncio.timeout(2.0):
        async with running() as world:
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
            await writer.drain()
        assert await reader.read() == b""
        writer.close()


@stepped
async def test_a_port_in_use_is_said_once_tried_again_and_taken_when_it_is_free() -> None:
    clock, world = SteppedClock(), World()
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with capture_logs() as logged:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(world.server.keep_listening("127.0.0.1", port, clock, 10.0))
            await clock.sleep(95.0)
            assert [line["log_level"] for line in logged] == ["warning"]
            assert "the port is in use" in logged[0]["problem"]
            taken.close()
            await clock.sleep(10.0)
            assert [line["event"] for line in logged[1:]] == ["listening"]
            with socket.create_connection(("127.0.0.1", port)):
                pass
            serving.cancel()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
