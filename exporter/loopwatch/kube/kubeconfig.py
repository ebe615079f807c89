"""Kubeconfig files: merged, checked, and read into a Login.

Read here and not by kubernetes.aio, because a rotation must be told from a half-written file, a broken file must be named with its line,
and a failing exec plugin must not end in an anonymous client. The rules are client-go's: the first file that names a thing wins, paths
are relative to the file that holds them, data goes before a file, a token file before a token. It refuses what it can't honour
(auth-provider, interactive plugins, some ways of impersonation) instead of leaving it out.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from loopwatch.kube.errors import ConfigError
from loopwatch.kube.exec_plugin import API_VERSIONS, ExecPlugin
from loopwatch.kube.kubeconfig_file import Cluster, Config, Context, KubeconfigFile, User, load
from loopwatch.kube.login import Login, Reading, bearer, pem_text, read_file

V = TypeVar("V")
_SCHEMES: Final = ("http://", "https://")
_NEW_FILE: Final = "correct the path, or write the file"


class Kubeconfig:
    """One context of one or more kubeconfig files; with `required` False (for $KUBECONFIG) files that aren't there are passed over."""

    def __init__(self, paths: Sequence[Path], context: str = "", *, required: bool = True) -> None:
        self._paths = tuple(paths)
        self._context = context
        self._required = required

    @property
    def name(self) -> str:
        """The files, as $KUBECONFIG would name them."""
        return os.pathsep.join(map(str, self._paths))

    def read(self) -> Reading:
        """The Login of the context as the files say it now. Raises ConfigError."""
        files = [load(path) for path in self._paths if self._required or path.exists()]
        if not files:
            raise ConfigError(self.name, "there is no such file", "correct $KUBECONFIG, or give --kubeconfig PATH")
        context = _context(files, self._context, self.name)
        read: list[Path] = list(self._paths)
        cluster = _chosen(_entries(files, _clusters, "cluster"), context, context.value.cluster, "cluster")
        login = _cluster_login(cluster, read)
        if context.value.user:
            user = _chosen(_entries(files, _users, "user"), context, context.value.user, "user")
            login = _user_login(login, user, cluster.value, read)
        return Reading(login, tuple(read))


@dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    """A named part of a file, and where it stands."""

    file: KubeconfigFile
    at: str
    value: V

    def error(self, field: str, what: str, fix: str) -> ConfigError:
        return self.file.error(f"{self.at}.{field}", what, fix)

    def path(self, written: str) -> Path:
        """A path in the file is relative to the file."""
        return self.file.path.parent / Path(written).expanduser()


def _clusters(config: Config) -> Iterable[tuple[str, Cluster]]:
    return ((entry.name, entry.cluster) for entry in config.clusters or ())


def _users(config: Config) -> Iterable[tuple[str, User]]:
    return ((entry.name, entry.user or User()) for entry in config.users or ())


def _contexts(config: Config) -> Iterable[tuple[str, Context]]:
    return ((entry.name, entry.context) for entry in config.contexts or ())


def _entries(files: list[KubeconfigFile], pick: Callable[[Config], Iterable[tuple[str, V]]], part: str) -> dict[str, _Entry[V]]:
    found: dict[str, _Entry[V]] = {}
    for file in files:
        for index, (name, value) in enumerate(pick(file.config)):
            found.setdefault(name, _Entry(file, f"$.{part}s[{index}].{part}", value))
    return found


def _context(files: list[KubeconfigFile], wanted: str, name: str) -> _Entry[Context]:
    contexts = _entries(files, _contexts, "context")
    known = ", ".join(sorted(contexts)) or "none"
    wanted = wanted or next((file.config.current_context for file in files if file.config.current_context), "")
    if not wanted:
        raise ConfigError(name, "has no current-context", f"set current-context in it, or choose one of its contexts: {known}")
    if wanted not in contexts:
        raise ConfigError(name, f"has no context {wanted!r}", f"choose one of its contexts: {known}")
    return contexts[wanted]


def _chosen(found: dict[str, _Entry[V]], context: _Entry[Context], name: str, part: str) -> _Entry[V]:
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise context.error(part, f"the context names a {part} {name!r} that is not there", f"name one that is: {known}")
    return found[name]


