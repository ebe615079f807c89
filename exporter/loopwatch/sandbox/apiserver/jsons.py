"""The type of a decoded JSON document."""

from __future__ import annotations

from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What decoding JSON gives; NaN and infinities never occur."""
