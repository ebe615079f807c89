"""Puts flags, environment and defaults together, and says everything that is wrong with them in one sentence.

A flag goes before its variable, a variable before the default. An empty variable counts as not set, as Helm and shells leave them.
Nothing here reads os.environ or sys.argv: both are passed in.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from loopwatch.settings.checks import CHECKS
from loopwatch.settings.model import CheckSettings, Command, ControllerSettings, DemoSettings, RbacSettings, SidecarSettings
from loopwatch.settings.table import SETTINGS, VARIABLE_PREFIX, Setting, settings_of

Model = TypeVar("Model", SidecarSettings, ControllerSettings, DemoSettings, RbacSettings, CheckSettings)

# Kubernetes sets such variables in each pod of a namespace that has a Service named `loopwatch…`; they are not meant for us.
_OF_A_SERVICE = re.compile(rf"{VARIABLE_PREFIX}(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_(TCP|UDP|SCTP)\w*)")
_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://")


class SettingsError(Exception):
    """What the user set can't be used; the text is one line and names each flag or variable at fault."""


@dataclass(slots=True)
class _Read:
    """What was read so far; `origins` names the variable of each setting that did not come from a flag or a default."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def complain(self, problem: str, *names: str) -> None:
        """Note a problem, and which variables brought it."""
        variables = [self.origins[name] for name in names if name in self.origins]
        self.problems.append(f"{problem} (from {' and '.join(variables)})" if variables else problem)


def read(model: type[Model], given: Mapping[str, str], environment: Mapping[str, str]) -> Model:
    """The settings of `model`'s command, from `given` (texts by setting name) and `environment`; SettingsError with every problem."""
    state = _Read()
    rows = settings_of(model.command)
    for row in rows:
        _read_row(row, model.command, given, environment, state)
    for check in CHECKS:
        if check.applies(state.values):
            problem = check.problem(state.values)
            if problem:
                state.complain(problem, *check.needs)
    if state.problems:
        raise SettingsError("; ".join(state.problems))
    fields: dict[str, Any] = {}
    for row in rows:
        fields.update(row.field_values(state.values[row.name]))
    return model(**fields)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each `LOOPWATCH_…` variable that no setting reads: most likely a typing error."""
    known = [row.variable.removeprefix(VARIABLE_PREFIX) for row in SETTINGS]
    sentences = []
    for name in sorted(environment):
        rest = name.removeprefix(VARIABLE_PREFIX)
        if rest != name and rest not in known and not _OF_A_SERVICE.fullmatch(name):
            close = difflib.get_close_matches(rest, known, n=1)
            sentences.append(f"{name} in the environment is no setting" + (f"; did you mean {VARIABLE_PREFIX}{close[0]}?" if close else ""))
    return sentences


def _read_row(row: Setting, command: Command, given: Mapping[str, str], environment: Mapping[str, str], state: _Read) -> None:
    text = given.get(row.name)
    if text is None:
        origin, text = _from_environment(row, environment)
        if origin:
            state.origins[row.name] = origin
    if not text and not row.default:
        state.values[row.name] = None
        if command in row.required_by:
            state.complain(f"{row.flag} is required (or {row.variable}): {row.range}")
        return
    try:
        state.values[row.name] = row.parse(text)
    except ValueError as error:
        state.complain(f"{row.flag} {error}", row.name)


def _from_environment(row: Setting, environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable that sets a row, and its text; no variable and the default where none does."""
    for name in (row.variable, row.fallback_variable):
        text = environment.get(name, "")
        if text and not (_OF_A_SERVICE.fullmatch(name) and _SERVICE_LINK.match(text)):
            return name, text
    return "", row.default