def _cluster_login(entry: _Entry[Cluster], read: list[Path]) -> Login:
    cluster = entry.value
    server = (cluster.server or "").rstrip("/")
    if not server.startswith(_SCHEMES):
        raise entry.error("server", "the cluster has no server that is a URL", "write server: https://HOST:PORT")
    proxy = cluster.proxy_url or ""
    if proxy and not proxy.startswith(_SCHEMES):
        raise entry.error(
            "proxy-url", "the proxy is of a kind that is not supported", "use a proxy-url that begins with http:// or https://"
        )
    authority = _content(entry, "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data, read)
    return Login(
        server,
        certificate_authority=pem_text(entry.file.path, authority) if authority else None,
        verify=not cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name or "",
        proxy_url=proxy,
    )


def _user_login(login: Login, entry: _Entry[User], cluster: Cluster, read: list[Path]) -> Login:
    user = entry.value
    if user.auth_provider is not None:
        raise entry.error("auth-provider", "auth-provider is not supported (kubectl dropped it as well)", "use an exec plugin instead")
    certificate = _content(entry, "client-certificate", user.client_certificate, user.client_certificate_data, read)
    key = _content(entry, "client-key", user.client_key, user.client_key_data, read)
    if (certificate is None) != (key is None):
        raise entry.error("client-certificate", "a client certificate and its key must come together", "give both, or neither")
    return replace(
        login,
        client_certificate=certificate,
        client_key=key,
        authorization=_authorization(entry, read),
        impersonation=_impersonation(entry),
        plugin=_plugin(entry, cluster, login),
    )


def _content(entry: _Entry[V], field: str, path: str | None, data: str | None, read: list[Path]) -> bytes | None:
    """The decoded data, else the file's content."""
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise entry.error(
                f"{field}-data", f"{field}-data is no base64", f"write the file's base64 there, or use {field}: PATH"
            ) from error
    if not path:
        return None
    read.append(entry.path(path))
    return read_file(entry.path(path), f"{_NEW_FILE} that {field} in {entry.file.path} names")


def _authorization(entry: _Entry[User], read: list[Path]) -> str | None:
    user = entry.value
    if user.token_file:
        path = entry.path(user.token_file)
        read.append(path)
        return bearer(path, read_file(path, f"{_NEW_FILE} that tokenFile in {entry.file.path} names"))
    if user.token:
        return bearer(entry.file.path, user.token.encode())
    if user.username is not None and user.password is not None:
        pair = f"{user.username}:{user.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return None


def _impersonation(entry: _Entry[User]) -> tuple[tuple[str, str], ...]:
    user = entry.value
    if user.impersonate_uid or user.impersonate_extra or len(user.impersonate_groups or ()) > 1:
        raise entry.error(
            "as", "of impersonation only `as` and one of `as-groups` are supported", "use a kubeconfig of the identity itself"
        )
    headers = {"Impersonate-User": user.impersonate, "Impersonate-Group": next(iter(user.impersonate_groups or ()), None)}
    return tuple((name, value) for name, value in headers.items() if value)


def _plugin(entry: _Entry[User], cluster: Cluster, login: Login) -> ExecPlugin | None:
    plugin = entry.value.exec
    if plugin is None:
        return None
    if plugin.api_version not in API_VERSIONS:
        raise entry.error("exec.apiVersion", "the plugin's apiVersion is not supported", f"use one of {', '.join(API_VERSIONS)}")
    if plugin.interactive_mode == "Always":
        raise entry.error(
            "exec.interactiveMode", "the plugin wants a terminal, and there is none", "use interactiveMode: IfAvailable or Never"
        )
    command = plugin.command
    if os.sep in command:
        command = str(entry.path(command))
    return ExecPlugin(
        command,
        tuple(plugin.args or ()),
        tuple((variable.name, variable.value) for variable in plugin.env or ()),
        plugin.api_version,
        plugin.install_hint or "",
        _cluster_info(cluster, login) if plugin.provide_cluster_info else None,
    )


def _cluster_info(cluster: Cluster, login: Login) -> bytes:
    """As `spec.cluster` of an ExecCredential has it."""
    authority = base64.b64encode(login.certificate_authority.encode()).decode() if login.certificate_authority else None
    info: dict[str, object] = {
        "server": login.server,
        "certificate-authority-data": authority,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "tls-server-name": cluster.tls_server_name,
        "proxy-url": cluster.proxy_url,
    }
    return msgspec.json.encode({name: value for name, value in info.items() if value})
