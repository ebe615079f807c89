"""The Transport against a real server on loopback: every trap that was found in kubernetes.aio and aiohttp, as a claim.

Both ends live on one stepped loop: seconds and hours of waiting pass at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from loopwatch import __version__
from loopwatch.kube.connection import Connection, ConnectionSettings, connect
from loopwatch.kube.read import Reader, WatchStream
from loopwatch.kube.resources import LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout
from loopwatch.kube.write import Writer
from tests.support.stepped import SteppedClock, stepped
from tests.unit.kube.api_server import serving
from tests.unit.kube.certificates import Certificates
from tests.unit.kube.kubeconfigs import data, kubeconfig, write

QUICK = Timeout(connect=5, read=5, total=5)
GET = Request("GET", "/apis", headers={"Accept": "application/json"})


@contextlib.asynccontextmanager
async def connected(path: Path, content: dict[str, Any], **settings: Any) -> AsyncIterator[Connection]:
    """A Connection by a kubeconfig, closed at the end."""
    connection = await connect(ConnectionSettings("test", write(path, content), **settings), SteppedClock())
    try:
        yield connection
    finally:
        await connection.close()


def watching(
    connection: Connection, server_timeout_seconds: float = 300, read_timeout_seconds: float = 90
) -> contextlib.AbstractAsyncContextManager[WatchStream]:
    """A watch of all Leases."""
    reader = Reader(connection, SteppedClock())
    return reader.watch(
        LEASES, resource_version="1", server_timeout_seconds=server_timeout_seconds, read_timeout_seconds=read_timeout_seconds
    )


async def lines_of(watch: contextlib.AbstractAsyncContextManager[WatchStream], lines: list[bytes]) -> None:
    """Note its lines as they come."""
    async with watch as stream:
        async for line in stream:
            lines.append(line)  # noqa: PERF401 - those before an error matter


async def fetch(connection: Connection, request: Request = GET, timeout: Timeout = QUICK) -> tuple[int, bytes]:
    """Status and body."""
    async with connection.send(request, timeout) as response:
        return response.status, await response.read()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[str]:
    """The URL of a server whose connections `serve` answers byte by byte."""
    connections: set[asyncio.Task[None]] = set()

    async def connected_to(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    async with await asyncio.start_server(connected_to, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await asyncio.gather(*connections)


def answering(raw: bytes, asked: list[bytes] | None = None) -> contextlib.AbstractAsyncContextManager[str]:
    """A server that answers the first bytes of each connection with `raw` and keeps the connection open until the client ends it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if asked is not None:
            asked.append(head)
        writer.write(raw)
        await writer.drain()
        await reader.read()

    return raw_server(serve)


@stepped
async def test_a_plain_server_needs_no_credentials(tmp_path: Path) -> None:
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        assert await fetch(connection) == (200, b"{}")
        (seen,) = server.seen
        assert "authorization" not in seen.headers
        assert seen.headers["user-agent"] == f"loopwatch/{__version__} (test)"
        assert seen.headers["accept"] == "application/json"
        assert "cookie" not in seen.headers


@stepped
async def test_the_token_is_sent(tmp_path: Path) -> None:
    """Without BearerToken among the auth settings kubernetes.aio sends none."""
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, {"token": "abc"})) as connection:
        await fetch(connection)
        assert server.tokens == ["Bearer abc"]


@stepped
async def test_a_server_behind_a_path_is_asked_below_it_and_queries_arrive_as_they_were(tmp_path: Path) -> None:
    query = (("continue", "a+b/c=d&e f%20ü"), ("fieldSelector", "metadata.name=pool-a,spec.x!=1"))
    async with serving() as server, connected(tmp_path / "k", kubeconfig(f"{server.url}/k8s/clusters/one/")) as connection:
        await fetch(connection, Request("GET", "/api/v1/namespaces/system:x", query))
        target = server.seen[0].target
        assert target.startswith("/k8s/clusters/one/api/v1/namespaces/system:x?")
        assert urllib.parse.parse_qsl(target.partition("?")[2]) == list(query)


