"""How to reach one API server and convince it, as it stood in the files at one moment.

A Login is plain data, contents and not paths, so that comparing two of them tells whether anything was rotated, and so that what was
checked is what is used. It refuses to show its secrets: they are kept out of its repr. Where the contents come from is a Source.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from loopwatch.kube.errors import ConfigError
from loopwatch.kube.exec_plugin import ExecCredential, ExecPlugin
from loopwatch.kube.memory import client_pair_as_files

HOST_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE: Final = "KUBERNETES_SERVICE_PORT"


@dataclass(frozen=True, slots=True)
class Login:
    """One API server and one identity. PEM is text for the authority and bytes for the client's pair; absent is None."""

    server: str
    certificate_authority: str | None = None
    verify: bool = True
    tls_server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    client_certificate: bytes | None = field(default=None, repr=False)
    client_key: bytes | None = field(default=None, repr=False)
    authorization: str | None = field(default=None, repr=False)
    impersonation: tuple[tuple[str, str], ...] = ()
    plugin: ExecPlugin | None = None

    def without_authorization(self) -> Login:
        """What a connection depends on: two Logins that are equal in it can share one."""
        return replace(self, authorization=None)

    def with_credential(self, credential: ExecCredential) -> Login:
        """What an exec plugin gave, put in."""
        return replace(
            self,
            authorization=f"Bearer {credential.token}" if credential.token else self.authorization,
            client_certificate=credential.certificate or self.client_certificate,
            client_key=credential.key or self.client_key,
        )


class Reading(NamedTuple):
    """A Login, and the files whose change means that it must be read again."""

    login: Login
    files: tuple[Path, ...]


class Source(Protocol):
    """Where a Login comes from."""

    @property
    def name(self) -> str:
        """For messages: a path, or what stands in its place."""
        ...

    def read(self) -> Reading:
        """Read it now. Raises ConfigError."""
        ...


class InCluster:
    """The ServiceAccount of the pod that this process runs in; its token is replaced on disk about once an hour."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._directory = directory
        host, port = environ[HOST_VARIABLE], environ[PORT_VARIABLE]
        self._server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

    @property
    def name(self) -> str:
        """The mounted directory."""
        return str(self._directory)

    def read(self) -> Reading:
        """Token and authority as they are mounted now."""
        token_path, authority_path = self._directory / "token", self._directory / "ca.crt"
        mount = "mount the ServiceAccount's token (automountServiceAccountToken), or give a kubeconfig"
        login = Login(
            self._server,
            certificate_authority=pem_text(authority_path, read_file(authority_path, mount)),
            authorization=bearer(token_path, read_file(token_path, mount)),
        )
        return Reading(login, (token_path, authority_path))


def read_file(path: Path, fix: str) -> bytes:
    """The content of a file; ConfigError where it can't be read or is empty, as a file is for a moment while it is written."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(path, f"can't be read: {error.strerror or error}", fix) from error
    if not content.strip():
        raise ConfigError(path, "is empty", fix)
    return content


def bearer(path: Path, content: bytes) -> str:
    """The Authorization header of a token file: without the newline at its end, which aiohttp refuses at every request."""
    token = content.strip()
    if not all(0x21 <= byte <= 0x7E for byte in token):
        raise ConfigError(path, "holds no token: there are spaces or control characters in it", "write the bare token into it")
    return f"Bearer {token.decode('ascii')}"


def pem_text(path: Path | str, content: bytes) -> str:
    """A bundle of authorities as text."""
    try:
        return content.decode("ascii")
    except UnicodeDecodeError as error:
        raise ConfigError(path, "holds no PEM certificates", "write the authority's certificates into it as PEM") from error


def check_tls(login: Login, name: str) -> None:
    """Raises ConfigError where the certificates can't be used: half written, or a certificate whose key is not (yet) its own."""
    if not login.server.startswith("https://"):
        return
    fix = "replace certificate, key and authority by whole PEM files that belong together"
    try:
        context = ssl.create_default_context(cadata=login.certificate_authority)
        if login.client_certificate is not None and login.client_key is not None:
            with client_pair_as_files(login.client_certificate, login.client_key) as (certificate, key):
                # Without a password OpenSSL would ask for one on the terminal and wait for ever.
                context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        what = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
        raise ConfigError(name, f"its certificates can't be used: {what}", fix) from error
