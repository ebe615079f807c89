"""The table of settings: each row is a flag, an environment variable, a line of `--help` and a line of docs/settings.md.

A new setting is a new row in one of the modules below (and a field in `model`). The names, defaults and texts that IronCore v0.5.0 has
too are its own, so that a machinepoollet's arguments can be moved over as they are; `upstream` says which.
"""

from __future__ import annotations

from loopwatch.settings.common_rows import COMMON_ROWS
from loopwatch.settings.controller_rows import CONTROLLER_ROWS
from loopwatch.settings.election_rows import ELECTION_ROWS
from loopwatch.settings.model import Command
from loopwatch.settings.setting import VARIABLE_PREFIX, Setting, Topic
from loopwatch.settings.sidecar_rows import SIDECAR_ROWS
from loopwatch.settings.tool_rows import TOOL_ROWS

__all__ = ["SETTINGS", "VARIABLE_PREFIX", "Setting", "Topic", "settings_of"]

SETTINGS = (*SIDECAR_ROWS, *CONTROLLER_ROWS, *ELECTION_ROWS, *COMMON_ROWS, *TOOL_ROWS)


def settings_of(command: Command) -> tuple[Setting, ...]:
    """The rows of one command, in the order of the table."""
    return tuple(row for row in SETTINGS if command in row.commands)