@stepped
async def test_bodies_arrive_byte_for_byte(tmp_path: Path) -> None:
    body = b'{"metadata":{"resourceVersion":"7"},"text":"\xc3\xbc  "}'
    request = Request("PATCH", "/x", headers={"Content-Type": "application/merge-patch+json"}, body=body)
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        await fetch(connection, request)
        assert (server.seen[0].method, server.seen[0].body) == ("PATCH", body)
        assert server.seen[0].headers["content-type"] == "application/merge-patch+json"


@stepped
async def test_proxies_of_the_environment_are_not_obeyed(tmp_path: Path, certificates: Certificates) -> None:
    """NO_PROXY=10.0.0.0/8 is not understood by aiohttp: a proxy set for the pod would capture the API server's traffic."""
    pair = certificates.server("server-one", "authority-one")
    authority = str(certificates.authority("authority-one").certificate)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            patch.setenv(name, "http://127.0.0.1:1")
        patch.setenv("NO_PROXY", "10.0.0.0/8")
        async with serving() as plain, connected(tmp_path / "k", kubeconfig(plain.url)) as connection:
            assert (await fetch(connection))[0] == 200
        content = {"certificate-authority": authority}
        async with serving(pair) as tls, connected(tmp_path / "k", kubeconfig(tls.url, **content)) as connection:
            assert (await fetch(connection))[0] == 200


@stepped
async def test_the_proxy_of_the_kubeconfig_is_obeyed(tmp_path: Path) -> None:
    asked: list[bytes] = []
    async with contextlib.AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", asked))
        content = kubeconfig("http://api.example:6443", **{"proxy-url": proxy})
        connection = await stack.enter_async_context(connected(tmp_path / "k", content))
        assert await fetch(connection) == (200, b"{}")
    assert asked[0].startswith(b"GET http://api.example:6443/apis HTTP/1.1")


@stepped
async def test_redirects_are_not_followed(tmp_path: Path) -> None:
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, {"token": "t"})) as connection:

        async def away(_: web.Request) -> web.Response:
            return web.Response(status=302, headers={"Location": f"{server.url}/elsewhere"})

        server.handler = away
        assert (await fetch(connection))[0] == 302
        assert len(server.seen) == 1


@stepped
async def test_a_status_is_an_answer_and_headers_ignore_case(tmp_path: Path) -> None:
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:

        async def busy(_: web.Request) -> web.Response:
            return web.Response(status=429, headers={"Retry-After": "7"}, body=b"busy")

        server.handler = busy
        async with connection.send(GET, QUICK) as response:
            assert (response.status, response.headers.get("retry-after"), await response.read()) == (429, "7", b"busy")


@stepped
async def test_a_gzipped_list_is_decoded(tmp_path: Path) -> None:
    listing = json.dumps({"metadata": {"resourceVersion": "9"}, "items": [{"n": number} for number in range(20_000)]}).encode()

    async def zipped(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "gzip"
        return web.Response(body=gzip.compress(listing), headers={"Content-Encoding": "gzip"})

    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        server.handler = zipped
        page = await Reader(connection, SteppedClock()).list_page(MACHINE_POOLS)
        assert len(page.items) == 20_000


@stepped
@pytest.mark.parametrize("megabytes", [2, 20])
async def test_a_line_of_a_watch_may_be_megabytes_long(tmp_path: Path, megabytes: int) -> None:
    long = b'{"type":"ADDED","object":{"text":"' + b"x" * (megabytes * 2**20) + b'"}}\n'

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"short":1}\n' + long)
        await response.write(b'{"short":2}\n')
        return response

    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        server.handler = watch
        async with watching(connection) as stream:
            lines = [line async for line in stream]
        assert lines == [b'{"short":1}', long[:-1], b'{"short":2}']


@stepped
async def test_no_default_timeout_cuts_a_long_watch(tmp_path: Path) -> None:
    """kubernetes.aio's own sending has 300 s in total, also for a watch."""
    loop = asyncio.get_running_loop()

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await asyncio.sleep(60)
            await response.write(b"{}\n")
        return response

    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        server.handler = watch
        began = loop.time()
        async with watching(connection, server_timeout_seconds=7000) as stream:
            assert len([line async for line in stream]) == 100
        assert loop.time() - began >= 6000


