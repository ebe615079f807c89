"""The Transport over the network: one API server, its credentials kept fresh.

A request takes the credentials in force when it begins. When a certificate, an authority or the server itself was replaced, a new
client takes over, and the old one's requests go on until they end: a rotation costs nothing. It refuses to retry, to follow redirects
and to let a request wait without a bound.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp

from loopwatch import __version__
from loopwatch.clock import Clock
from loopwatch.kube.client import ApiServer
from loopwatch.kube.credentials import Credentials, CredentialsStats
from loopwatch.kube.errors import ConfigError
from loopwatch.kube.kubeconfig import Kubeconfig
from loopwatch.kube.login import HOST_VARIABLE, PORT_VARIABLE, InCluster, Login, Source
from loopwatch.kube.transport import Request, Timeout, TransportError, TransportTimeout
from loopwatch.text import clean_message

__all__ = ["ConfigError", "Connection", "ConnectionSettings", "connect"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_UNAUTHORIZED: Final = 401


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Which API server, as whom, and what for (`component` is named in the User-Agent)."""

    component: str
    kubeconfig: Path | None = None
    context: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    service_account: Path = SERVICE_ACCOUNT
    plugin_timeout_seconds: float = 30.0


async def connect(settings: ConnectionSettings, clock: Clock) -> Connection:
    """A Connection, without a request sent yet. Raises ConfigError where a file or the context can't be used."""
    credentials = Credentials(find_source(settings), clock, settings.environ, settings.plugin_timeout_seconds)
    return Connection(credentials, f"loopwatch/{__version__} ({settings.component})")


def find_source(settings: ConnectionSettings) -> Source:
    """The given kubeconfig, else $KUBECONFIG, else the pod's ServiceAccount, else ~/.kube/config; a context is one of a kubeconfig.

    Raises ConfigError where there is none of them.
    """
    if settings.kubeconfig is not None:
        return Kubeconfig((settings.kubeconfig,), settings.context)
    environ = settings.environ
    named = [Path(name).expanduser() for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if named:
        return Kubeconfig(named, settings.context, required=False)
    if environ.get(HOST_VARIABLE) and environ.get(PORT_VARIABLE) and not settings.context:
        return InCluster(settings.service_account, environ)
    own = Path(environ.get("HOME", "/")) / ".kube" / "config"
    if own.exists():
        return Kubeconfig((own,), settings.context)
    raise ConfigError(own, "is not there, $KUBECONFIG is not set, and this is no pod of a cluster", "give --kubeconfig PATH")


class Connection:
    """A Transport; made by `connect`."""

    def __init__(self, credentials: Credentials, user_agent: str) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._client: ApiServer | None = None
        self._retired: set[ApiServer] = set()
        self._refused_generation = -1
        self._closed = False

    @property
    def stats(self) -> CredentialsStats:
        """How often the credentials changed, and could not be read."""
        return self._credentials.stats

    @contextlib.asynccontextmanager
    async def send(self, request: Request, timeout: Timeout) -> AsyncIterator[Answer]:
        """Send once, with the credentials of this moment; the answer is closed on leaving."""
        client, generation = await self._ready(timeout)
        try:
            with client.used():
                response = await _sent(client, request, timeout)
                try:
                    if response.status == _UNAUTHORIZED:
                        self._refused_generation = max(self._refused_generation, generation)
                    yield Answer(response)
                finally:
                    response.close()
        finally:
            await self._close_finished()

    async def renew_credentials(self) -> bool:
        """After a 401; however many requests met it, the files are read, or the plugin is run, once."""
        return await self._credentials.renew(self._refused_generation)

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        self._closed = True
        await self._credentials.close()
        for client in (self._client, *self._retired):
            if client is not None:
                await client.close()

    async def _ready(self, timeout: Timeout) -> tuple[ApiServer, int]:
        if self._closed:
            raise TransportError("the connection is closed")
        login = await self._credentials.ready(timeout.connect)
        client = self._client
        if client is None or login is not client.login:
            client = self._client_for(login)
        return client, self._credentials.generation

    def _client_for(self, login: Login) -> ApiServer:
        old = self._client
        if old is not None and old.login.without_authorization() == login.without_authorization():
            old.authorize(login)
            return old
        self._client = ApiServer(login, self._user_agent)
        if old is not None:
            old.retire()
            self._retired.add(old)
        return self._client

    async def _close_finished(self) -> None:
        for client in [client for client in self._retired if client.finished]:
            self._retired.discard(client)
            await client.close()


class Answer:
    """An aiohttp response as a Response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """The whole body, decompressed."""
        try:
            return await self._response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _lost(error) from error

    def chunks(self) -> Chunks:
        """The body as it arrives."""
        return Chunks(self._response)


class Chunks:
    """A plain iterator, so that nothing is left for the garbage collector when a watch is left half-way."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._content = response.content

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _lost(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk


async def _sent(client: ApiServer, request: Request, timeout: Timeout) -> aiohttp.ClientResponse:
    try:
        return await client.send(request, timeout)
    except (aiohttp.ClientError, OSError) as error:
        raise _lost(error) from error


def _lost(error: Exception) -> TransportError:
    """In our words: TimeoutError is an OSError, and aiohttp's timeouts are both."""
    text = clean_message(f"{type(error).__name__}: {error}".removesuffix(": "), 300)
    return TransportTimeout(text) if isinstance(error, TimeoutError) else TransportError(text)
