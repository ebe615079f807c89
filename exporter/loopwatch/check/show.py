"""Findings as a person reads them, and as a script does. The JSON is a promise: docs/check.md says what it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.text import Text

from loopwatch.check.table import Finding, Severity

SCHEMA: Final = "loopwatch.check/v1"
_MARKS: Final = {
    Severity.OK: ("ok", "green"),
    Severity.INFO: ("info", "cyan"),
    Severity.WARNING: ("WARNING", "yellow"),
    Severity.ERROR: ("ERROR", "red"),
}


def fails(findings: Sequence[Finding]) -> bool:
    """An error fails the check; a warning is for somebody to think about."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def as_json(subject: str, findings: Sequence[Finding]) -> str:
    """One document, with every name of every finding."""
    counts = Counter(finding.severity for finding in findings)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "as": subject,
        "passed": not fails(findings),
        "counts": {severity.value: counts[severity] for severity in Severity},
        "findings": [
            {
                "check": each.key,
                "severity": each.severity.value,
                "what": each.what,
                "why": each.why,
                "fix": each.fix,
                "objects": list(each.objects),
            }
            for each in findings
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def print_text(subject: str, findings: Sequence[Finding], console: Console) -> None:
    """One line a finding; below those that are not well, why it matters and what mends it."""
    for finding in findings:
        word, colour = _MARKS[finding.severity]
        console.print(Text.assemble((f"{word:<8}", colour), finding.what), soft_wrap=True)
        for name, text in (("why", finding.why), ("fix", finding.fix)):
            if text:
                console.print(Text.assemble((f"{'':8}{name}: ", "dim"), text), soft_wrap=True)
    counts = Counter(finding.severity for finding in findings)
    told = ", ".join(f"{counts[severity]} {severity.value}" for severity in reversed(Severity) if counts[severity])
    console.print(Text(f"loopwatch check --as {subject}: {'FAILED' if fails(findings) else 'passed'} ({told})"), soft_wrap=True)
