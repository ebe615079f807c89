"""The command from the outside: what it starts, what it says, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import subprocess
import sys
import types
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest
import structlog

from loopwatch import __version__
from loopwatch.cli import main as cli
from loopwatch.rbac.command import render
from loopwatch.settings.model import (
    CheckSettings,
    Command,
    ControllerSettings,
    DemoSettings,
    Mode,
    Output,
    RbacSettings,
    SidecarSettings,
    Subject,
)
from loopwatch.settings.table import SETTINGS, Topic, settings_of

Run = Callable[[object], Awaitable[int | None]]
SIDECAR = ("sidecar", "--machine-pool-name", "my-pool")
EXPORTER = Path(cli.__file__).parents[2]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the caller's variables nor the width of its terminal."""
    for name in os.environ:
        if name.startswith(("LOOPWATCH_", "IRI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(autouse=True)
def unconfigured_log() -> Iterator[None]:
    """A command configures the log of its process; the next test finds it as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The settings that each command's run function was given."""
    seen: list[object] = []

    async def run(settings: object) -> None:
        seen.append(settings)

    for command in Command:
        stand_in(monkeypatch, command, run)
    return seen


def stand_in(monkeypatch: pytest.MonkeyPatch, command: Command, run: Run) -> None:
    """Put `run` in the place of a command's own."""
    module = types.ModuleType(f"loopwatch.{command.value}")
    module.run = run  # type: ignore[attr-defined] # made up here
    monkeypatch.setitem(sys.modules, module.__name__, module)


def process(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LOOPWATCH_")}
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "loopwatch", *arguments],
        env={**inherited, "PYTHONPATH": str(EXPORTER), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (SIDECAR, SidecarSettings(machine_pool_name="my-pool")),
        ((*SIDECAR, "--mode=report"), SidecarSettings(machine_pool_name="my-pool", mode=Mode.REPORT)),
        (("controller",), ControllerSettings()),
        (("controller", "--no-act"), ControllerSettings(act=False)),
        (("controller", "--no-act", "--log-level", "debug"), ControllerSettings(act=False, log_level="debug")),
        (("controller", "--no-act=false"), ControllerSettings()),
        (("controller", "--no-act", "true"), ControllerSettings(act=False)),
        (("controller", "--mark-never-reported", "false"), ControllerSettings(mark_never_reported=False)),
        (("controller", "--mark-never-reported=false", "--no-act"), ControllerSettings(mark_never_reported=False, act=False)),
        (("demo", "--once"), DemoSettings(once=True)),
        (("demo", "--port", "0"), DemoSettings(port=0)),
        (("rbac",), RbacSettings()),
        (("check",), CheckSettings()),
        (
            ("check", "--as", "reader", "--watch=0s", "--output=json"),
            CheckSettings(subject=Subject.READER, watch_seconds=0.0, output=Output.JSON),
        ),
        (("rbac", "controller", "--no-act"), RbacSettings(process=Subject.CONTROLLER, act=False)),
        (("rbac", "--namespace", "a", "reader"), RbacSettings(process=Subject.READER, namespace="a")),
    ],
)
def test_a_command_runs_with_its_settings(arguments: tuple[str, ...], settings: object, started: list[object]) -> None:
    assert cli.run(arguments) == 0
    assert started == [settings]


def test_variables_of_the_environment_are_read(started: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWATCH_MACHINE_POOL_NAME", "from-variable")
    assert cli.run(["sidecar", "--heartbeat-interval", "9s"]) == 0
    assert started == [SidecarSettings(machine_pool_name="from-variable", heartbeat_interval_seconds=9.0)]


@pytest.mark.parametrize("code", [None, 0, 1])
def test_the_exit_code_is_what_the_command_returns(code: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_settings: object) -> int | None:
        return code

    stand_in(monkeypatch, Command.DEMO, run)
    assert cli.run(["demo", "--once"]) == (code or 0)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("sidecar",), "--machine-pool-name is required (or LOOPWATCH_MACHINE_POOL_NAME): a DNS subdomain, at most 253 characters"),
        ((*SIDECAR, "--heartbeat-interval", "0s"), "--heartbeat-interval must be > 0, got 0s"),
        ((*SIDECAR, "--heartbeat-interval", "-5s"), "--heartbeat-interval must be > 0, got -5s"),
        (
            (*SIDECAR, "--heartbeat-lease-duration=5s"),
            "--heartbeat-lease-duration (5s) must be greater than --heartbeat-interval (10s)",
        ),
        (
            (*SIDECAR, "--heartbeat-status-timeout=10s"),
            "--heartbeat-status-timeout (10s) must be > 0 and less than --heartbeat-interval (10s)",
        ),
        ((*SIDECAR, "--heartbeat-interval", "10"), "--heartbeat-interval must be a duration such as 10s, 1m30s or 500ms, got '10'"),
        (("controller", "--listen-address", "9808"), "--listen-address must be host:port, [IPv6 address]:port or :port with a port"),
        (("controller", "--no-such-flag"), "No such option: --no-such-flag (loopwatch controller --help lists what there is)"),
        (("controller", "--machine-pool-name", "x"), "No such option: --machine-pool-name"),
        (("demo", "extra"), "Got unexpected extra argument"),
        (("rbac", "admin"), "PROCESS must be one of sidecar, controller, reader, got 'admin'"),
        (("rbac", "reader", "extra"), "Got unexpected extra argument"),
        (("controller", "--tls-cert-file", "/c"), "--tls-cert-file is set without --tls-key-file: HTTPS needs both, plain HTTP neither"),
        (("demo", "--port"), "Option '--port' requires an argument"),
        (("no-such-command",), "No such command 'no-such-command'. (loopwatch --help lists what there is)"),
        (("--no-such-flag",), "No such option: --no-such-flag (loopwatch --help lists what there is)"),
        (("demo", "--once=maybe"), "--once must be true or false, got 'maybe'"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(
    arguments: tuple[str, ...], line: str, started: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"loopwatch: {line}")
    assert err.count("\n") == 1
    assert started == []


def test_a_flag_that_was_mistyped_is_answered_with_its_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*SIDECAR, "--heartbeat-intervall", "1s"]) == 2
    assert "(Possible options: --heartbeat-interval)" in capsys.readouterr().err


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LOOPWATCH_LOG_LEVEL", "loud")
    assert cli.run(["controller"]) == 2
    assert "(from LOOPWATCH_LOG_LEVEL)" in capsys.readouterr().err