@stepped
async def test_a_half_open_watch_is_found_by_the_read_timeout(tmp_path: Path) -> None:
    """Case 17: head and one event, then nothing and no FIN."""
    loop = asyncio.get_running_loop()
    half_open = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
    async with half_open as url, connected(tmp_path / "k", kubeconfig(url)) as connection:
        began = loop.time()
        lines: list[bytes] = []
        with pytest.raises(TransportTimeout):
            await lines_of(watching(connection), lines)
        assert lines == [b"{}"]
        assert 90 <= loop.time() - began <= 92


@stepped
async def test_a_server_that_never_answers_is_waited_for_with_a_bound(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with answering(b"") as url, connected(tmp_path / "k", kubeconfig(url)) as connection:
        began = loop.time()
        with pytest.raises(TransportTimeout):
            await fetch(connection, timeout=Timeout(connect=3, read=3, total=3))
        assert 3 <= loop.time() - began <= 4


@stepped
async def test_a_handshake_that_never_ends_is_bounded_by_connect(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with answering(b"") as url, connected(tmp_path / "k", kubeconfig(url.replace("http:", "https:"))) as connection:
        began = loop.time()
        with pytest.raises(TransportTimeout):
            await fetch(connection, timeout=Timeout(connect=2, read=90, total=None))
        assert 2 <= loop.time() - began <= 3


@stepped
async def test_a_hundred_and_fifty_watches_do_not_starve_a_request(tmp_path: Path) -> None:
    """kubernetes.aio's pool has 100 connections, and a watch holds one; the 101st request would run into its timeout."""
    release = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=b"{}")
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}\n")
        await release.wait()
        return response

    async def watch(connection: Connection, opened: asyncio.Semaphore) -> None:
        async with watching(connection) as stream:
            async for _ in stream:
                opened.release()

    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        server.handler = handle
        opened = asyncio.Semaphore(0)
        async with asyncio.TaskGroup() as group:
            for _ in range(150):  # one by one: a listening socket's queue is shorter than that
                group.create_task(watch(connection, opened))
                await opened.acquire()
            assert (await fetch(connection))[0] == 200
            release.set()


