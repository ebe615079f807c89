"""The command line, made from the table of settings: one typer option a row, one panel of `--help` a topic.

typer only takes texts here: what they mean, and what is wrong with them, is `loopwatch.settings.read`'s to say, so that a flag and a
variable are judged by the same words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import typer

from loopwatch import __version__
from loopwatch.settings.kinds import FALSE, TRUE, Kind
from loopwatch.settings.model import Command
from loopwatch.settings.table import SETTINGS, Setting, settings_of

Start = Callable[[Command, dict[str, str]], None]
"""What a command does with the texts that were given on its command line, by setting name."""

_HELP = {
    Command.SIDECAR: "Report for one MachinePool: renew its Lease, probe its machine runtime, publish its Ready condition.",
    Command.CONTROLLER: "Watch every MachinePool, expose what is seen, and mark silent ones Unknown.",
    Command.DEMO: "Play a short story of three pools on a cluster in memory, with a page to watch it on.",
    Command.CHECK: "Look for what stands in the way, before installing and after: each finding with why it matters and what mends it.",
    Command.RBAC: "Print the least rights that work, as manifests for kubectl apply -f -. docs/rbac.md says what each is for.",
}
_EPILOG = "Each option can also be set by an environment variable: --log-level by LOOPWATCH_LOG_LEVEL, and so on."


def application(start: Start) -> typer.Typer:
    """The typer application; each command hands what it was given to `start`."""
    app = typer.Typer(
        name="loopwatch",
        help="Watches the control loops of a Kubernetes cluster, and keeps the heartbeat of IronCore MachinePools.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_root)
    for command in Command:
        app.command(command.value, help=_HELP[command], epilog=_EPILOG)(_function(command, start))
    return app


def with_boolean_values(arguments: Iterable[str]) -> list[str]:
    """`--no-act` becomes `--no-act=true`, unless a value follows: typer's own flags take none, and Go's (upstream's) may."""
    flags = {row.flag for row in SETTINGS if row.kind is Kind.BOOLEAN}
    given = list(arguments)
    following = [*given[1:], ""]
    return [
        f"{argument}=true" if argument in flags and after not in {*TRUE, *FALSE} else argument
        for argument, after in zip(given, following, strict=True)
    ]


def _function(command: Command, start: Start) -> Callable[..., None]:
    """A function whose signature lists the command's settings, which is how typer wants to be told."""
    # With an underscore at the end, since `as` is a word of Python's own.
    rows = {row.name.replace("-", "_") + "_": row for row in settings_of(command)}

    def run(**given: str | None) -> None:
        start(command, {rows[name].name: text for name, text in given.items() if text is not None})

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, kind, default=_option(row), annotation=str | None) for name, row in rows.items()]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # inspect reads it, typeshed does not list it
    run.__annotations__ = dict.fromkeys(rows, str | None)
    return run


def _option(row: Setting) -> Any:  # noqa: ANN401 - typer types it so
    words = [row.help]
    if row.allowed and not row.choices:
        words.append(f"({row.allowed})")
    if row.default:
        words.append(f"[default: {row.default}]")
    shown: dict[str, Any] = {
        "help": " ".join(words).replace("[", r"\["),  # rich takes a bracket for markup
        "metavar": "|".join(row.choices) or row.kind.value.upper(),
        "show_default": False,
    }
    if row.positional:
        return typer.Argument(None, **shown)
    return typer.Option(None, row.flag, rich_help_panel=row.topic.value, **shown)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"loopwatch {__version__}")
        raise typer.Exit


def _root(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", callback=_print_version, is_eager=True),  # noqa: FBT003 - typer reads the signature
) -> None:
    """Options before the command."""
