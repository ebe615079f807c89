"""Credentials that change while requests are under way: noticed in time, at no request's cost, and never given up for nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from loopwatch.kube.connection import Connection, ConnectionSettings, connect
from loopwatch.kube.errors import ApiError, ConfigError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import Request, Timeout, TransportError
from loopwatch.kube.write import Writer
from tests.support.stepped import SteppedClock, stepped
from tests.unit.kube.api_server import ApiServer, serving
from tests.unit.kube.certificates import Certificates, Pair
from tests.unit.kube.kubeconfigs import data, kubeconfig, write

QUICK = Timeout(connect=5, read=5, total=5)
GET = Request("GET", "/apis")


@contextlib.asynccontextmanager
async def connected(settings: ConnectionSettings) -> AsyncIterator[Connection]:
    """A Connection, closed at the end."""
    connection = await connect(settings, SteppedClock())
    try:
        yield connection
    finally:
        await connection.close()


async def fetch(connection: Connection) -> int:
    """The status of a request."""
    async with connection.send(GET, QUICK) as response:
        await response.read()
        return response.status


def in_cluster(server: ApiServer, directory: Path) -> ConnectionSettings:
    """As in a pod: the address by environment, token and authority by files."""
    _, _, address = server.url.partition("://")
    host, _, port = address.partition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    return ConnectionSettings("test", environ=environ, service_account=directory)


def mount(directory: Path, token: str, authority: Path) -> None:
    """Put a ServiceAccount's files there as the kubelet does: a new folder, and a link that is moved to it at once."""
    fresh = directory / f"..{len(list(directory.iterdir()))}"
    fresh.mkdir()
    (fresh / "token").write_text(token)
    (fresh / "ca.crt").write_bytes(authority.read_bytes())
    link = directory / "..tmp"
    link.symlink_to(fresh.name)
    link.rename(directory / "..data")
    for name in ("token", "ca.crt"):
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")


def pair_of(certificates: Certificates, name: str, authority: str = "authority-one") -> dict[str, Any]:
    """A client certificate as a user's data."""
    pair = certificates.client(name, authority)
    return {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}


@pytest.fixture
def server_pair(certificates: Certificates) -> Pair:
    """The API server's certificate."""
    return certificates.server("server-one", "authority-one")


@pytest.fixture
def authority(certificates: Certificates) -> Path:
    """Whom to trust."""
    return certificates.authority("authority-one").certificate


# -- in the cluster


@stepped
async def test_in_the_cluster_the_mounted_token_is_sent_without_its_newline(tmp_path: Path, server_pair: Pair, authority: Path) -> None:
    """A newline at the end makes aiohttp refuse every request."""
    mount(tmp_path, "token-a\n", authority)
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:
        assert await fetch(connection) == 200
        assert server.tokens == ["Bearer token-a"]


@stepped
async def test_a_rotated_token_is_used_within_the_minute_and_on_the_same_connection(
    tmp_path: Path, server_pair: Pair, authority: Path
) -> None:
    mount(tmp_path, "token-a", authority)
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:
        await fetch(connection)
        mount(tmp_path, "token-b", authority)
        await asyncio.sleep(10)
        await fetch(connection)
        assert server.tokens == ["Bearer token-a", "Bearer token-b"]
        assert server.seen[0].connection == server.seen[1].connection
        assert connection.stats.changes_total == 1


@stepped
async def test_a_token_replaced_without_a_trace_is_used_within_the_minute(tmp_path: Path, server_pair: Pair, authority: Path) -> None:
    """Same length, same inode, same time: only reading tells."""
    mount(tmp_path, "token-a", authority)
    token = tmp_path / "token"
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:
        await fetch(connection)
        before = token.stat()
        token.write_text("token-b")
        os.utime(token, ns=(before.st_atime_ns, before.st_mtime_ns))
        await asyncio.sleep(60)
        await fetch(connection)
        assert server.tokens[-1] == "Bearer token-b"


