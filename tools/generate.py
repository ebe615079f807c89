"""Writes every generated file, or with `--check` says which have drifted from what they are made from.

`make gen` writes; `make lint` checks.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from itertools import islice
from pathlib import Path

from loopwatch.catalogue import GROUPS
from loopwatch.check.table import ROWS
from loopwatch.rbac.rights import RIGHTS
from loopwatch.settings.table import SETTINGS
from tests.e2e.scenarios import SCENARIOS
from tools import generate_iri
from tools.documents import COMMAND, check_page, metrics_page, rights_page, settings_page
from tools.scenarios_page import scenarios_page

ROOT = Path(__file__).resolve().parent.parent
MOST_DIFF_LINES = 40


def documents() -> dict[Path, str]:
    """What the pages should hold, by their path from the top of the repository."""
    return {
        Path("docs/check.md"): check_page(ROWS),
        Path("docs/metrics.md"): metrics_page(GROUPS),
        Path("docs/rbac.md"): rights_page(RIGHTS),
        Path("docs/scenarios.md"): scenarios_page(SCENARIOS),
        Path("docs/settings.md"): settings_page(SETTINGS),
    }


def write_documents(root: Path, *, check: bool) -> list[str]:
    """Write what differs below `root`, or with `check` only print how it differs; the paths that differed."""
    drifted = []
    for path, text in documents().items():
        target = root / path
        present = target.read_text(encoding="utf-8") if target.is_file() else ""
        if present == text:
            continue
        drifted.append(path.as_posix())
        if check:
            difference = difflib.unified_diff(present.splitlines(), text.splitlines(), f"{path}", f"{path} (generated)", lineterm="")
            print("\n".join(islice(difference, MOST_DIFF_LINES)))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    return drifted


def main() -> int:
    """The command: 0, or 1 where `--check` found drift."""
    parser = argparse.ArgumentParser(description="Write every generated file.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs from what would be written")
    check: bool = parser.parse_args().check
    drifted = [*write_documents(ROOT, check=check), *generate_iri.write(check)]
    for path in drifted:
        print(f"{path} {f'has drifted: run {COMMAND}' if check else 'written'}")
    return 1 if check and drifted else 0


if __name__ == "__main__":
    sys.exit(main())
