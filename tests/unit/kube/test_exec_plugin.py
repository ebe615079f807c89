"""Exec plugins: real programs, on a real event loop, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import select
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from loopwatch.kube.connection import Connection, ConnectionSettings, connect
from loopwatch.kube.errors import ApiError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASES
from loopwatch.kube.transport import CredentialsError, Request, Timeout
from tests.unit.kube.api_server import serving
from tests.unit.kube.certificates import Certificates
from tests.unit.kube.kubeconfigs import kubeconfig, write

QUICK = Timeout(connect=5, read=5, total=5)
V1 = "client.authentication.k8s.io/v1"
START = datetime.datetime(2026, 5, 1, 12, 0, 0, tzinfo=datetime.UTC)


class MovedClock:
    """A Clock that stands until the test moves it."""

    def __init__(self) -> None:
        self.passed_seconds = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return 5000 + self.passed_seconds

    def utcnow(self) -> datetime.datetime:
        """START and what passed."""
        return START + datetime.timedelta(seconds=self.passed_seconds)

    async def sleep(self, seconds: float) -> None:
        """Never called here."""
        raise AssertionError(seconds)

    def random(self) -> float:
        """The middle."""
        return 0.5


def credential(api_version: str = V1, **status: Any) -> str:
    """What a plugin prints."""
    return json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status})


class Plugin:
    """A shell script that notes each of its runs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / "plugin"
        self.path.touch(mode=0o700)
        self.script("exit 1")

    def script(self, text: str) -> None:
        """What it does from the next run on."""
        self.path.write_text(f"#!/bin/sh\necho run >> {shlex.quote(str(self._directory / 'runs'))}\n{text}\n")

    def prints(self, text: str) -> None:
        """Have it print this."""
        self.script(f"cat <<'END'\n{text}\nEND")

    @property
    def runs(self) -> int:
        """How often it ran."""
        noted = self._directory / "runs"
        return len(noted.read_text().splitlines()) if noted.exists() else 0

    def user(self, **options: Any) -> dict[str, Any]:
        """A kubeconfig's user."""
        return {"exec": {"command": str(self.path), "apiVersion": V1, **options}}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """A plugin that fails until told otherwise."""
    return Plugin(tmp_path)


@pytest.fixture
def clock() -> MovedClock:
    """Noon."""
    return MovedClock()


@contextlib.asynccontextmanager
async def connected(path: Path, content: dict[str, Any], clock: MovedClock, timeout_seconds: float = 10) -> AsyncIterator[Connection]:
    """A Connection, closed at the end."""
    environ = {"PATH": os.environ["PATH"]}
    settings = ConnectionSettings("test", write(path, content), environ=environ, plugin_timeout_seconds=timeout_seconds)
    connection = await connect(settings, clock)
    try:
        yield connection
    finally:
        await connection.close()


async def fetch(connection: Connection) -> int:
    """The status of a request."""
    async with connection.send(Request("GET", "/apis"), QUICK) as response:
        return response.status


def ends(process: str) -> bool:
    """Whether it is gone, or goes within seconds: a signal that was sent takes a moment to arrive."""
    try:
        descriptor = os.pidfd_open(int(process))
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor, "rb") as watched:
        return bool(select.select([watched], [], [], 5)[0])


