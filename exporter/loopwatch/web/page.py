"""The plain page: one table of pools, rendered here from rows, reloaded each second by the browser itself.

No script, nothing inline, nothing from elsewhere, so that it works under the strictest Content-Security-Policy. Names, reasons and
messages are other people's text: each is escaped, and isolated so that right-to-left marks stay within their cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}
UNKNOWN = "–"
LONGEST_MESSAGE = 200
READY_CLASSES = {"True": "good", "False": "bad", "Unknown": "lost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """One pool. What is not known is None or empty, and shows as a dash.

    `ready` is the status as the API writes it (True, False, Unknown), empty where there is no such condition. `heartbeat_state` is
    that of this process's sidecar for the pool, where it runs one.
    """

    pool: str
    ready: str = ""
    reason: str = ""
    message: str = ""
    ready_age_seconds: float | None = None
    lease_age_seconds: float | None = None
    silence_seconds: float | None = None
    holder: str = ""
    heartbeat_state: str = ""


def render(title: str, rows: Iterable[PoolRow], notes: Iterable[str] = ()) -> str:
    """The whole page as HTML; `notes` are sentences below the table, such as the demo's last transitions."""
    lines = "\n".join(_row(row) for row in rows)
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in _HEADS)
    body = lines or f'<tr><td colspan="{len(_HEADS)}">No pool is known.</td></tr>'
    said = "".join(f"<li>{_isolated(note)}</li>" for note in notes)
    return _PAGE.format(title=escape(title), heads=heads, body=body, notes=f"<ul>{said}</ul>" if said else "")


_HEADS = ("Pool", "Ready", "Reason", "Since", "Lease age", "Silence", "Lease holder", "Sidecar", "Message")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="1">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="page.css">
</head>
<body>
<h1>{title}</h1>
<table>
<thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody>
</table>
{notes}
<p><a href="metrics">metrics</a> · <a href="healthz">healthz</a> · <a href="readyz">readyz</a></p>
</body>
</html>
"""

STYLE = """:root { color-scheme: light dark; --line: #8885; --good: #16763a; --bad: #b3261e; --lost: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --good: #6fd08c; --bad: #ff8a80; --lost: #ffca6a; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .3rem .8rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.text { overflow-wrap: break-word; max-width: 26rem; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.lost { color: var(--lost); font-weight: 600; }
"""


def _row(row: PoolRow) -> str:
    cells = (
        f'<th scope="row">{_isolated(row.pool)}</th>',
        f'<td class="{READY_CLASSES.get(row.ready, "absent")}">{_isolated(row.ready or "absent")}</td>',
        _text(row.reason),
        _seconds(row.ready_age_seconds),
        _seconds(row.lease_age_seconds),
        _seconds(row.silence_seconds),
        _text(row.holder),
        _text(row.heartbeat_state),
        _text(row.message if len(row.message) <= LONGEST_MESSAGE else f"{row.message[:LONGEST_MESSAGE]}…"),
    )
    return f"<tr>{''.join(cells)}</tr>"


def _text(value: str) -> str:
    return f'<td class="text">{_isolated(value)}</td>'


def _seconds(value: float | None) -> str:
    return f'<td class="number">{UNKNOWN if value is None else f"{value:.1f} s"}</td>'


def _isolated(value: str) -> str:
    return f"<bdi>{escape(value)}</bdi>" if value else UNKNOWN
