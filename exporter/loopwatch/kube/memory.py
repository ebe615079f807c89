"""Files in memory, for those who take nothing but files.

Python's ssl reads a client's certificate and key from paths alone. kubernetes.aio writes them to temporary files that stay until the
process ends (and pile up with each rotation); here they live in memory, under a path of this process, and are gone when the block ends.
A plugin's output is kept the same way. Nothing of it needs a writable directory, where there is Linux.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def memory_file() -> Iterator[BinaryIO]:
    """A nameless file, good within the block."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("loopwatch"), "w+b") as file:
            yield file
    else:
        with tempfile.NamedTemporaryFile() as file:  # 0600
            yield file


@contextlib.contextmanager
def client_pair_as_files(certificate: bytes, key: bytes) -> Iterator[tuple[str, str]]:
    """Paths of the two, good within the block."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(_as_path(certificate)), stack.enter_context(_as_path(key))


@contextlib.contextmanager
def _as_path(content: bytes) -> Iterator[str]:
    with memory_file() as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else file.name
