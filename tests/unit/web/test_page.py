"""The plain page: what is known, and nothing that a name or a message smuggles in."""

from __future__ import annotations

import html.parser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.web.page import HEADERS, STYLE, PoolRow, render

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></table><h1>",
    "' onmouseover='x",
    "&lt;b&gt;",
    "<!--",
    "\u202egnp.exe",
    "a\x00b",
    "{title}",
)


class Document(html.parser.HTMLParser):
    """What a browser would make of a page: tags with their attributes, and the text of each table cell."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.rows: list[list[str]] = []
        self.notes: list[str] = []
        self.title = ""
        self._inside: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.tags.append((tag, tuple(attrs)))
        self._inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
        if tag == "li":
            self.notes.append("")

    def handle_data(self, data: str) -> None:
        """Text belongs to what is open."""
        if {"td", "th"} & {*self._inside}:
            self.rows[-1][-1] += data
        elif "li" in self._inside:
            self.notes[-1] += data
        elif "title" in self._inside:
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        """What began last ends first; tags that never end (meta, link) end with it."""
        while self._inside and self._inside.pop() != tag:
            pass


FULL = PoolRow(
    pool="pool-a",
    ready="True",
    reason="HeartbeatReceived",
    message="machine runtime status probe succeeded",
    ready_age_seconds=61.04,
    lease_age_seconds=3.25,
    silence_seconds=0.0,
    holder="pool-a_0c8914f7",
    heartbeat_state="reporting",
)


def test_a_row_shows_everything_that_is_known_of_a_pool() -> None:
    head, row = Document(render("loopwatch", [FULL])).rows
    shown = dict(zip(head, row, strict=True))
    assert shown == {
        "Pool": "pool-a",
        "Ready": "True",
        "Reason": "HeartbeatReceived",
        "Since": "61.0 s",
        "Lease age": "3.2 s",
        "Silence": "0.0 s",
        "Lease holder": "pool-a_0c8914f7",
        "Sidecar": "reporting",
        "Message": "machine runtime status probe succeeded",
    }


def test_what_is_not_known_is_a_dash_and_never_a_zero() -> None:
    assert Document(render("loopwatch", [PoolRow(pool="pool-a")])).rows[1] == ["pool-a", "absent", *["–"] * 7]


def test_a_page_without_pools_says_so() -> None:
    assert Document(render("loopwatch", [])).rows[1] == ["No pool is known."]


@pytest.mark.parametrize(
    ("ready", "look"),
    [("True", "good"), ("False", "bad"), ("Unknown", "lost"), ("", "absent"), ("<x>", "absent"), ('" onload="', "absent")],
)
def test_the_look_of_ready_is_one_of_ours(ready: str, look: str) -> None:
    tags = Document(render("loopwatch", [PoolRow(pool="a", ready=ready)])).tags
    assert ("td", (("class", look),)) in tags


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    hostile = PoolRow(pool=text, ready=text, reason=text, message=text, holder=text, heartbeat_state=text)
    page = Document(render(text, [hostile], [text]))
    plain = Document(render("t", [FULL], ["note"]))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert page.rows[1][0] == page.rows[1][-1] == text
    assert page.title == text
    assert page.notes == [text]


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_no_text_at_all_adds_a_tag_or_an_attribute(name: str, message: str) -> None:
    page = Document(render("t", [PoolRow(pool=name, message=message, holder=message)]))
    plain = Document(render("t", [PoolRow(pool="a", message="b" * bool(message), holder="b" * bool(message))]))
    assert page.tags == plain.tags


def test_each_foreign_text_is_isolated_so_that_its_direction_stays_within_its_cell() -> None:
    assert "<bdi>\u202eevil</bdi>" in render("t", [PoolRow(pool="\u202eevil")])


def test_a_long_message_is_cut() -> None:
    cell = Document(render("t", [PoolRow(pool="a", message="x" * 5000)])).rows[1][-1]
    assert len(cell) == 201
    assert cell.endswith("…")


def test_the_page_reloads_each_second_and_links_the_metrics_beside_it() -> None:
    tags = Document(render("t", [])).tags
    assert ("meta", (("http-equiv", "refresh"), ("content", "1"))) in tags
    assert ("a", (("href", "metrics"),)) in tags, "relative, so that it works behind a path prefix"
    assert ("link", (("rel", "stylesheet"), ("href", "page.css"))) in tags


def test_the_page_needs_nothing_that_its_policy_forbids() -> None:
    tags = Document(render("t", [FULL], ["note"])).tags
    assert not {tag for tag, _ in tags} & {"script", "style", "img", "iframe", "form", "base", "object"}
    assert not [name for _, attributes in tags for name, _ in attributes if name == "style" or name.startswith("on")]
    assert "default-src 'none'; style-src 'self'" in HEADERS["Content-Security-Policy"]
    assert "url(" not in STYLE
    assert "@import" not in STYLE


def test_the_style_knows_dark_and_light() -> None:
    assert "color-scheme: light dark" in STYLE
    assert "prefers-color-scheme: dark" in STYLE