async def test_the_token_of_a_plugin_is_sent_and_asked_for_once(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.prints(credential(token="from plugin".replace(" ", "-")))
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        assert await asyncio.gather(*(fetch(connection) for _ in range(5))) == [200] * 5
        assert (set(server.tokens), plugin.runs) == ({"Bearer from-plugin"}, 1)


async def test_the_client_certificate_of_a_plugin_is_used(
    tmp_path: Path, plugin: Plugin, clock: MovedClock, certificates: Certificates
) -> None:
    pair, authority = certificates.client("by-plugin", "authority-one"), certificates.authority("authority-one").certificate
    plugin.prints(credential(clientCertificateData=pair.certificate.read_text(), clientKeyData=pair.key.read_text()))
    async with serving(certificates.server("server-one", "authority-one"), clients=authority) as server:
        content = kubeconfig(server.url, plugin.user(), **{"certificate-authority": str(authority)})
        async with connected(tmp_path / "k", content, clock) as connection:
            assert await fetch(connection) == 200
            assert server.seen[0].client == "by-plugin"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no such profile >&2; exit 3", "ended with exit code 3: no such profile"),
        ("exit 1", "ended with exit code 1: it said nothing"),
        ("echo not json", "printed no ExecCredential: JSON is malformed"),
        ("true", "printed no ExecCredential: Input data was truncated"),
        (f"echo '{credential()}'", "gave neither a token nor a client certificate with its key"),
        (f"echo '{credential(token='')}'", "gave neither a token"),
        (f"echo '{credential(clientCertificateData='x')}'", "gave neither a token nor a client certificate with its key"),
        (f"echo '{credential(token='a b')}'", "gave a token with spaces or control characters in it"),
        (
            f"echo '{credential('client.authentication.k8s.io/v1beta1', token='s3cret')}'",
            "the kubeconfig says client.authentication.k8s.io/v1",
        ),
        ('echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"Token","status":{"token":"s3cret"}}\'', "v1 Token"),
        (f"echo '{credential(token='s3cret', expirationTimestamp='soon')}'", "expirationTimestamp 'soon' is no time"),
        (f"echo '{credential(clientCertificateData='x', clientKeyData='y')}'", "certificates can't be used"),
    ],
)
async def test_a_failing_plugin_is_an_error_and_never_an_anonymous_request(
    tmp_path: Path, plugin: Plugin, clock: MovedClock, script: str, said: str
) -> None:
    """kubernetes.aio logs a line and goes on without credentials."""
    plugin.script(script)
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        if "certificates" in said:
            write(tmp_path / "k", kubeconfig("https://127.0.0.1:1", plugin.user()))
            clock.passed_seconds += 2
        with pytest.raises(CredentialsError) as caught:
            await fetch(connection)
        assert said in str(caught.value)
        assert str(tmp_path / "k") in str(caught.value)
        assert "s3cret" not in str(caught.value)
        assert server.seen == []
        assert said in connection.stats.last_failure


async def test_a_command_that_is_not_there_shows_the_hint(tmp_path: Path, clock: MovedClock) -> None:
    user = {"exec": {"command": "no-such-plugin-here", "apiVersion": V1, "installHint": "install the aws CLI"}}
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, user), clock) as connection:
        with pytest.raises(
            CredentialsError, match="'no-such-plugin-here' can't be started: No such file or directory; install the aws CLI"
        ):
            await fetch(connection)


async def test_a_plugin_that_hangs_is_given_up(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.script("exec sleep 100")
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock, 0.05) as connection:
        with pytest.raises(CredentialsError, match=r"has not answered within 0\.05 s and was killed"):
            await fetch(connection)


