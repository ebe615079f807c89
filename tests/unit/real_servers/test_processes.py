"""Processes under test: logged, stopped, and never left behind."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real_servers.processes import Process, ProcessFailed

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
POLITE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); print('ready', flush=True); signal.pause()"
PARENT = """
import sys
from pathlib import Path
from tests.real_servers.processes import Process
child = Process("child", [sys.executable, "-c", "import signal; signal.pause()"], Path(sys.argv[1]))
print(child.pid, flush=True)
sys.stdin.read()
"""

Start = Callable[[str], Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a Python program and end it with the test."""
    started: list[Process] = []

    def start_one(program: str) -> Process:
        started.append(Process("program", [sys.executable, "-c", program], tmp_path / "program.log"))
        return started[-1]

    yield start_one
    for process in started:
        process.discard()


def wait_for_output(process: Process, text: str) -> None:
    process.wait_until(f"saying {text}", lambda: text in process.text(), 10.0)


def test_stop_gives_the_exit_code_of_a_program_that_ends_on_sigterm(start: Start) -> None:
    process = start(POLITE)
    wait_for_output(process, "ready")
    assert process.stop() == 3


def test_a_paused_program_is_stopped_as_well(start: Start) -> None:
    process = start(POLITE)
    wait_for_output(process, "ready")
    process.pause()
    assert process.stop() == 3


def test_a_program_that_ignores_sigterm_is_killed_and_named(start: Start) -> None:
    process = start(STUBBORN)
    wait_for_output(process, "ready")
    with pytest.raises(ProcessFailed, match=r"(?s)program still ran after 0\.1 s.*ready"):
        process.stop(within_seconds=0.1)
    assert process.exit_code == -signal.SIGKILL


def test_waiting_for_a_program_that_ended_fails_at_once_with_its_last_words(start: Start) -> None:
    process = start("import sys; print('no such flag'); sys.exit(2)")
    with pytest.raises(ProcessFailed, match=r"(?s)program ended with 2 before ready.*no such flag"):
        process.wait_until("ready", lambda: False, 60.0)


def test_waiting_in_vain_ends_with_what_was_waited_for(start: Start) -> None:
    process = start(POLITE)
    with pytest.raises(ProcessFailed, match=r"not ready within 0\.1 s"):
        process.wait_until("ready", lambda: False, 0.1)


def test_memory_is_read_from_the_program_itself(start: Start) -> None:
    process = start(POLITE)
    wait_for_output(process, "ready")
    assert 1_000_000 < process.rss_bytes() < 200_000_000


def test_a_second_run_with_the_same_log_shows_only_its_own_words(start: Start) -> None:
    assert start("print('first')").wait(10.0) == 0
    second = start("print('second')")
    assert second.wait(10.0) == 0
    assert second.text() == "second\n"
    assert second.log.read_text() == "first\nsecond\n"


def test_a_program_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "child.log")]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - all parts are ours
    assert parent.stdin
    assert parent.stdout
    child = int(parent.stdout.readline())
    handle = os.pidfd_open(child)
    parent.kill()
    parent.communicate()
    assert ended(handle, within_seconds=10.0)


def ended(handle: int, within_seconds: float) -> bool:
    try:
        return bool(select.select([handle], [], [], within_seconds)[0])
    finally:
        os.close(handle)
