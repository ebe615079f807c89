"""`python -m tests.real_servers build` builds the real servers; `... up` runs one until Ctrl-C, to try things by hand."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.real_servers.apiserver import ApiServer
from tests.real_servers.building import CannotBuild, build
from tests.real_servers.paths import RUNS


def say(line: str) -> None:
    """One line at once, also into a pipe."""
    print(line, flush=True)  # noqa: T201 - this is a command


def up() -> None:
    """Run a server until SIGINT or SIGTERM."""
    build(say)
    RUNS.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(dir=RUNS, prefix="up-") as folder, contextlib.suppress(KeyboardInterrupt):
        began = time.monotonic()
        with ApiServer(Path(folder)) as server:
            say(f"real servers: ready after {time.monotonic() - began:.1f} s; Ctrl-C ends it and removes {folder}")
            say(f"export KUBECONFIG={server.kubeconfig}")
            signal.pause()


def main() -> int:
    """0, or 2 with one plain message."""
    parser = argparse.ArgumentParser(prog="python -m tests.real_servers", description=__doc__)
    parser.add_argument("command", choices=["build", "up"])
    command = parser.parse_args().command
    try:
        build(say) if command == "build" else up()
    except CannotBuild as problem:
        say(f"real servers: {problem}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