def test_a_variable_that_no_setting_reads_is_said_and_stops_nothing(
    started: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOOPWATCH_NO_ACTS", "true")
    assert cli.run(["controller"]) == 0
    assert started == [ControllerSettings()]
    assert capsys.readouterr().err == "loopwatch: LOOPWATCH_NO_ACTS in the environment is no setting; did you mean LOOPWATCH_NO_ACT?\n"


def test_hostile_arguments_can_not_forge_a_line_or_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["\x1b[2J\nroot: ok"], ["demo", "--\x1b[31m\n"], [*SIDECAR, "--context", "x", "--mode", "\x1b[31m\n"]):
        assert cli.run(arguments) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err[:-1].isprintable()


class ConfigError(Exception):
    """Stands for an error that the user can mend."""


@pytest.fixture
def users_error(monkeypatch: pytest.MonkeyPatch) -> type[Exception]:
    """The only one, so that the real ones' modules need not be loaded."""
    monkeypatch.setattr(cli, "_USERS_ERRORS", ((__name__, "ConfigError"),))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[ConfigError.__module__])
    return ConfigError


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    async def run(_settings: object) -> None:
        raise error

    stand_in(monkeypatch, Command.CONTROLLER, run)


def test_an_error_that_the_user_can_mend_is_one_line(
    users_error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, users_error("/k:3: what; fix"))
    assert cli.run(["controller"]) == 2
    assert capsys.readouterr().err == "loopwatch: /k:3: what; fix\n"


def test_such_errors_out_of_task_groups_are_one_line_too(
    users_error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, ExceptionGroup("tasks", [users_error("a"), ExceptionGroup("more", [users_error("b"), users_error("a")])]))
    assert cli.run(["controller"]) == 2
    assert capsys.readouterr().err == "loopwatch: a; b\n"


def test_a_fault_of_ours_keeps_its_traceback_also_beside_one_that_is_the_users(
    users_error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, ExceptionGroup("tasks", [users_error("a"), ZeroDivisionError("ours")]))
    with pytest.raises(ExceptionGroup):
        cli.run(["controller"])
    failing(monkeypatch, OSError("ours"))
    with pytest.raises(OSError, match="ours"):
        cli.run(["controller"])


def test_the_errors_that_are_the_users_are_where_the_command_looks_for_them() -> None:
    for module, name in cli._USERS_ERRORS:
        assert issubclass(getattr(__import__(module, fromlist=[name]), name), Exception)


def test_ctrl_c_before_the_command_can_handle_it_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert cli.run(["controller"]) == 130


def test_commands_run_on_uvloop_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[str] = []

    async def run(_settings: object) -> None:
        loops.append(type(asyncio.get_running_loop()).__module__.split(".")[0])

    stand_in(monkeypatch, Command.DEMO, run)
    assert cli.run(["demo"]) == 0
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert cli.run(["demo"]) == 0
    assert loops[-1] == "asyncio"
    if sys.platform == "linux":
        assert loops[0] == "uvloop"


def test_help_groups_the_settings_by_topic(capsys: pytest.CaptureFixture[str]) -> None:
    for command in Command:
        assert cli.run([command.value, "--help"]) == 0
        page = capsys.readouterr().out
        panel = ""
        found: dict[str, str] = {}
        for line in page.splitlines():
            panel = match[1] if (match := re.match(r"╭─ (.*?) ─", line)) else panel
            if match := re.match(r"│ (--[a-z-]+) ", line):
                found[match[1]] = panel
        assert found.pop("--help") == "Options"
        assert found == {row.flag: row.topic.value for row in settings_of(command) if not row.positional}
        assert all("|".join(row.choices) in page for row in settings_of(command) if row.positional)
        assert [topic.value for topic in Topic if topic.value in found.values()] == list(dict.fromkeys(found.values())), "in their order"


