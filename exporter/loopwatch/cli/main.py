"""Runs a command, and ends it as a command should end.

Exit 0: done. 1: done, and the answer is no (`demo --once`, `check`). 2: the user has to mend something, told in one line on stderr.
Anything else that goes wrong is a fault of loopwatch and keeps its traceback.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from typer.exceptions import TyperException

from loopwatch.cli.commands import application, with_boolean_values
from loopwatch.clock import SystemClock
from loopwatch.settings.model import (
    CheckSettings,
    Command,
    CommonSettings,
    ControllerSettings,
    DemoSettings,
    RbacSettings,
    SidecarSettings,
)
from loopwatch.settings.read import SettingsError, read, unknown_variables

USERS_TO_MEND = 2
INTERRUPTED = 130

# By name: such an error can only have been raised where its module is loaded, and `--help` must not load them.
_USERS_ERRORS = (
    ("loopwatch.kube.errors", "ConfigError"),
    ("loopwatch.iri.endpoint", "EndpointError"),
    ("loopwatch.rbac.names", "NamesError"),
    ("loopwatch.web.certificate", "CertificateError"),
    ("loopwatch.web.server", "ListenError"),
)

Settings = SidecarSettings | ControllerSettings | DemoSettings | RbacSettings | CheckSettings


def main(arguments: Sequence[str] | None = None) -> None:
    """The command `loopwatch`: runs it and exits."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # `loopwatch --help | head -1`: whoever read our output left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    codes: list[int] = []
    app = application(lambda command, given: codes.append(_start(command, given)))
    try:
        # Without a command typer would only say that one is missing.
        outcome = app(with_boolean_values(arguments or ["--help"]), standalone_mode=False, prog_name="loopwatch")
    except TyperException as error:
        return _complain(f"{error.format_message()} ({_help_command(arguments)} lists what there is)")
    except SettingsError as error:
        return _complain(str(error))
    return codes[0] if codes else int(outcome or 0)


def _start(command: Command, given: dict[str, str]) -> int:
    settings = _settings(command, given)
    for sentence in unknown_variables(os.environ):
        _say(sentence)
    # Imported only now: these bring the Kubernetes client and gRPC.
    module = importlib.import_module(f"loopwatch.{command.value}")
    _configure_log(settings)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return int(runner.run(module.run(settings)) or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        leaves = _leaves(error)
        if all(isinstance(each, BrokenPipeError) for each in leaves):
            raise leaves[0] from None
        if not all(isinstance(each, _users_errors()) for each in leaves):
            raise
        return _complain("; ".join(dict.fromkeys(str(each) for each in leaves)))


def _configure_log(settings: Settings) -> None:
    from loopwatch import log

    if isinstance(settings, CommonSettings):
        log.configure(settings.log_level, SystemClock(), log_format=settings.log_format)
    else:
        log.configure("error", SystemClock(), log_format=log.TEXT)


def _settings(command: Command, given: dict[str, str]) -> Settings:
    if command is Command.SIDECAR:
        return read(SidecarSettings, given, os.environ)
    if command is Command.CONTROLLER:
        return read(ControllerSettings, given, os.environ)
    if command is Command.RBAC:
        return read(RbacSettings, given, os.environ)
    if command is Command.CHECK:
        return read(CheckSettings, given, os.environ)
    return read(DemoSettings, given, os.environ)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop where it is installed (pyproject.toml: on Linux), else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _leaves(error: BaseException) -> list[BaseException]:
    """The errors that an exception group holds, in order; `error` itself where it is none."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]


def _users_errors() -> tuple[type[BaseException], ...]:
    """The errors that the user can mend, of the modules that are loaded."""
    return tuple(getattr(sys.modules[module], name) for module, name in _USERS_ERRORS if module in sys.modules)


def _help_command(arguments: Sequence[str]) -> str:
    """The `--help` that tells what a command line like this may hold."""
    commands = [command.value for command in Command if command.value in arguments[:1]]
    return " ".join(["loopwatch", *commands, "--help"])


def _complain(problem: str) -> int:
    _say(problem)
    return USERS_TO_MEND


def _say(sentence: str) -> None:
    """One line on stderr, whatever a hostile argument or file brought into the sentence."""
    line = "".join(character if character.isprintable() else " " for character in sentence)
    sys.stderr.write(f"loopwatch: {line}\n")