@stepped
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "POST"])
async def test_nothing_is_sent_again_when_a_reused_connection_dies(tmp_path: Path, method: str) -> None:
    """Aiohttp would send GET, PUT and DELETE once more by itself; the caller would meet its own write as a 409."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        asked.append(await reader.readuntil(b"\r\n\r\n"))

    async with raw_server(serve) as url, connected(tmp_path / "k", kubeconfig(url)) as connection:
        assert (await fetch(connection))[0] == 200
        with pytest.raises(TransportError):
            await fetch(connection, Request(method, "/x"))
    assert len(asked) == 2


@stepped
async def test_an_idle_connection_that_the_server_closed_costs_nothing(tmp_path: Path) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        await asyncio.sleep(1)

    async with raw_server(serve) as url, connected(tmp_path / "k", kubeconfig(url)) as connection:
        for _ in range(3):
            assert (await fetch(connection))[0] == 200
            await asyncio.sleep(2)
    assert connections == 3


@stepped
async def test_a_connection_refused_or_reset_is_a_transport_error(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with connected(tmp_path / "k", kubeconfig(f"http://127.0.0.1:{unused.getsockname()[1]}")) as connection:
            with pytest.raises(TransportError) as caught:
                await fetch(connection)
            assert caught.value.kind == "connection"

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
        await writer.drain()
        writer.transport.abort()

    async with raw_server(cut) as url, connected(tmp_path / "k", kubeconfig(url)) as connection:
        with pytest.raises(TransportError):
            await fetch(connection)
        with pytest.raises(TransportError):
            await lines_of(watching(connection), [])


@stepped
async def test_the_kernel_probes_idle_connections(tmp_path: Path) -> None:
    unfinished = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    async with unfinished as url, connected(tmp_path / "k", kubeconfig(url)) as connection, connection.send(GET, QUICK) as response:
        wire = response._response.connection
        assert wire is not None
        assert wire.transport is not None
        raw = wire.transport.get_extra_info("socket")
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


@stepped
async def test_leaving_a_watch_half_way_leaves_nothing_open(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}\n")
        try:
            await asyncio.sleep(1000)
        finally:
            closed.set()
        return response

    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        server.handler = watch
        with contextlib.suppress(ZeroDivisionError):
            async with watching(connection) as stream:
                async for _ in stream:
                    raise ZeroDivisionError
        async with asyncio.timeout(5):
            await closed.wait()

        async def follow() -> None:
            async with watching(connection) as stream:
                async for _ in stream.batches():
                    pass

        task = asyncio.create_task(follow())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@stepped
async def test_close_ends_what_is_under_way_and_what_comes_after(tmp_path: Path) -> None:
    async with serving() as server:
        never = asyncio.Event()

        async def hang(_: web.Request) -> web.StreamResponse:
            await never.wait()
            return web.Response()

        server.handler = hang
        connection = await connect(ConnectionSettings("test", write(tmp_path / "k", kubeconfig(server.url))), SteppedClock())
        task = asyncio.create_task(fetch(connection, timeout=Timeout(connect=600, read=600, total=None)))
        await asyncio.sleep(1)
        await connection.close()
        with pytest.raises(TransportError):
            await task
        with pytest.raises(TransportError, match="the connection is closed"):
            await fetch(connection)


@stepped
async def test_a_heartbeat_over_tls_is_one_patch_on_one_connection(tmp_path: Path, certificates: Certificates) -> None:
    pair = certificates.server("server-one", "authority-one")
    authority = certificates.authority("authority-one").certificate
    content = kubeconfig("", {"token": "t"}, **{"certificate-authority-data": data(authority)})
    async with serving(pair) as server:
        content["clusters"][0]["cluster"]["server"] = server.url
        async with connected(tmp_path / "k", content) as connection:
            writer = Writer(connection, SteppedClock(), field_manager="m")
            for _ in range(6):
                await writer.merge_patch(LEASES, ObjectKey("n", "pool-a"), {"spec": {}}, timeout_seconds=5)
                await asyncio.sleep(10)
            assert [seen.method for seen in server.seen] == ["PATCH"] * 6
            assert len({seen.connection for seen in server.seen}) == 1


@stepped
async def test_a_server_whose_certificate_is_not_of_the_authority_is_refused(tmp_path: Path, certificates: Certificates) -> None:
    pair = certificates.server("server-one", "authority-one")
    other = str(certificates.authority("authority-two").certificate)
    async with serving(pair) as server:
        async with connected(tmp_path / "k", kubeconfig(server.url, **{"certificate-authority": other})) as connection:
            with pytest.raises(TransportError, match="certificate verify failed"):
                await fetch(connection)
        async with connected(tmp_path / "k", kubeconfig(server.url, **{"insecure-skip-tls-verify": True})) as connection:
            assert (await fetch(connection))[0] == 200


@stepped
async def test_the_name_in_the_certificate_may_be_another_than_the_address(tmp_path: Path, certificates: Certificates) -> None:
    pair = certificates.server("server-one", "authority-one")
    authority = str(certificates.authority("authority-one").certificate)
    async with serving(pair) as server:
        for name, accepted in (("kubernetes.default.svc", True), ("another.example", False)):
            content = kubeconfig(server.url, **{"certificate-authority": authority, "tls-server-name": name})
            async with connected(tmp_path / "k", content) as connection:
                if accepted:
                    assert (await fetch(connection))[0] == 200
                else:
                    with pytest.raises(TransportError, match=r"another\.example"):
                        await fetch(connection)


@stepped
async def test_an_authority_without_a_key_identifier_is_trusted_on_newer_pythons_too(tmp_path: Path) -> None:
    """Python 3.13 began to ask for what many clusters' authorities lack, and Go never did."""
    create = ssl.create_default_context

    def strict(*arguments: Any, **named: Any) -> ssl.SSLContext:
        context = create(*arguments, **named)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url)) as connection:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ssl, "create_default_context", strict)
            await fetch(connection)
        assert connection._client is not None
        assert not connection._client._rest.ssl_context.verify_flags & ssl.VERIFY_X509_STRICT


def test_the_private_switch_of_aiohttp_is_still_there() -> None:
    """`_retry_connection` is what keeps it from sending twice; where it is gone, the tests above fail too, but say less."""
    assert "_retry_connection" in aiohttp.ClientSession.ATTRS
