"""`loopwatch demo` as a user runs it, and with what it judges broken on purpose: then it must say so."""

from __future__ import annotations

import re
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.real_servers.processes import Process

FIRST_LINE_SECONDS = 5.0
ONCE_SECONDS = 90.0

BROKEN = """
import loopwatch.{module} as module
from loopwatch.kube.errors import ApiError
from loopwatch.cli.main import main

async def refuse(*_, **__):
    raise ApiError(403, reason="Forbidden", message="broken on purpose")

module.{name}.{method} = refuse
main(["demo", "--once", "--port", "0"])
"""
UNKNOWN_IS_NEVER_WRITTEN = {"module": "pools.act.mark", "name": "Marker", "method": "mark"}
LEASE_IS_NEVER_RENEWED = {"module": "pools.act.lease", "name": "LeaseKeeper", "method": "_patch"}


def demo(folder: Path, *arguments: str) -> Process:
    """A demo on a free port."""
    return Process("demo", [sys.executable, "-m", "loopwatch", "demo", "--port=0", *arguments], folder / "demo.log")


def test_the_story_goes_as_told(tmp_path: Path) -> None:
    story = demo(tmp_path, "--once")
    assert story.wait(ONCE_SECONDS) == 0, story.tail()
    assert story.text().splitlines()[-1].startswith("OK: 6 steps, each transition seen in /metrics")


@pytest.mark.parametrize("what", [UNKNOWN_IS_NEVER_WRITTEN, LEASE_IS_NEVER_RENEWED], ids=["no Unknown", "no renewal"])
def test_a_story_with_a_part_broken_on_purpose_fails(what: dict[str, str], tmp_path: Path) -> None:
    story = Process("broken demo", [sys.executable, "-c", BROKEN.format(**what)], tmp_path / "demo.log")
    assert story.wait(ONCE_SECONDS) == 1, story.tail()
    last, *others = reversed(story.text().splitlines())
    assert last == "FAILED: the story did not go as told"
    assert any(line.startswith("wrong: ") for line in others)


def test_the_page_lives_within_seconds_and_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    running = demo(tmp_path)
    running.wait_until("a page", lambda: "page http" in running.text(), FIRST_LINE_SECONDS)
    assert time.monotonic() - began < FIRST_LINE_SECONDS
    address = re.findall(r"page (\S+)", running.text())[0]
    running.wait_until("three pools True", lambda: page(address).count(">True<") == 3, 20.0)
    assert 'http-equiv="refresh" content="1"' in page(address)
    assert 'href="metrics"' in page(address)
    running.wait_until(
        "a transition as one line",
        lambda: re.search(r"^\d\d:\d\d:\d\d  berlin .*True → False", running.text(), re.MULTILINE) is not None,
        30.0,
    )
    ended = time.monotonic()
    running.interrupt()
    assert running.wait(2.0) == 0
    assert time.monotonic() - ended < 2.0


def page(address: str) -> str:
    """The page as a browser gets it."""
    with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 - loopback, and http as the demo said
        text: str = answer.read().decode()
        return text
