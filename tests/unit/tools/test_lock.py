"""The lock files, and the tool that writes them."""

import re
import tomllib

import pytest

from tools.lock import DEV_LOCK, ROOT, RUNTIME_LOCK, foreign_lines, wanted

PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
HASH = "    --hash=sha256:" + "0" * 64


def pins(name: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / name).read_text()))


def normalized(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[._-]+", "-", found.group()).lower()


@pytest.mark.parametrize("name", [RUNTIME_LOCK, DEV_LOCK])
def test_a_lock_file_holds_pins_and_hashes_alone(name: str) -> None:
    assert foreign_lines((ROOT / name).read_text()) == []


@pytest.mark.parametrize("name", [RUNTIME_LOCK, DEV_LOCK])
def test_every_pin_has_a_hash(name: str) -> None:
    text = (ROOT / name).read_text()
    assert len(re.findall(r"^[A-Za-z0-9._-]+==.* \\\n    --hash=", text, re.MULTILINE)) == len(pins(name))


def test_what_pyproject_asks_for_is_locked() -> None:
    runtime, development = wanted(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    assert {normalized(line) for line in runtime} <= pins(RUNTIME_LOCK).keys()
    assert {normalized(line) for line in [*runtime, *development]} <= pins(DEV_LOCK).keys()


def test_users_get_the_versions_that_were_tested() -> None:
    assert pins(RUNTIME_LOCK).items() <= pins(DEV_LOCK).items()


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://packages.example.test/simple",
        "--find-links /wheels",
        "-e .",
        "attrs @ file:///wheels/attrs-26.1.0-py3-none-any.whl \\",
        "attrs>=26 \\",
        "    --hash=md5:00",
    ],
)
def test_a_line_that_is_more_than_a_pin_is_found(line: str) -> None:
    assert foreign_lines(f"# a comment\nattrs==26.1.0 \\\n{HASH} \\\n{HASH}\n{line}\n") == [line]


def test_a_pin_with_a_marker_is_a_pin() -> None:
    assert foreign_lines(f'uvloop==0.23.0 ; sys_platform == "linux" \\\n{HASH}\n') == []
