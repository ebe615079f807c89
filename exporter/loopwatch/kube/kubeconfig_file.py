"""One kubeconfig file: its shape, and where in it a thing stands.

Only the fields that loopwatch honours, or must refuse, are named. An error names file, line and column, never a value: there are
secrets beside every line of such a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from loopwatch.kube.errors import ConfigError

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AT: Final = re.compile(r" - at `(\$.*)`$")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


class Kebab(msgspec.Struct, rename="kebab"):
    """Base: field names as kubeconfig writes them."""


class Cluster(Kebab):
    """Where the API server is and how to know it."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class ExecVariable(msgspec.Struct):
    """One variable of a plugin's environment."""

    name: str
    value: str


class Exec(msgspec.Struct, rename="camel"):
    """A plugin that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str | None = None
    interactive_mode: str | None = None
    provide_cluster_info: bool | None = None


class User(Kebab):
    """Who we are."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    impersonate_uid: str | None = msgspec.field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, Any] | None = msgspec.field(default=None, name="as-user-extra")


class Context(Kebab):
    """A cluster and a user by name."""

    cluster: str
    user: str | None = None


class NamedCluster(msgspec.Struct):
    """An entry of `clusters`."""

    name: str
    cluster: Cluster


class NamedUser(msgspec.Struct):
    """An entry of `users`; kubectl writes a user without credentials as {} or leaves it out."""

    name: str
    user: User | None = None


class NamedContext(msgspec.Struct):
    """An entry of `contexts`."""

    name: str
    context: Context


class Config(Kebab):
    """The whole file; absent and null mean the same."""

    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
    current_context: str | None = None


@dataclass(frozen=True, slots=True)
class KubeconfigFile:
    """A file as it was read."""

    path: Path
    content: bytes
    config: Config

    def error(self, at: str, what: str, fix: str) -> ConfigError:
        """An error about what stands at `at`, a path such as `$.users[0].user.exec`."""
        line, column = _locate(self.content, at)
        return ConfigError(self.path, what, fix, line=line, column=column)


def load(path: Path) -> KubeconfigFile:
    """Read one file. Raises ConfigError with its line where it is no YAML or no kubeconfig."""
    try:
        content = path.read_bytes()
    except OSError as error:
        fix = "give --kubeconfig the path of a file that this user may read"
        raise ConfigError(path, f"can't be read: {error.strerror or error}", fix) from error
    try:
        document = yaml.load(content, Loader=_Loader)  # noqa: S506 - a safe loader, in C where there is one
    except yaml.YAMLError as error:
        raise _broken_yaml(path, error) from error
    try:
        config = msgspec.convert(document or {}, Config)
    except msgspec.ValidationError as error:
        what, at = str(error), "$"
        match = _AT.search(what)
        if match:
            what, at = what[: match.start()], match[1]
        line, column = _locate(content, at)
        fix = f"correct {at.removeprefix('$.')}" if at != "$" else "write a kubeconfig into it"
        raise ConfigError(path, f"is no kubeconfig: {what[0].lower()}{what[1:]}", fix, line=line, column=column) from error
    return KubeconfigFile(path, content, config)


def _broken_yaml(path: Path, error: yaml.YAMLError) -> ConfigError:
    """Without the excerpt that PyYAML's own text would show."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be parsed"
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    return ConfigError(path, f"is no YAML: {problem}", "correct the line, or write the file anew", line=line, column=column)


def _locate(content: bytes, at: str) -> tuple[int | None, int | None]:
    """Line and column, from 1, of the deepest part of `at` that is there."""
    node = yaml.compose(content, Loader=_Loader)
    for name, index in _STEP.findall(at):
        below = _below(node, name, index)
        if below is None:
            break
        node = below
    return (node.start_mark.line + 1, node.start_mark.column + 1) if node else (None, None)


def _below(node: yaml.Node | None, name: str, index: str) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and index:
        return node.value[int(index)] if int(index) < len(node.value) else None
    if isinstance(node, yaml.MappingNode) and name:
        return next((value for key, value in node.value if key.value == name), None)
    return None
