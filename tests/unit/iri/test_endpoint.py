"""loopwatch.iri.endpoint: where the runtime listens, and which spellings are refused before anything runs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.iri.endpoint import (
    SOCKET_PATH_LIMIT_BYTES,
    WELL_KNOWN_SOCKETS,
    Endpoint,
    EndpointError,
    PathKind,
    choose,
    first_socket,
    parse,
    path_kind,
    socket_identity,
)


def nothing_there(_path: str) -> PathKind:
    return PathKind.ABSENT


def a_file_there(_path: str) -> PathKind:
    return PathKind.OTHER


def a_socket_there(_path: str) -> PathKind:
    return PathKind.SOCKET


def unreachable(path: str) -> PathKind:
    raise PermissionError(13, "Permission denied", path)


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="lw") as name:
        yield Path(name)


@pytest.mark.parametrize(
    ("text", "target", "socket_path"),
    [
        ("unix:/run/a.sock", "unix:/run/a.sock", "/run/a.sock"),
        ("unix:///run/a.sock", "unix:/run/a.sock", "/run/a.sock"),
        ("unix:a.sock", "unix:a.sock", "a.sock"),
        ("unix:./b/a.sock", "unix:./b/a.sock", "./b/a.sock"),
        ("unix:/run/a%20b.sock", "unix:/run/a%20b.sock", "/run/a b.sock"),
        ("unix:/run/100%25?.sock", "unix:/run/100%25%3F.sock", "/run/100%?.sock"),
        ("unix:/run/ü.sock", "unix:/run/%C3%BC.sock", "/run/ü.sock"),
        ("dns:///localhost:8090", "dns:///localhost:8090", ""),
        ("dns:localhost:8090", "dns:///localhost:8090", ""),
        ("localhost:8090", "dns:///localhost:8090", ""),
        ("10.0.0.1:1", "dns:///10.0.0.1:1", ""),
        ("runtime.pools.svc.cluster.local:65535", "dns:///runtime.pools.svc.cluster.local:65535", ""),
        ("[::1]:8090", "dns:///[::1]:8090", ""),
        ("dns:///[fe80::1]:8090", "dns:///[fe80::1]:8090", ""),
        ("unix:8090", "unix:8090", "8090"),
    ],
)
def test_grpc_spellings_are_accepted(text: str, target: str, socket_path: str) -> None:
    assert parse(text, "--flag", nothing_there) == Endpoint(target, socket_path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("http://localhost:8090", "unknown scheme 'http'"),
        ("tcp://localhost:8090", "unknown scheme 'tcp'"),
        ("ftp:/run/a.sock", "unknown scheme 'ftp'"),
        ("UNIX:/run/a.sock", "unknown scheme 'UNIX'"),
        ("passthrough:///localhost:8090", "unknown scheme 'passthrough'"),
        ("/run/a.sock", "write unix:/run/a.sock"),
        ("./a.sock", "write unix:./a.sock"),
        ("unix://run/a.sock", "third slash"),
        ("unix:", "names no path"),
        ("unix://", "third slash"),
        ("unix:/run/a%00.sock", "names no path"),
        ("localhost", "no host and port"),
        ("dns:///localhost", "no host and port"),
        ("dns://8.8.8.8/localhost:1", "no host and port"),
        ("dns:", "no host and port"),
        ("localhost:", "no host and port"),
        ("localhost:http", "no host and port"),
        ("::1:8090", "no host and port"),
        ("two words:8090", "no host and port"),
        ("localhost:8090\n", "no host and port"),
        ("localhost:0", "1 to 65535"),
        ("localhost:65536", "1 to 65535"),
    ],
)
def test_anything_else_is_refused_with_what_was_given_and_what_is_allowed(text: str, what: str) -> None:
    with pytest.raises(EndpointError) as refusal:
        parse(text, "--machine-runtime-endpoint", nothing_there)
    said = str(refusal.value)
    assert what in said
    assert said.startswith(f"--machine-runtime-endpoint: {text!r}") or repr(text) in said


def test_an_absent_path_is_no_mistake() -> None:
    assert parse("unix:/run/later.sock", "--flag", nothing_there).socket_path == "/run/later.sock"


def test_a_path_that_is_there_and_no_socket_is_refused() -> None:
    with pytest.raises(EndpointError, match="'/etc/passwd' is there but is no socket; name the socket"):
        parse("unix:/etc/passwd", "--flag", a_file_there)


def test_a_path_that_cannot_be_looked_at_is_refused_with_the_reason() -> None:
    with pytest.raises(EndpointError, match="can't be looked at \\(Permission denied\\)"):
        parse("unix:/root/a.sock", "--flag", unreachable)


@pytest.mark.parametrize("character", ["x", "ü"])
def test_a_path_may_have_107_bytes_and_no_more(character: str) -> None:
    width = len(character.encode())
    longest = "/" + "y" * ((SOCKET_PATH_LIMIT_BYTES - 1) % width) + character * ((SOCKET_PATH_LIMIT_BYTES - 1) // width)
    assert parse(f"unix:{longest}", "--flag", nothing_there).socket_path == longest
    with pytest.raises(EndpointError, match="is 108 bytes long; a unix socket's may have 107"):
        parse(f"unix:{longest}z", "--flag", nothing_there)


def test_the_flag_comes_before_the_environment() -> None:
    chosen = choose("unix:/flag.sock", "unix:/environment.sock", nothing_there)
    assert chosen is not None
    assert chosen.socket_path == "/flag.sock"


def test_the_environment_counts_where_no_flag_is_given_and_is_named_in_its_error() -> None:
    assert choose("", "unix:/environment.sock", nothing_there) == Endpoint("unix:/environment.sock", "/environment.sock")
    with pytest.raises(EndpointError, match=r"^\$IRI_MACHINE_RUNTIME_ENDPOINT: "):
        choose("", "http://x", nothing_there)


def test_with_neither_sockets_are_to_be_looked_for() -> None:
    assert choose("", "", a_socket_there) is None


def test_the_broker_comes_before_the_provider() -> None:
    assert first_socket(WELL_KNOWN_SOCKETS, a_socket_there) == Endpoint(
        "unix:/var/run/iri-machinebroker.sock", "/var/run/iri-machinebroker.sock"
    )


def test_the_first_that_is_a_socket_is_taken_and_files_and_closed_folders_are_passed_over() -> None:
    kinds = {"/file": PathKind.OTHER, "/absent": PathKind.ABSENT, "/socket": PathKind.SOCKET, "/later": PathKind.SOCKET}

    def kind_of(path: str) -> PathKind:
        return kinds[path] if path in kinds else unreachable(path)

    found = first_socket(["/closed", "/file", "/absent", "/socket", "/later"], kind_of)
    assert found == Endpoint("unix:/socket", "/socket")
    assert first_socket(["/closed", "/file", "/absent"], kind_of) is None


def test_the_file_system_is_read_as_it_is(folder: Path) -> None:
    path, link = folder / "s.sock", folder / "link"
    assert path_kind(str(path)) is PathKind.ABSENT
    assert socket_identity(str(path)) is None
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        link.symlink_to(path)
        assert path_kind(str(path)) is PathKind.SOCKET
        assert path_kind(str(link)) is PathKind.SOCKET
        assert path_kind(str(folder)) is PathKind.OTHER
        with pytest.raises(NotADirectoryError):
            path_kind(str(path / "below"))
    path.unlink()
    assert path_kind(str(link)) is PathKind.ABSENT


def test_a_socket_made_again_while_the_old_one_is_held_is_another(folder: Path) -> None:
    path = folder / "s.sock"
    with socket.socket(socket.AF_UNIX) as old, socket.socket(socket.AF_UNIX) as new:
        old.bind(str(path))
        before = socket_identity(str(path))
        assert before == socket_identity(str(path))
        path.unlink()
        new.bind(str(path))
        assert before != socket_identity(str(path))


def test_the_change_time_tells_apart_what_got_the_inode_of_a_removed_socket(folder: Path) -> None:
    path = folder / "s.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        found = path.stat()
        assert socket_identity(str(path)) == (found.st_dev, found.st_ino, found.st_ctime_ns)


@given(st.text())
def test_whatever_is_written_there_is_an_endpoint_or_an_endpoint_error(text: str) -> None:
    try:
        endpoint = parse(text, "--flag", nothing_there)
    except EndpointError:
        return
    assert endpoint.target.startswith(("unix:", "dns:///"))
    assert endpoint.target.isascii()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_target_spells_its_path_so_that_reading_it_again_gives_the_same_path(name: str) -> None:
    endpoint = parse("unix:/" + name.replace("%", "%25").lstrip("/"), "--flag", nothing_there)
    assert parse(endpoint.target, "--flag", nothing_there) == endpoint
