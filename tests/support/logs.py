"""What was logged, for tests that say what an operator reads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from structlog.testing import capture_logs


class Lines:
    """The lines logged while `caught` is open."""

    def __init__(self) -> None:
        self._caught: list[Any] = []

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Catch what is logged."""
        with capture_logs() as entries:
            self._caught = entries
            yield

    def texts(self, level: str | None = None) -> list[str]:
        """Each line as `event key=value …`, of one level or all."""
        return [
            " ".join([str(line["event"]), *(f"{key}={value}" for key, value in line.items() if key not in {"event", "log_level"})])
            for line in self._caught
            if level in {None, line["log_level"]}
        ]
