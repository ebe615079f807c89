"""One Login's connections: the only module that touches kubernetes.aio.

Its Configuration, ApiClient and RESTClientObject give the TLS context, the session, the URL and the BearerToken; its models, its Watch and
its own sending are not used. Its sending would wait 300 s by default (also for a watch), turn bytes into JSON again and follow redirects.
Sessions are set up against what was found by trying: proxies of the environment are not obeyed (NO_PROXY with a CIDR is not
understood), aiohttp does not resend by itself, the pool has no limit (a hundred watches would starve every request) and idle connections
are probed by the kernel, so that a dead one is found also where nothing is read.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from loopwatch.kube.login import Login
from loopwatch.kube.memory import client_pair_as_files
from loopwatch.kube.transport import Request, Timeout

_READ_BUFFER_BYTES: Final = 2**16
"""Chunks are cut into lines by us, so a line may be longer; a slow watch costs this much and not 4 MiB."""
_BEARER_TOKEN: Final = "BearerToken"  # noqa: S105 - the name of the scheme in kubernetes.aio
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class ApiServer:
    """The connections of one Login, and how many requests use them."""

    def __init__(self, login: Login, user_agent: str) -> None:
        self.login = login
        self._users = 0
        self._retired = False
        configuration = _configuration(login)
        with contextlib.ExitStack() as stack:
            if login.client_certificate is not None and login.client_key is not None:
                pair = stack.enter_context(client_pair_as_files(login.client_certificate, login.client_key))
                configuration.cert_file, configuration.key_file = pair
            self._api = ApiClient(configuration)
            self._api.rest_client = self._rest = _RestClient(configuration)
        configuration.cert_file = configuration.key_file = None
        self._api.user_agent = user_agent
        self._configuration = configuration
        self._session: aiohttp.ClientSession | None = None

    def authorize(self, login: Login) -> None:
        """Go on with the same connections and another token."""
        self.login = login
        if login.authorization:
            self._configuration.api_key[_BEARER_TOKEN] = login.authorization
        else:
            self._configuration.api_key.pop(_BEARER_TOKEN, None)

    async def send(self, request: Request, timeout: Timeout) -> aiohttp.ClientResponse:
        """The answer whose head has arrived. Raises what aiohttp raises."""
        if self._session is None:
            self._session = self._rest.session()
        headers = {"Accept-Encoding": "gzip", **request.headers, **dict(self.login.impersonation)}
        _, url, headers, _, _ = await self._api.param_serialize(
            request.method, request.path, query_params=list(request.query), header_params=headers, auth_settings=[_BEARER_TOKEN]
        )
        if self._session.closed:
            raise aiohttp.ClientConnectionError("the connection is closed")
        return await self._session.request(
            request.method,
            url,
            headers=headers,
            data=request.body,
            timeout=_client_timeout(timeout),
            allow_redirects=False,
            proxy=self.login.proxy_url or None,
            server_hostname=self.login.tls_server_name or None,
        )

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """A request is under way; what is retired closes after the last one (see `finished`)."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1

    def retire(self) -> None:
        """No new request comes; those under way go on."""
        self._retired = True

    @property
    def finished(self) -> bool:
        """Retired, and no request uses it any more."""
        return self._retired and self._users == 0

    async def close(self) -> None:
        """Close the connections; requests under way fail."""
        if self._session is not None:
            await self._session.close()


class _RestClient(RESTClientObject):
    """The overrides that kubernetes.aio's RESTClientObject is made for."""

    def session(self) -> aiohttp.ClientSession:
        """A new session; made on the first request, since it needs a running loop."""
        session: aiohttp.ClientSession = self._create_pool_manager()
        # aiohttp sends GET, PUT and DELETE once more by itself when a reused connection dies; there is no public switch.
        session._retry_connection = False  # noqa: SLF001
        return session

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=0, ssl=self.ssl_context, socket_factory=_socket_with_keepalive)


def _configuration(login: Login) -> Configuration:
    configuration = Configuration(
        host=login.server,
        ca_cert_data=login.certificate_authority,
        verify_ssl=login.verify,
        client_session_kwargs={"trust_env": False, "read_bufsize": _READ_BUFFER_BYTES, "cookie_jar": aiohttp.DummyCookieJar()},
    )
    # From Python 3.13 on, OpenSSL's strict mode refuses authorities without a key identifier, as many clusters have; Go never asked for it.
    configuration.disable_strict_ssl_verification = True
    if login.authorization:
        configuration.api_key[_BEARER_TOKEN] = login.authorization
    return configuration


def _client_timeout(timeout: Timeout) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=timeout.total, connect=timeout.connect, sock_connect=timeout.connect, sock_read=timeout.read)


def _socket_with_keepalive(address: tuple[Any, ...]) -> socket.socket:
    """A socket whose peer the kernel asks for a sign of life: dead after 30 s without one."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