def test_help_shows_ranges_defaults_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["sidecar", "--help"])
    page = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for row in settings_of(Command.SIDECAR):
        if row.default:
            assert f"[default: {row.default}]" in page
    assert "auto|report|observe" in page
    assert "[IPv6 address]:port" in page, "a bracket is no markup"
    assert "LOOPWATCH_LOG_LEVEL" in page


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == 0
    page = capsys.readouterr().out
    assert all(command.value in page for command in Command)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"loopwatch {__version__}\n"


def test_every_setting_is_an_option_of_a_command() -> None:
    assert {row.name for command in Command for row in settings_of(command)} == {row.name for row in SETTINGS}


HEAVY = ("kubernetes", "grpc", "aiohttp", "msgspec", "yaml", "prometheus_client", "google.protobuf")


@pytest.mark.parametrize("arguments", [("--help",), ("sidecar", "--help"), ("--version",), ("sidecar", "--mode", "x")])
def test_help_and_bad_input_load_neither_client_nor_grpc(arguments: tuple[str, ...]) -> None:
    program = (
        "import sys\n"
        "from loopwatch.cli.main import run\n"
        f"run({list(arguments)!r})\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", program], env={"PYTHONPATH": str(EXPORTER)}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_a_reader_that_leaves_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as broken:
        done = subprocess.run(
            [sys.executable, "-m", "loopwatch", "--help"],
            env={"PYTHONPATH": str(EXPORTER)},
            stdout=broken,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 1


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
"""


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a refused command said."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("loopwatch: ")
    return done.stderr.removeprefix("loopwatch: ")


def test_the_real_command_refuses_bad_settings_in_one_line() -> None:
    line = one_line(process(*SIDECAR, "--heartbeat-interval", "0s", environment={"LOOPWATCH_MODE": "x"}))
    assert line == "--mode must be one of auto, report, observe, got 'x' (from LOOPWATCH_MODE); --heartbeat-interval must be > 0, got 0s\n"


@pytest.mark.parametrize("command", [("controller",), SIDECAR])
def test_a_kubeconfig_that_is_not_there_is_refused_with_its_path(command: tuple[str, ...], tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert str(missing) in one_line(process(*command, "--kubeconfig", str(missing)))


@pytest.mark.parametrize("command", [("controller",), SIDECAR])
def test_a_broken_kubeconfig_is_refused_with_its_path_and_line(command: tuple[str, ...], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text(KUBECONFIG + "users: [\n")
    assert re.search(rf"{re.escape(str(broken))}:\d+", one_line(process(*command, "--kubeconfig", str(broken))))


@pytest.mark.parametrize("endpoint", ["ftp://x", "/"])
def test_an_endpoint_that_can_not_be_meant_is_refused(endpoint: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(KUBECONFIG)
    line = one_line(process(*SIDECAR, "--kubeconfig", str(kubeconfig), "--machine-runtime-endpoint", endpoint))
    assert "machine-runtime-endpoint" in line


def test_a_controller_whose_port_is_in_use_is_refused(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(KUBECONFIG)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = one_line(process("controller", "--kubeconfig", str(kubeconfig), "--listen-address", address))
    assert line.startswith(f"can't listen on {address}: the port is in use")


def test_the_real_command_prints_rights_for_kubectl() -> None:
    done = process("rbac", "controller", "--namespace", "ops", "--no-act")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == render(RbacSettings(process=Subject.CONTROLLER, namespace="ops", act=False))
    assert done.stdout.startswith("# The least rights that work; docs/rbac.md says what each is for.\n---\napiVersion: v1\n")


def test_rights_of_a_sidecar_without_a_pool_are_refused_in_one_line() -> None:
    assert one_line(process("rbac", "sidecar")).startswith("--machine-pool-name is required for a sidecar's rights")


@pytest.mark.parametrize("command", [("controller",), SIDECAR])
def test_a_certificate_that_can_not_be_read_is_refused_with_its_flag(command: tuple[str, ...], tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(KUBECONFIG)
    flags = ("--kubeconfig", str(kubeconfig), "--tls-cert-file", f"{tmp_path}/none", "--tls-key-file", f"{tmp_path}/none")
    line = one_line(process(*command, *flags))
    assert line == f"--tls-cert-file {tmp_path}/none can't be read: No such file or directory; correct the path, or write the file\n"


def test_half_a_tls_pair_is_refused_with_the_half_that_is_missing() -> None:
    line = one_line(process("controller", "--tls-cert-file", "/tls.crt"))
    assert line == "--tls-cert-file is set without --tls-key-file: HTTPS needs both, plain HTTP neither\n"
