"""Writes kubeconfig files that need nothing beside them."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from tests.real_servers.pki import KeyPair


def write_kubeconfig(path: Path, server: str, authority: bytes, user: str, credentials: KeyPair) -> Path:
    """A kubeconfig with a client certificate, readable by its owner alone; returns `path`."""
    pair = {"client-certificate-data": _base64(credentials.certificate), "client-key-data": _base64(credentials.key)}
    return _write(path, server, authority, user, pair)


def write_token_kubeconfig(path: Path, server: str, authority: bytes, user: str, token_file: Path) -> Path:
    """A kubeconfig that names a file with a bearer token; returns `path`."""
    return _write(path, server, authority, user, {"tokenFile": str(token_file)})


def _write(path: Path, server: str, authority: bytes, user: str, credentials: dict[str, str]) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "current-context": "test",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
