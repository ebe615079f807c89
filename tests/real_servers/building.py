"""Builds the real servers from Go modules, and says what it does, why, and how long it took.

A binary is built again only when what makes it changed (go.mod, go.sum, flags). An interrupted build goes on where it stopped, because
`go` caches each package. It downloads modules and nothing else: no toolchain, no prebuilt binary.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tests.real_servers.paths import BINARIES, HERE

PROGRESS_SECONDS = 30.0
VERSION_PACKAGE = "k8s.io/component-base/version"


class CannotBuild(Exception):
    """What is missing, in words for whoever typed `make e2e`."""


@dataclass(frozen=True, slots=True)
class Target:
    """One program: the package that holds its main(), the module that names its version, and what a build costs on two cores."""

    name: str
    package: str
    module: str
    cost: str

    @property
    def folder(self) -> Path:
        """The module, go.mod and go.sum, that it is built from."""
        return HERE / "kubernetes"


TARGETS = (
    Target("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", "a minute"),
    Target("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes", "6 minutes"),
)


def required_version(go_mod: str, module: str) -> str:
    """The version of `module` that a go.mod asks for, with its v; ValueError when it doesn't name it."""
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise ValueError(f"go.mod asks for no version of {module}")
    return found.group(1)


def linker_flags(go_mod: str) -> str:
    """Flags without which a kube-apiserver calls itself v0.0.0-master."""
    version = required_version(go_mod, "k8s.io/kubernetes")
    major, minor = version.removeprefix("v").split(".")[:2]
    variables = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "module",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return " ".join(["-s -w", *(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in variables.items())])


def build_command(target: Target, flags: str, output: str) -> list[str]:
    """The `go build` that writes one program to `output`."""
    return ["go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", f"-ldflags={flags}", "-o", output, target.package]


def build_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Static binaries, by the Go that is installed, whatever workspace this folder lies in."""
    return {**environment, "GOWORK": "off", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}


def fingerprint(target: Target, flags: str) -> str:
    """Changes when anything changes that the binary is made from."""
    digest = hashlib.sha256("\0".join(build_command(target, flags, target.name)).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((target.folder / name).read_bytes())
    return digest.hexdigest()


def check_go(go_mod: str, version_text: str | None) -> None:
    """Raise CannotBuild unless `go version` printed a version that go.mod accepts; None stands for no `go` at all."""
    wanted = re.search(r"^go (\d+)\.(\d+)", go_mod, re.MULTILINE)
    if wanted is None:
        raise ValueError("go.mod has no line that names a Go version")
    needed = f"Go {wanted.group(1)}.{wanted.group(2)} or newer is needed to build the real servers"
    advice = "install it (its command `go` must be found on PATH); `make run` and `make test` need no Go"
    if version_text is None:
        raise CannotBuild(f"{needed}, and there is no `go` on PATH: {advice}")
    found = re.search(r"\bgo(\d+)\.(\d+)", version_text)
    if found is None:
        raise CannotBuild(f"{needed}, and `go version` printed {version_text.strip()!r}: {advice}")
    if tuple(map(int, found.groups())) < tuple(map(int, wanted.groups())):
        raise CannotBuild(f"{needed}, and {found.group(0)} is installed: {advice}")


def installed_go() -> str | None:
    """What `go version` prints, or None without a `go`."""
    if shutil.which("go") is None:
        return None
    command = ["go", "version"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=build_environment(os.environ)).stdout  # noqa: S603 - PATH says which


def reason_to_build(binary: Path, stamp: Path, wanted: str) -> str | None:
    """Why `binary` has to be built, or None when it is what would come out."""
    if not binary.exists():
        return "it was not built yet"
    if not stamp.exists() or stamp.read_text() != wanted:
        return "go.mod, go.sum or the flags changed since it was built"
    return None


def build(say: Callable[[str], None] = print, binaries: Path = BINARIES) -> None:
    """Build what is not up to date into `binaries`; CannotBuild says what is in the way."""
    binaries.mkdir(parents=True, exist_ok=True)
    with _alone(binaries / ".lock", say):
        for target in TARGETS:
            _build_one(target, binaries, say)


def _build_one(target: Target, binaries: Path, say: Callable[[str], None]) -> None:
    go_mod = (target.folder / "go.mod").read_text()
    flags = linker_flags(go_mod)
    name = f"{target.name} {required_version(go_mod, target.module)}"
    binary, stamp, wanted = binaries / target.name, binaries / f".{target.name}.stamp", fingerprint(target, flags)
    reason = reason_to_build(binary, stamp, wanted)
    if reason is None:
        say(f"real servers: {name} is up to date: go.mod, go.sum and flags are those it was built from")
        return
    check_go(go_mod, installed_go())
    say(f"real servers: building {name}, because {reason} (about {target.cost} with empty Go caches, half a minute with full ones)")
    began = time.monotonic()
    unfinished = binaries / f".{target.name}.unfinished"
    log = binaries / f".{target.name}.log"
    with log.open("w") as output:
        code = _run_with_progress(build_command(target, flags, str(unfinished)), target.folder, output, name, say)
    if code:
        raise CannotBuild(f"`go build` of {name} failed (exit {code}); the end of {log}:\n{_tail(log)}")
    unfinished.replace(binary)
    stamp.write_text(wanted)
    say(f"real servers: built {name} in {time.monotonic() - began:.0f} s")


def _run_with_progress(command: list[str], folder: Path, output: TextIO, name: str, say: Callable[[str], None]) -> int:
    began = time.monotonic()
    environment = build_environment(os.environ)
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT) as go:  # noqa: S603 - all parts are ours
        while True:
            try:
                return go.wait(PROGRESS_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"real servers: still building {name}, {time.monotonic() - began:.0f} s so far")


def _tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def _alone(lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let one build at a time into the folder."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("real servers: another build is under way, waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
