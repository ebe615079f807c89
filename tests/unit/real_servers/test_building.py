"""Building the real servers, with a `go` that only writes down what it was asked."""

import os
import stat
from pathlib import Path

import pytest

from tests.real_servers import building
from tests.real_servers.building import TARGETS, CannotBuild, build, check_go, fingerprint, linker_flags, required_version

GO_MOD = """module example.test/m

go 1.26.4

require (
	go.etcd.io/etcd/server/v3 v3.6.12 // indirect
	k8s.io/kubernetes v1.36.3 // indirect
)
"""
GO = """#!/bin/sh
[ "$1" = version ] && { echo "go version go1.26.8 linux/amd64"; exit 0; }
echo "$GOTOOLCHAIN $CGO_ENABLED $GOWORK $*" >>"$CALLS"
while [ -e "$SLOW" ]; do sleep 0.01; done
while [ "$1" != -o ]; do shift; done
[ -e "$BROKEN" ] && { echo "no space left on device"; exit 1; }
echo binary >"$2"
"""


def silent(_line: str) -> None:
    """For tests that don't look at what is said."""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one line for each build that was asked of `go`."""
    folder = tmp_path / "path"
    folder.mkdir()
    program = folder / "go"
    program.write_text(GO)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    log = tmp_path / "calls"
    log.touch()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(log))
    monkeypatch.setenv("SLOW", str(tmp_path / "slow"))
    monkeypatch.setenv("BROKEN", str(tmp_path / "broken"))
    return log


def test_each_server_is_built_once_and_said_to_be_up_to_date_after(calls: Path, tmp_path: Path) -> None:
    said: list[str] = []
    build(said.append, tmp_path / "bin")
    assert len(calls.read_text().splitlines()) == len(TARGETS)
    assert all((tmp_path / "bin" / target.name).read_text() == "binary\n" for target in TARGETS)
    assert "building etcd v3.6.12, because it was not built yet" in said[0]
    assert said[1].startswith("real servers: built etcd v3.6.12 in ")
    said.clear()
    build(said.append, tmp_path / "bin")
    assert len(calls.read_text().splitlines()) == len(TARGETS)
    assert ["is up to date" in line for line in said] == [True, True]


def test_go_may_fetch_no_toolchain_and_makes_static_binaries(calls: Path, tmp_path: Path) -> None:
    build(silent, tmp_path / "bin")
    assert all(line.startswith("local 0 off build -mod=readonly ") for line in calls.read_text().splitlines())


def test_only_what_changed_is_built_again(calls: Path, tmp_path: Path) -> None:
    binaries = tmp_path / "bin"
    build(silent, binaries)
    (binaries / ".etcd.stamp").write_text("another go.mod")
    said: list[str] = []
    build(said.append, binaries)
    assert calls.read_text().splitlines()[-1].endswith("go.etcd.io/etcd/server/v3")
    assert len(calls.read_text().splitlines()) == len(TARGETS) + 1
    assert "because go.mod, go.sum or the flags changed" in said[0]


@pytest.mark.usefixtures("calls")
def test_a_failed_build_leaves_no_binary_and_shows_what_go_said(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    with pytest.raises(CannotBuild, match=r"(?s)etcd v3\.6\.12 failed \(exit 1\).*no space left on device"):
        build(silent, tmp_path / "bin")
    assert not (tmp_path / "bin" / "etcd").exists()
    (tmp_path / "broken").unlink()
    build(silent, tmp_path / "bin")
    assert (tmp_path / "bin" / "etcd").exists()


@pytest.mark.usefixtures("calls")
def test_a_long_build_says_that_it_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PROGRESS_SECONDS", 0.01)
    slow = tmp_path / "slow"
    slow.touch()
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "still building etcd v3.6.12" in line:
            slow.unlink(missing_ok=True)  # go comes to its end only now

    build(say, tmp_path / "bin")
    assert not slow.exists()
    assert said[-1].startswith("real servers: built kube-apiserver v1.36.3 in ")


def test_a_missing_go_is_said_in_plain_words() -> None:
    with pytest.raises(CannotBuild, match=r"Go 1\.26 or newer is needed .* there is no `go` on PATH: install it .* need no Go"):
        check_go(GO_MOD, None)


def test_an_older_go_is_named() -> None:
    with pytest.raises(CannotBuild, match=r"Go 1\.26 or newer is needed .* go1\.9 is installed"):
        check_go(GO_MOD, "go version go1.9 linux/amd64\n")


@pytest.mark.parametrize("version", ["go1.26.0", "go1.26.8", "go1.31", "go2.0", "go1.27rc1"])
def test_a_go_that_is_new_enough_is_taken(version: str) -> None:
    check_go(GO_MOD, f"go version {version} linux/amd64\n")


def test_a_go_that_says_nothing_known_is_refused_with_its_words() -> None:
    with pytest.raises(CannotBuild, match="printed 'gccgo'"):
        check_go(GO_MOD, "gccgo\n")


def test_the_version_is_the_one_that_go_mod_asks_for() -> None:
    assert required_version(GO_MOD, "k8s.io/kubernetes") == "v1.36.3"
    with pytest.raises(ValueError, match=r"no version of k8s\.io/kube$"):
        required_version(GO_MOD, "k8s.io/kube")


def test_the_apiserver_is_told_its_version() -> None:
    flags = linker_flags(GO_MOD)
    assert "version.gitVersion=v1.36.3" in flags
    assert "version.gitMajor=1 " in flags
    assert "version.gitMinor=36 " in flags


def test_another_flag_is_another_binary() -> None:
    etcd, apiserver = TARGETS
    assert len({fingerprint(etcd, "-s"), fingerprint(etcd, "-w"), fingerprint(apiserver, "-s")}) == 3
    assert fingerprint(etcd, "-s") == fingerprint(etcd, "-s")