async def test_a_plugin_is_killed_with_its_children(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    plugin.script(f"sleep 100 & echo $$ $! > {started}; wait")
    async with serving() as server:
        connection = await connect(ConnectionSettings("test", write(tmp_path / "k", kubeconfig(server.url, plugin.user()))), clock)
        request = asyncio.create_task(fetch(connection))
        processes = await asyncio.to_thread(started.read_text)
        await connection.close()
        with pytest.raises(CredentialsError):
            await request
        assert [await asyncio.to_thread(ends, process) for process in processes.split()] == [True, True]


async def test_a_request_does_not_wait_longer_for_a_plugin_than_it_may_take(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    plugin.script(f"cat {gate} >/dev/null; echo '{credential(token='late')}'")
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        with pytest.raises(CredentialsError, match=r"has not answered within 0\.1 s yet"):
            async with connection.send(Request("GET", "/"), Timeout(connect=0.1, read=5, total=5)):
                pass
        await asyncio.to_thread(gate.write_text, "go")
        assert await fetch(connection) == 200
        assert (server.tokens, plugin.runs) == (["Bearer late"], 1)


async def test_a_daemon_that_a_plugin_leaves_behind_is_not_waited_for(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.script(f"setsid sleep 8 & echo '{credential(token='t')}'")
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        assert await fetch(connection) == 200


async def test_a_plugin_that_talks_much_on_stderr_does_not_block(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    """kubernetes.aio reads stdout to its end first, while the plugin waits for its stderr to be read."""
    plugin.script(f"head -c 300000 /dev/zero | tr '\\0' x >&2; echo '{credential(token='t')}'")
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        assert await fetch(connection) == 200


async def test_a_plugin_is_told_what_it_is_asked_for(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.script(f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; printf %s "$A" > {tmp_path}/a; echo \'{credential(token="t")}\'')
    user = plugin.user(provideClusterInfo=True, env=[{"name": "A", "value": "b"}])
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, user), clock) as connection:
        await fetch(connection)
        info = json.loads((tmp_path / "info").read_text())
        assert info == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": {"server": server.url}}}
        assert (tmp_path / "a").read_text() == "b"


async def test_a_token_near_its_end_is_replaced_in_the_background(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.prints(credential(token="one", expirationTimestamp="2026-05-01T12:10:00Z"))
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        await fetch(connection)
        plugin.prints(credential(token="two", expirationTimestamp="2026-05-01T12:20:00Z"))
        clock.passed_seconds = 9 * 60 - 1
        await fetch(connection)
        assert plugin.runs == 1
        clock.passed_seconds = 9 * 60 + 1
        await fetch(connection)
        task = connection._credentials._plugin_task
        assert task is not None
        await task
        await fetch(connection)
        assert server.tokens == ["Bearer one"] * 3 + ["Bearer two"], "no request waited for it"
        assert plugin.runs == 2


async def test_a_plugin_that_fails_later_keeps_the_old_token(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.prints(credential(token="one", expirationTimestamp="2026-05-01T12:10:00Z"))
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        await fetch(connection)
        plugin.script("exit 1")
        for minute in range(9, 20):
            clock.passed_seconds = minute * 60 + 1
            await fetch(connection)
            if connection._credentials._plugin_task is not None:
                await connection._credentials._plugin_task
            clock.passed_seconds += 9
            await fetch(connection)
            assert connection._credentials._plugin_task is None, "a plugin that has just failed is left in peace for ten seconds"
        assert set(server.tokens) == {"Bearer one"}
        assert plugin.runs == 12
        assert "exit code 1" in connection.stats.last_failure
        plugin.prints(credential(token="two"))
        clock.passed_seconds += 60
        await fetch(connection)
        if connection._credentials._plugin_task is not None:
            await connection._credentials._plugin_task
        assert connection.stats.last_failure == ""


async def test_a_wall_clock_that_is_wrong_costs_a_run_a_minute_and_no_request(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.prints(credential(token="one", expirationTimestamp="2020-01-01T00:00:00Z"))
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:
        for second in range(0, 180, 10):
            clock.passed_seconds = second
            assert await fetch(connection) == 200
            if connection._credentials._plugin_task is not None:
                await connection._credentials._plugin_task
        assert plugin.runs == 3


async def test_a_401_runs_the_plugin_once_for_all_that_were_refused(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.prints(credential(token="one"))
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:

        async def only_two(request: web.Request) -> web.Response:
            return web.Response(status=200 if request.headers.get("Authorization") == "Bearer two" else 401, body=b'{"metadata":{}}')

        server.handler = only_two
        assert await fetch(connection) == 401
        plugin.prints(credential(token="two"))
        clock.passed_seconds = 5
        reader = Reader(connection, clock)
        await asyncio.gather(*(reader.list_page(LEASES) for _ in range(5)))
        assert plugin.runs == 2
        clock.passed_seconds = 10
        assert await connection.renew_credentials() is True, "a late 401 of the old token: there is a new one already"
        assert plugin.runs == 2


async def test_a_persistent_401_does_not_run_the_plugin_without_end(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.prints(credential(token="one"))
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user()), clock) as connection:

        async def never(_: web.Request) -> web.Response:
            return web.Response(status=401)

        server.handler = never
        reader = Reader(connection, clock)
        for _ in range(10):
            clock.passed_seconds += 0.1
            with pytest.raises(ApiError):
                await reader.list_page(LEASES)
        assert plugin.runs <= 2


async def test_a_changed_plugin_is_run_anew(tmp_path: Path, plugin: Plugin, clock: MovedClock) -> None:
    plugin.script(f"""echo '{credential(token="by-ARG")}' | sed "s/ARG/$1/" """)
    async with serving() as server, connected(tmp_path / "k", kubeconfig(server.url, plugin.user(args=["one"])), clock) as connection:
        await fetch(connection)
        write(tmp_path / "k", kubeconfig(server.url, plugin.user(args=["two"])))
        clock.passed_seconds = 2
        await fetch(connection)
        assert server.tokens == ["Bearer by-one", "Bearer by-two"]