@stepped
async def test_a_401_reads_the_token_again_at_once(tmp_path: Path, server_pair: Pair, authority: Path) -> None:
    mount(tmp_path, "token-a", authority)
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:

        async def only_b(request: web.Request) -> web.Response:
            known = request.headers.get("Authorization") == "Bearer token-b"
            return web.Response(status=200 if known else 401, body=b'{"metadata":{}}')

        server.handler = only_b
        await asyncio.sleep(5)
        with contextlib.suppress(ApiError):
            await Reader(connection, SteppedClock()).list_page(LEASES)
        mount(tmp_path, "token-b", authority)
        await Reader(connection, SteppedClock()).list_page(LEASES)
        assert server.tokens[-2:] == ["Bearer token-a", "Bearer token-b"]


@stepped
async def test_requests_that_are_refused_together_read_again_once(tmp_path: Path, server_pair: Pair, authority: Path) -> None:
    mount(tmp_path, "token-a", authority)
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:

        async def only_b(request: web.Request) -> web.Response:
            await asyncio.sleep(0.2)
            return web.Response(status=200 if request.headers.get("Authorization") == "Bearer token-b" else 401, body=b'{"metadata":{}}')

        server.handler = only_b
        reader = Reader(connection, SteppedClock())
        requests = [asyncio.create_task(reader.list_page(LEASES)) for _ in range(10)]
        await asyncio.sleep(0.1)
        mount(tmp_path, "token-b", authority)
        await asyncio.gather(*requests)
        assert len(server.seen) == 20
        assert connection.stats.changes_total == 1
        assert await connection.renew_credentials() is True, "what is in force is not what was refused"


@stepped
async def test_a_heartbeat_misses_at_most_one_beat_when_the_token_is_replaced_too_late(
    tmp_path: Path, server_pair: Pair, authority: Path
) -> None:
    """Case 19: the API server switches to token B, the file follows 5 s later."""
    mount(tmp_path, "token-a", authority)
    accepted = "Bearer token-a"

    async def check(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers.get("Authorization") == accepted else 401, body=b"{}")

    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:
        server.handler = check
        writer = Writer(connection, SteppedClock(), field_manager="m")
        beats: list[bool] = []
        for second in range(0, 300, 10):
            if second == 120:
                accepted = "Bearer token-b"
            beats.append(False)
            with contextlib.suppress(ApiError):
                await writer.merge_patch(LEASES, ObjectKey("n", "pool-a"), {}, timeout_seconds=5)
                beats[-1] = True
            await asyncio.sleep(5)
            if second == 120:
                mount(tmp_path, "token-b", authority)
            await asyncio.sleep(5)
        assert beats.count(False) <= 1
        assert beats[13:] == [True] * 17


@stepped
async def test_a_token_file_that_is_missing_at_the_start_is_a_config_error(tmp_path: Path, server_pair: Pair, authority: Path) -> None:
    shutil.copy(authority, tmp_path / "ca.crt")
    async with serving(server_pair) as server:
        with pytest.raises(ConfigError, match=r"token: can't be read: No such file or directory; mount the ServiceAccount's token"):
            await connect(in_cluster(server, tmp_path), SteppedClock())
        (tmp_path / "token").write_text("\n")
        with pytest.raises(ConfigError, match="is empty"):
            await connect(in_cluster(server, tmp_path), SteppedClock())


@stepped
@pytest.mark.parametrize("content", [None, "", "half a token\nand a line"])
async def test_a_token_file_that_cannot_be_used_later_keeps_the_old_token_and_says_so_once_a_minute(
    tmp_path: Path, server_pair: Pair, authority: Path, content: str | None
) -> None:
    """kubernetes.aio would raise FileNotFoundError out of the request."""
    shutil.copy(authority, tmp_path / "ca.crt")
    token = tmp_path / "token"
    token.write_text("token-a")
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:
        with capture_logs() as logs:
            if content is None:
                token.unlink()
            else:
                token.write_text(content)
            for _ in range(30):
                await asyncio.sleep(10)
                assert await fetch(connection) == 200
            assert set(server.tokens) == {"Bearer token-a"}
            assert connection.stats.failures_total == 30
            assert 5 <= len(logs) <= 6
            assert str(token) in connection.stats.last_failure
            assert "half" not in str(logs), "what is in the file may be a secret"
            token.write_text("token-b")
            await asyncio.sleep(2)
            await fetch(connection)
        assert server.tokens[-1] == "Bearer token-b"
        assert connection.stats.last_failure == ""
        assert [entry["event"] for entry in logs[-2:]] == ["credentials can be read again", "credentials changed"]


