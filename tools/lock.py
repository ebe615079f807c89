"""Writes requirements.lock (what a user installs) and requirements-dev.lock (everything) from pyproject.toml.

pip-compile does the work. It is told to take nothing but the package index that pip is set up with: a folder of wheels on one machine
(find-links) would put hashes into the files that nobody else can get, so it refuses to write anything that names a host or a path.
Versions that are locked already stay, unless `--upgrade` is given.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNTIME_LOCK = "requirements.lock"
DEV_LOCK = "requirements-dev.lock"
FLAGS = [
    "--quiet",
    "--no-config",
    "--generate-hashes",
    "--allow-unsafe",
    "--strip-extras",
    "--no-annotate",
    "--no-header",
    "--no-emit-options",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
]
SETTINGS_OF_ONE_MACHINE = {"PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_EXTRA_INDEX_URL"}
HEADERS = {
    RUNTIME_LOCK: "# What loopwatch needs to run, exact versions with hashes. Written by `make lock` from pyproject.toml.\n",
    DEV_LOCK: "# What loopwatch needs to run, to be built, tested and checked. Written by `make lock` from pyproject.toml.\n",
}
PIN = re.compile(r"^[A-Za-z0-9._-]+==", re.MULTILINE)
ALLOWED_LINE = re.compile(r"(#.*|[A-Za-z0-9._-]+==[^\s/]+( ; [^/]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|)")


def wanted(pyproject: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The requirements of a user, and those of a developer on top of them (tools and the build backend)."""
    runtime = list(pyproject["project"]["dependencies"])
    development = [*pyproject["dependency-groups"]["dev"], *pyproject["build-system"]["requires"]]
    return runtime, development


def foreign_lines(text: str) -> list[str]:
    """Lines of a lock file that are neither a pin, a hash nor a comment: options, addresses, paths."""
    return [line for line in text.splitlines() if not ALLOWED_LINE.fullmatch(line) or "://" in line]


def compile_lock(folder: Path, name: str, requirements: list[str], constraint: Path | None, *, upgrade: bool) -> str:
    """Resolve `requirements` in `folder`; returns the lock file's text, header and all."""
    (folder / "wanted.in").write_text("\n".join(requirements) + "\n")
    output = folder / name
    kept = ROOT / name
    if kept.exists() and not upgrade:
        shutil.copy(kept, output)
    command = [sys.executable, "-m", "piptools", "compile", *FLAGS]
    command += [f"--constraint={constraint.name}"] if constraint else []
    command += ["--upgrade"] if upgrade else []
    environment = {key: value for key, value in os.environ.items() if key not in SETTINGS_OF_ONE_MACHINE}
    subprocess.run([*command, f"--output-file={name}", "wanted.in"], cwd=folder, env=environment, check=True)  # noqa: S603 - all parts are ours
    return HEADERS[name] + output.read_text()


def main(arguments: list[str] | None = None) -> int:
    """Write both files, or neither."""
    parser = argparse.ArgumentParser(prog="python -m tools.lock", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    upgrade: bool = parser.parse_args(arguments).upgrade
    runtime, development = wanted(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = {DEV_LOCK: compile_lock(folder, DEV_LOCK, [*runtime, *development], None, upgrade=upgrade)}
        # The runtime lock is a part of the other: what is tested is what is installed.
        texts[RUNTIME_LOCK] = compile_lock(folder, RUNTIME_LOCK, runtime, folder / DEV_LOCK, upgrade=True)
    for file, text in texts.items():
        if foreign := foreign_lines(text):
            print(f"{file}: not written, it would hold more than versions and hashes: {foreign[0]!r}", file=sys.stderr)
            return 1
    for file, text in texts.items():
        (ROOT / file).write_text(text)
        print(f"{file}: {len(PIN.findall(text))} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
