"""The sandbox runtime as a process of its own, for tests that kill and stop it for real.

`python -m loopwatch.sandbox.runtime --socket PATH [--behaviour-file FILE]`. FILE holds one behaviour as JSON and is read again at each
call, so that a test changes it (by renaming a whole file over it); the sorts that replace the server are noticed within 100 ms. SIGTERM
stops it cleanly; SIGKILL leaves the socket's file behind, as it does with any runtime.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from loopwatch.clock import SystemClock
from loopwatch.sandbox.runtime.behaviours import AnyBehaviour, Error, Ok, parse
from loopwatch.sandbox.runtime.server import Runtime, SocketTaken

FOLLOW_SECONDS = 0.1


def behaviour_in(path: Path | None) -> AnyBehaviour:
    """What the file says; a file that can't be read or understood makes calls fail with the reason."""
    if path is None:
        return Ok({"sandbox": 1})
    try:
        return parse(path.read_bytes())
    except (OSError, ValueError) as error:
        return Error("Internal", f"--behaviour-file {path}: {error}")


async def serve(socket_path: Path, behaviour_file: Path | None) -> None:
    """Serve until SIGTERM or SIGINT."""
    clock = SystemClock()
    runtime = Runtime(socket_path, clock, behaviour_in(behaviour_file), lambda: behaviour_in(behaviour_file))
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await runtime.start()
    sys.stdout.write(f"listening on {socket_path}\n")
    sys.stdout.flush()
    while not ended.is_set():
        await runtime.behave(behaviour_in(behaviour_file))
        await clock.sleep(FOLLOW_SECONDS)
    await runtime.stop()


def main() -> int:
    """The command: 0 after SIGTERM, 2 where the socket can't be taken."""
    parser = argparse.ArgumentParser(prog="python -m loopwatch.sandbox.runtime", description="A machine runtime that does as it is told.")
    parser.add_argument("--socket", type=Path, required=True, help="path of the unix socket to listen on")
    parser.add_argument("--behaviour-file", type=Path, help="JSON file that says how to behave; read again at each call")
    arguments = parser.parse_args()
    try:
        asyncio.run(serve(arguments.socket, arguments.behaviour_file))
    except SocketTaken as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
