"""A client certificate and its key as files, for the only moment that OpenSSL needs them as such.

Python's ssl reads a client's pair from paths alone. kubernetes.aio writes them to temporary files that stay until the process ends (and
pile up with each rotation); here they live in memory, under a path of this process, and are gone when the block ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def client_pair_as_files(certificate: bytes, key: bytes) -> Iterator[tuple[str, str]]:
    """Paths of the two, good within the block."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(_as_file(certificate)), stack.enter_context(_as_file(key))


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    if sys.platform == "linux":
        descriptor = os.memfd_create("loopwatch")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "pem"
            path.touch(mode=0o600)
            path.write_bytes(content)
            yield str(path)
