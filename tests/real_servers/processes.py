"""Programs under test as real processes: logged, watched, stopped at will, and never left behind.

Each starts in a session of its own, so that Ctrl-C reaches only the tests, and on a leash (leash.py), so that it ends when they do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

POLL_SECONDS = 0.02
LEASH = Path(__file__).with_name("leash.py")


class ProcessFailed(Exception):
    """A program ended, or did not do in time what was waited for; carries the end of its log."""


class Process:
    """One run of one program. Start it from the main thread: the kernel ties its life to the thread that starts it."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._log_start = output.tell()
            self._popen = subprocess.Popen(  # noqa: S603 - the tests choose the command
                [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(os.environ if environment is None else environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._popen.poll()

    def text(self) -> str:
        """What it has written so far, both streams."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def tail(self, lines: int = 30) -> str:
        """The end of what it has written, for a failure's message."""
        return "\n".join(self.text().splitlines()[-lines:])

    def rss_bytes(self) -> int:
        """Resident memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise ProcessFailed(f"{self.name} has no memory any more: it has ended\n{self.tail()}")

    def pause(self) -> None:
        """SIGSTOP: it holds its sockets and answers nothing."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        self._popen.send_signal(signal.SIGCONT)

    def interrupt(self) -> None:
        """SIGINT, as Ctrl-C sends it."""
        self._popen.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._popen.kill()
        self._popen.wait()

    def stop(self, within_seconds: float = 10.0) -> int:
        """SIGTERM, and its exit code; ProcessFailed (after a SIGKILL) when it takes longer than that."""
        self._popen.terminate()
        self.resume()  # a paused process gets its SIGTERM only then
        return self.wait(within_seconds)

    def wait(self, within_seconds: float) -> int:
        """Its exit code once it ends by itself; ProcessFailed (after a SIGKILL) when it takes longer than that."""
        try:
            return self._popen.wait(within_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ProcessFailed(f"{self.name} still ran after {within_seconds:g} s\n{self.tail()}") from None

    def discard(self) -> None:
        """End it in whatever state it is; for clean-up, so it never complains."""
        with contextlib.suppress(ProcessLookupError):
            self.kill()

    def wait_until(self, claim: str, true: Callable[[], bool], within_seconds: float) -> None:
        """Poll `true` until it holds; ProcessFailed with the log's end when time is up or the program ends."""
        deadline = time.monotonic() + within_seconds
        while not true():
            if self.exit_code is not None:
                raise ProcessFailed(f"{self.name} ended with {self.exit_code} before {claim}; the end of {self.log}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise ProcessFailed(f"{self.name}: not {claim} within {within_seconds:g} s; the end of {self.log}:\n{self.tail()}")
            time.sleep(POLL_SECONDS)