@stepped
async def test_an_authority_that_was_replaced_is_trusted_no_longer(
    tmp_path: Path, certificates: Certificates, server_pair: Pair, authority: Path
) -> None:
    mount(tmp_path, "token-a", authority)
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:
        assert await fetch(connection) == 200
        mount(tmp_path, "token-a", certificates.authority("authority-two").certificate)
        await asyncio.sleep(2)
        with pytest.raises(TransportError, match="certificate verify failed"):
            await fetch(connection)


@stepped
async def test_a_server_that_comes_back_with_a_certificate_of_the_new_authority_is_trusted(
    tmp_path: Path, certificates: Certificates, server_pair: Pair, authority: Path
) -> None:
    mount(tmp_path, "token-a", authority)
    async with contextlib.AsyncExitStack() as stack:
        first = await stack.enter_async_context(serving(server_pair))
        connection = await connect(in_cluster(first, tmp_path), SteppedClock())
        assert await fetch(connection) == 200
        port = int(first.url.rpartition(":")[2])
        await stack.aclose()
        async with serving(certificates.server("server-two", "authority-two"), port=port):
            with pytest.raises(TransportError, match="certificate verify failed"):
                await fetch(connection)
            mount(tmp_path, "token-a", certificates.authority("authority-two").certificate)
            await asyncio.sleep(1)
            assert await fetch(connection) == 200
        await connection.close()


@stepped
async def test_a_file_that_was_moved_away_and_back_is_well_again_at_the_next_look(
    tmp_path: Path, server_pair: Pair, authority: Path
) -> None:
    shutil.copy(authority, tmp_path / "ca.crt")
    token = tmp_path / "token"
    token.write_text("token-a")
    async with serving(server_pair) as server, connected(in_cluster(server, tmp_path)) as connection:
        away = token.rename(tmp_path / "away")
        await asyncio.sleep(2)
        await fetch(connection)
        assert "No such file" in connection.stats.last_failure
        away.rename(token)
        await asyncio.sleep(2)
        await fetch(connection)
        assert connection.stats.last_failure == ""


# -- by kubeconfig


@stepped
async def test_a_replaced_client_certificate_is_used_and_costs_no_request(
    tmp_path: Path, certificates: Certificates, server_pair: Pair, authority: Path
) -> None:
    path = tmp_path / "kubeconfig"
    trust = {"certificate-authority-data": data(authority)}
    never = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=b"{}")
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"n":1}\n')
        await never.wait()
        await response.write(b'{"n":2}\n')
        return response

    async with serving(server_pair, clients=authority) as server:
        server.handler = handle
        write(path, kubeconfig(server.url, pair_of(certificates, "one"), **trust))
        async with connected(ConnectionSettings("test", path)) as connection:
            watch = Reader(connection, SteppedClock()).watch(
                LEASES, resource_version="1", server_timeout_seconds=600, read_timeout_seconds=600
            )
            async with watch as stream:
                lines = aiter(stream)
                assert await anext(lines) == b'{"n":1}'
                write(path, kubeconfig(server.url, pair_of(certificates, "two"), **trust))
                await asyncio.sleep(59)
                assert await fetch(connection) == 200
                assert len(connection._retired) == 1
                never.set()
                assert await anext(lines) == b'{"n":2}', "the watch of the old certificate goes on"
            assert [seen.client for seen in server.seen] == ["one", "two"]
            assert connection._retired == set(), "and its connections are closed after it"


@stepped
async def test_certificate_and_key_files_are_used_when_both_are_new_and_not_before(
    tmp_path: Path, certificates: Certificates, server_pair: Pair, authority: Path
) -> None:
    one, two = certificates.client("one", "authority-one"), certificates.client("two", "authority-one")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(one.certificate.read_bytes())
    key.write_bytes(one.key.read_bytes())
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    async with serving(server_pair, clients=authority) as server:
        path = write(tmp_path / "kubeconfig", kubeconfig(server.url, user, **{"certificate-authority": str(authority)}))
        async with connected(ConnectionSettings("test", path)) as connection:
            await fetch(connection)
            with capture_logs() as logs:
                certificate.write_bytes(two.certificate.read_bytes())
                await asyncio.sleep(2)
                await fetch(connection)
                assert "certificates can't be used" in connection.stats.last_failure
                key.write_bytes(two.key.read_bytes())
                await asyncio.sleep(2)
                await fetch(connection)
            assert [seen.client for seen in server.seen] == ["one", "one", "two"]
            assert "PRIVATE" not in str(logs)


