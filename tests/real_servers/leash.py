"""Becomes another program that the kernel ends when the process that asked for it is gone, even by SIGKILL.

Run as `python -I -S leash.py PARENT_PID COMMAND...`: a file, not an import, so that it starts in a few milliseconds. The kernel watches the
THREAD that started it: start from a thread that lives as long as the program should (the main one).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Never returns: becomes `command`, or raises SystemExit because `parent` is gone already."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
    if os.getppid() != parent:  # it ended between its fork and our prctl, and nobody would tell us
        raise SystemExit(f"process {parent} ended before {command[0]} was started")
    os.execvp(command[0], command)  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
