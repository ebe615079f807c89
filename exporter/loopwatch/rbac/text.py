"""Manifests as YAML that every parser reads alike.

Kubernetes' YAML takes `1e3`, `0x1` and `y` for a number and a boolean where PyYAML sees text; names of pools may be such. So a text is
quoted unless it begins with a letter and is longer than one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """SafeDumper that indents lists below their key, as kubectl prints them, and quotes what could be anything but text."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's signature
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = len(text) > 1 and text[0].isascii() and text[0].isalpha()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def to_yaml(documents: Iterable[dict[str, Any]]) -> str:
    """One document each, behind `---`."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=10_000, allow_unicode=True)
