"""What a row of the table of settings holds, and how it turns a text into a value."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loopwatch import durations
from loopwatch.settings.kinds import Kind
from loopwatch.settings.model import Command

VARIABLE_PREFIX = "LOOPWATCH_"
BOTH = (Command.SIDECAR, Command.CONTROLLER)


class Topic(enum.Enum):
    """A panel of `--help` and a section of docs/settings.md, in this order."""

    POOL = "Machine pool"
    HEARTBEAT = "Heartbeat"
    RUNTIME = "Machine runtime"
    LIFECYCLE = "Lifecycle"
    ELECTION = "Leader election"
    KUBERNETES = "Kubernetes"
    LISTEN = "Listen address"
    PROCESS = "This process"
    DEMO = "Demo"
    RIGHTS = "Rights"
    CHECK = "Check"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row.

    `default` is a text as a user would write it, empty where the setting stays unset. `check` gets the parsed value and says what is
    wrong with it ("must be > 0, got 0s"), or nothing. `fields` turns the value into fields of the settings object, where that is
    more than one field of the row's own name. `required_by` are the commands that don't run without it. A `positional` one has no flag:
    its text stands bare behind the command.
    """

    name: str
    kind: Kind
    commands: tuple[Command, ...]
    topic: Topic
    help: str
    default: str = ""
    required_by: tuple[Command, ...] = ()
    positional: bool = False
    choices: tuple[str, ...] = ()
    range: str = ""
    check: Callable[[Any], str] | None = None
    unit: str = ""
    off: str = ""
    fallback_variable: str = ""
    upstream: str = ""
    fields: Callable[[Any], Mapping[str, Any]] | None = None

    @property
    def flag(self) -> str:
        """`--NAME`, or `NAME` where it is given by its place."""
        return self.name.upper() if self.positional else f"--{self.name}"

    @property
    def variable(self) -> str:
        """`LOOPWATCH_NAME`."""
        return VARIABLE_PREFIX + self.name.replace("-", "_").upper()

    @property
    def field(self) -> str:
        """The settings object's field, for rows without `fields`."""
        name = self.name.replace("-", "_")
        return f"{name}_seconds" if self.kind is Kind.DURATION else name

    @property
    def allowed(self) -> str:
        """The range in words."""
        return self.range or ", ".join(self.choices)

    def parse(self, text: str) -> Any:  # noqa: ANN401 - each kind has a type of its own
        """The value of a text, None for the row's word for `off`; ValueError with what is allowed."""
        if self.off and text == self.off:
            return None
        value = self.kind.parse(text)
        problem = self._problem(value)
        if problem:
            raise ValueError(problem)
        return value

    def field_values(self, value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as parsed
        """The fields that a parsed value sets."""
        return self.fields(value) if self.fields and value is not None else {self.field: value}

    def _problem(self, value: Any) -> str:  # noqa: ANN401 - as parsed
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, got {value!r:.80}"
        return self.check(value) if self.check else ""


def above_zero(seconds: float) -> str:
    """A `check`."""
    return "" if seconds > 0 else f"must be > 0, got {durations.render(seconds)}"


def not_below_zero(seconds: float) -> str:
    """A `check`."""
    return "" if seconds >= 0 else f"must be >= 0, got {durations.render(seconds)}"
