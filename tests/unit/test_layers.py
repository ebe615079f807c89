"""What import-linter can't see: calls that reach time, chance or the API's write verbs past the doors made for them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "exporter" / "loopwatch"
CLOCK = PACKAGE / "clock.py"
WRITE = PACKAGE / "kube" / "write.py"
REVIEW = PACKAGE / "kube" / "review.py"  # asks who somebody is and what they may do: a POST that leaves nothing behind
SANDBOX = PACKAGE / "sandbox"  # a server: it answers these verbs

FORBIDDEN_CALLS = {
    "asyncio.sleep": "clock.sleep",
    "datetime.date.today": "clock.utcnow",
    "datetime.datetime.now": "clock.utcnow",
    "datetime.datetime.today": "clock.utcnow",
    "datetime.datetime.utcnow": "clock.utcnow",
    "os.urandom": "clock.random",
}
FORBIDDEN_MODULES = {"time": "the Clock that is passed in", "random": "clock.random", "secrets": "clock.random"}
WRITE_VERBS = {"POST", "PUT", "PATCH", "DELETE"}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not path.stem.endswith(("_pb2", "_pb2_grpc"))]


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each name that an import binds stands for, e.g. {"now": "datetime.datetime"}."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    """The full name that an expression such as `datetime.now` stands for."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        before = dotted(node.value, names)
        return f"{before}.{node.attr}" if before else None
    return None


def is_zero(arguments: list[ast.expr]) -> bool:
    """True for the one argument of `asyncio.sleep(0)`, which lets others run and takes no time."""
    return len(arguments) == 1 and isinstance(arguments[0], ast.Constant) and arguments[0].value == 0


def uses_of_time_and_chance(source: str) -> Iterator[str]:
    """One line for each use, with what to use instead."""
    tree = ast.parse(source)
    names = imported_names(tree)
    for name, target in names.items():
        instead = FORBIDDEN_MODULES.get(target.split(".")[0]) or FORBIDDEN_CALLS.get(target)
        if instead:
            yield f"imports {target} as {name}: use {instead}"
    yields = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and is_zero(node.args)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in yields:
            full_name = dotted(node, names) or ""
            if full_name in FORBIDDEN_CALLS:
                yield f"line {node.lineno}: {full_name}: use {FORBIDDEN_CALLS[full_name]}"


def uses_of_write_verbs(source: str) -> Iterator[str]:
    """One line for each HTTP method that changes something, as a text of its own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in WRITE_VERBS:
            yield f"line {node.lineno}: {node.value!r}: only kube/write.py sends it"


@functools.cache
def read(path: Path) -> str:
    return path.read_text()


def test_only_the_clock_knows_time_and_chance() -> None:
    found = [f"{path.relative_to(PACKAGE)}: {use}" for path in modules() if path != CLOCK for use in uses_of_time_and_chance(read(path))]
    assert found == []


def test_only_the_writer_sends_write_verbs() -> None:
    outside = [path for path in modules() if path not in {WRITE, REVIEW} and not path.is_relative_to(SANDBOX)]
    found = [f"{path.relative_to(PACKAGE)}: {use}" for path in outside for use in uses_of_write_verbs(read(path))]
    assert found == []


def test_the_doors_themselves_are_found_by_the_same_search() -> None:
    assert list(uses_of_time_and_chance(read(CLOCK)))
    assert list(uses_of_write_verbs(read(WRITE)))


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import time as t",
        "from time import monotonic",
        "import random",
        "from random import Random",
        "import secrets",
        "import asyncio\nasync def f(): await asyncio.sleep(1)",
        "import asyncio\nasync def f(seconds): await asyncio.sleep(seconds)",
        "import asyncio\nnap = asyncio.sleep",
        "from asyncio import sleep",
        "from asyncio import sleep as nap",
        "import datetime\nx = datetime.datetime.now(datetime.UTC)",
        "import datetime as dt\nx = dt.datetime.utcnow()",
        "from datetime import datetime\nx = datetime.now()",
        "from datetime import date\nx = date.today()",
        "import datetime\nnow = datetime.datetime.now",
        "import os\nx = os.urandom(4)",
        "def f():\n    import time",
    ],
)
def test_a_way_to_time_or_chance_is_found(source: str) -> None:
    assert list(uses_of_time_and_chance(source))


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def f():\n    async with asyncio.timeout(1): ...",
        "import datetime\nx: datetime.datetime\ny = datetime.datetime.fromisoformat('2026-05-01')",
        "from loopwatch.clock import Clock\nasync def f(clock: Clock): await clock.sleep(clock.random())",
        "def f(self): return self.time, self.loop.time()",
        "import asyncio\nasync def f(): await asyncio.sleep(0)",
    ],
)
def test_what_needs_no_clock_is_let_through(source: str) -> None:
    assert list(uses_of_time_and_chance(source)) == []
