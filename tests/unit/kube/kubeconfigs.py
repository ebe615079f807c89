"""Kubeconfig files for tests."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml


def kubeconfig(server: str, user: dict[str, Any] | None = None, /, **cluster: Any) -> dict[str, Any]:
    """A kubeconfig of one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"} if user is not None else {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [] if user is None else [{"name": "u", "user": user}],
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    """Replace the file as kubectl and kubelet do: by a rename."""
    fresh = path.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(content))
    return fresh.rename(path)


def data(path: Path) -> str:
    """A file as `...-data` holds it."""
    return base64.b64encode(path.read_bytes()).decode()
