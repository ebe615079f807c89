"""The settings of the commands that are no process of a cluster."""

from __future__ import annotations

from loopwatch.settings.kinds import HIGHEST_PORT, Kind
from loopwatch.settings.model import Command
from loopwatch.settings.setting import Setting, Topic

_DEMO = (Command.DEMO,)


def _port(number: int) -> str:
    return "" if number <= HIGHEST_PORT else f"must be a port from 0 to {HIGHEST_PORT}, got {number}"


TOOL_ROWS = (
    Setting(
        name="port",
        kind=Kind.COUNT,
        commands=_DEMO,
        topic=Topic.DEMO,
        default="9808",
        unit="TCP port",
        range=f"0 to {HIGHEST_PORT}; 0 takes a free one",
        check=_port,
        help="The port of the demo's page on 127.0.0.1.",
    ),
    Setting(
        name="once",
        kind=Kind.BOOLEAN,
        commands=_DEMO,
        topic=Topic.DEMO,
        default="false",
        help="Play the story once, check what /metrics showed of it, and exit 0 or 1.",
    ),
)