@stepped
async def test_no_key_is_ever_written_to_a_disk(
    tmp_path: Path, certificates: Certificates, server_pair: Pair, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubernetes.aio leaves a temporary file for each certificate and key until the process ends, and needs a directory for them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such directory"))
    async with serving(server_pair, clients=authority) as server:
        path = write(
            tmp_path / "k", kubeconfig(server.url, pair_of(certificates, "one"), **{"certificate-authority-data": data(authority)})
        )
        async with connected(ConnectionSettings("test", path)) as connection:
            assert await fetch(connection) == 200
            assert server.seen[0].client == "one"


@stepped
async def test_a_401_takes_a_replaced_client_certificate_at_once(
    tmp_path: Path, certificates: Certificates, server_pair: Pair, authority: Path
) -> None:
    path = tmp_path / "kubeconfig"
    trust = {"certificate-authority-data": data(authority)}
    async with serving(server_pair, clients=authority) as server:

        async def only_two(_: web.Request) -> web.Response:
            return web.Response(status=200 if server.seen[-1].client == "two" else 401, body=b'{"metadata":{}}')

        server.handler = only_two
        write(path, kubeconfig(server.url, pair_of(certificates, "one"), **trust))
        async with connected(ConnectionSettings("test", path)) as connection:
            write(path, kubeconfig(server.url, pair_of(certificates, "two"), **trust))
            await Reader(connection, SteppedClock()).list_page(MACHINE_POOLS)
            assert [seen.client for seen in server.seen] == ["one", "two"]


@stepped
async def test_a_half_written_kubeconfig_keeps_the_old_credentials(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with serving() as server:
        write(path, kubeconfig(server.url, {"token": "old"}))
        whole = path.read_text().replace("old", "new")
        async with connected(ConnectionSettings("test", path)) as connection:
            for content in ("", whole[:40], whole[: len(whole) // 2], "{"):
                path.write_text(content)
                await asyncio.sleep(2)
                assert await fetch(connection) == 200
            assert set(server.tokens) == {"Bearer old"}
            assert connection.stats.failures_total == 4
            path.write_text(whole)
            await asyncio.sleep(2)
            await fetch(connection)
            assert server.tokens[-1] == "Bearer new"


@stepped
async def test_a_token_file_of_a_kubeconfig_is_followed(tmp_path: Path) -> None:
    """kubernetes.aio reads it once."""
    (tmp_path / "token").write_text("one\n")
    async with serving() as server:
        path = write(tmp_path / "kubeconfig", kubeconfig(server.url, {"tokenFile": "token", "token": "ignored"}))
        async with connected(ConnectionSettings("test", path)) as connection:
            await fetch(connection)
            (tmp_path / "token").write_text("two\n")
            await asyncio.sleep(2)
            await fetch(connection)
        assert server.tokens == ["Bearer one", "Bearer two"]


@stepped
async def test_a_kubeconfig_that_names_another_address_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with serving() as first, serving() as second:
        write(path, kubeconfig(first.url))
        async with connected(ConnectionSettings("test", path)) as connection:
            await fetch(connection)
            write(path, kubeconfig(second.url))
            await asyncio.sleep(2)
            await fetch(connection)
        assert (len(first.seen), len(second.seen)) == (1, 1)


@stepped
async def test_the_files_are_looked_at_once_a_second_and_not_for_every_request(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with serving() as server:
        write(path, kubeconfig(server.url, {"token": "old"}))
        async with connected(ConnectionSettings("test", path)) as connection:
            write(path, kubeconfig(server.url, {"token": "new"}))
            await fetch(connection)
            await asyncio.sleep(1)
            await fetch(connection)
        assert server.tokens == ["Bearer old", "Bearer new"]
