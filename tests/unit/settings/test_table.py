"""The table of settings as a whole."""

from __future__ import annotations

import dataclasses

import pytest

from loopwatch.settings.checks import CHECKS
from loopwatch.settings.kinds import Kind
from loopwatch.settings.model import CheckSettings, Command, ControllerSettings, DemoSettings, RbacSettings, SidecarSettings
from loopwatch.settings.table import SETTINGS, Setting, Topic, settings_of

MODELS = {model.command: model for model in (SidecarSettings, ControllerSettings, DemoSettings, RbacSettings, CheckSettings)}


def test_names_are_unique_within_a_command() -> None:
    for command in Command:
        names = [row.name for row in settings_of(command)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.name)
def test_each_row_says_what_a_reader_needs(row: Setting) -> None:
    assert row.help.endswith(".")
    assert "\n" not in row.help
    assert row.commands
    assert bool(row.required_by) != bool(row.default) or row.positional or row.kind in {Kind.TEXT, Kind.PATH}, (
        "has a default, or may stay unset"
    )
    assert set(row.required_by) <= set(row.commands)
    assert bool(row.choices) == (row.kind is Kind.CHOICE)
    assert row.allowed or row.kind in {Kind.BOOLEAN, Kind.TEXT, Kind.PATH}, "a range in words"


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.default], ids=lambda row: row.name)
def test_each_default_is_a_value_that_the_row_takes(row: Setting) -> None:
    row.parse(row.default)


@pytest.mark.parametrize("command", list(Command))
def test_each_field_of_a_model_is_set_by_exactly_one_row(command: Command) -> None:
    set_by = [name for row in settings_of(command) for name in row.field_values(row.parse(row.default) if row.default else None)]
    assert sorted(set_by) == sorted(field.name for field in dataclasses.fields(MODELS[command]))


def test_variables_are_the_flags_in_capitals() -> None:
    variables = {row.flag: row.variable for row in SETTINGS}
    assert variables["--heartbeat-interval"] == "LOOPWATCH_HEARTBEAT_INTERVAL"
    assert variables["--no-act"] == "LOOPWATCH_NO_ACT"


def test_checks_need_settings_that_exist_together() -> None:
    for check in CHECKS:
        assert any({*check.needs} <= {row.name for row in settings_of(command)} for command in Command)


def test_every_topic_has_settings() -> None:
    assert {row.topic for row in SETTINGS} == set(Topic)
