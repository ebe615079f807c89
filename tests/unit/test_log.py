"""Log lines: one each, whatever they say, and never a reason to stop."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from loopwatch import log
from loopwatch.log import Repeated, configure, get_logger
from loopwatch.text import without_secrets
from tests.support.stepped import SteppedClock, stepped


@pytest.fixture(autouse=True)
def unconfigured_log() -> Iterator[None]:
    """The next test finds the log as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It does."""
        return True


def stepped_lines(level: str = "info", stream: io.StringIO | None = None, log_format: str = "text") -> io.StringIO:
    out = io.StringIO() if stream is None else stream
    configure(level, SteppedClock(), out, log_format=log_format)
    return out


JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl-_x"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKey\n-----END EC PRIVATE KEY-----"


@stepped
async def test_a_line_is_key_and_value_with_time_level_and_event_first() -> None:
    out = stepped_lines()
    get_logger().info("took over", pool="pool-a", seconds=1.5, ready=True, holder=None)
    assert out.getvalue() == 'timestamp=2026-05-01T12:00:00.000Z level=info event="took over" pool=pool-a seconds=1.5 ready=true holder=\n'


@stepped
async def test_what_is_below_the_level_is_not_said() -> None:
    out = stepped_lines("warning")
    get_logger().info("no")
    get_logger().warning("yes")
    assert [line.split()[2] for line in out.getvalue().splitlines()] == ["event=yes"]


@stepped
async def test_a_logger_that_was_made_before_follows_the_configuration() -> None:
    early = get_logger()
    out = stepped_lines()
    early.info("yes")
    assert "event=yes" in out.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
@stepped
async def test_hostile_text_makes_one_line_and_moves_no_cursor(stream: type[io.StringIO]) -> None:
    out = stepped_lines(stream=stream())
    get_logger().info("a\nlevel=error", pool="x\r\n\x1b[2Jy", problem=ValueError("b\nc\x07"), half="\udc80")
    (line,) = out.getvalue().splitlines()
    assert "\x1b[2J" not in line
    assert "\x07" not in line
    line.encode()


@pytest.mark.parametrize(
    ("stream", "log_format", "is_json"),
    [(io.StringIO, "auto", True), (io.StringIO, "text", False), (Terminal, "auto", False), (Terminal, "json", True)],
)
@stepped
async def test_off_a_terminal_a_line_is_json_unless_told_otherwise(stream: type[io.StringIO], log_format: str, is_json: bool) -> None:
    out = stepped_lines(stream=stream(), log_format=log_format)
    get_logger().warning("took over", pool="pool-a", seconds=1.5, ready=True, holder=None)
    assert out.getvalue().startswith("{") == is_json
    if is_json:
        assert out.getvalue() == (
            '{"timestamp": "2026-05-01T12:00:00.000Z", "level": "warning", "event": "took over",'
            ' "pool": "pool-a", "seconds": 1.5, "ready": true, "holder": null}\n'
        )


@given(st.text(), st.text() | st.floats())
def test_any_text_is_one_line_of_json_that_gives_it_back(event: str, value: str | float) -> None:
    @stepped
    async def check() -> None:
        out = stepped_lines(log_format="json")
        get_logger().info(event, value=value)
        (line,) = out.getvalue().splitlines()
        assert line.isascii()
        read = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        if isinstance(value, str) and without_secrets(value) == value:
            assert read["value"] == value

    check()


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize(
    ("said", "secret"),
    [
        (f"plugin wrote: {JWT}", "eyJzdWIi"),
        ("Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
        ("headers {'Authorization': 'Basic dXNlcjpwYXNz'}", "dXNlcjpwYXNz"),
        (f"key {KEY} end", "MHcCAQEEIKey"),
        (KEY.replace("\n", "\\n"), "MHcCAQEEIKey"),
        (KEY[:40], "MHcCAQEEIKey"[:6]),
        ("users:\n- user:\n    client-key-data: LS0tLS1CRUdJTiBSU0E=", "LS0tLS1CRUdJTiBSU0E"),
        ('{"kind":"ExecCredential","status":{"token":"k8s-aws-v1.aHR0cHM6"}}', "aHR0cHM6"),
        ('\\"id-token\\": \\"abcdefgh.ijkl\\"', "abcdefgh"),
        ("proxy http://user:hunter2secret@proxy:3128 refused", "hunter2secret"),
        ("GET /x?access_token=abcdefghij&x=1", "abcdefghij"),
    ],
)
@stepped
async def test_what_looks_like_a_credential_is_blanked_wherever_it_stands(said: str, secret: str, log_format: str) -> None:
    out = stepped_lines(log_format=log_format)
    get_logger().info(said, error=ValueError(said))
    try:
        int(said)
    except ValueError as error:
        error.add_note(said)
        get_logger().exception("fault", detail=said)
    logging.getLogger("aiohttp").error("%s", said)
    assert secret not in out.getvalue()
    assert out.getvalue().count("***") >= 4
    assert len(out.getvalue().splitlines()) == 3


@pytest.mark.parametrize(
    "said",
    [
        "the API server does not accept its token",
        "system:serviceaccount:loopwatch:reader can't get /metrics",
        "no bearer token was sent",
        "lease ironcore-machinepool-lease/pool-a is held by pool-a_6f1c",
        "https://10.0.0.1:6443/api: connection refused",
    ],
)
def test_a_sentence_about_credentials_is_left(said: str) -> None:
    assert without_secrets(said) == said


@pytest.mark.parametrize("thing", [{"metadata": {"name": "a"}}, b"{}", ["a", "b"], {"a"}, Repeated])
@stepped
async def test_a_whole_object_is_told_by_its_type_alone(thing: object) -> None:
    out = stepped_lines(log_format="json")
    get_logger().info("seen", thing=thing)
    assert json.loads(out.getvalue())["thing"] == f"<{type(thing).__name__}>"


@stepped
async def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    out = stepped_lines(log_format="json")
    get_logger().info("seen", text="begin " + "x" * 60_000 + " end")
    text = json.loads(out.getvalue())["text"]
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert len(text) <= log.LONGEST_VALUE + 3


@given(st.text(), st.text())
def test_any_text_is_one_line_without_control_characters(event: str, value: str) -> None:
    @stepped
    async def check() -> None:
        out = stepped_lines()
        get_logger().info(event, value=value)
        assert out.getvalue()[:-1].isprintable()
        assert out.getvalue().endswith("\n")

    check()


@stepped
async def test_a_traceback_is_one_line_in_a_file_and_many_on_a_terminal() -> None:
    for stream, log_format, lines in ((io.StringIO(), "text", 1), (io.StringIO(), "json", 1), (Terminal(), "text", 4)):
        out = stepped_lines(stream=stream, log_format=log_format)
        try:
            _ = 1 // 0
        except ZeroDivisionError:
            get_logger().exception("fault")
        assert "ZeroDivisionError" in out.getvalue()
        assert out.getvalue().count("\n") >= lines
        assert (out.getvalue().count("\n") == 1) == (lines == 1)


@stepped
async def test_only_a_terminal_gets_colours() -> None:
    plain, coloured = stepped_lines(), Terminal()
    get_logger().info("x")
    stepped_lines(stream=coloured)
    get_logger().info("x")
    assert "\x1b[" not in plain.getvalue()
    assert "\x1b[" in coloured.getvalue()


@stepped
async def test_libraries_are_heard_from_warnings_upwards_in_the_same_lines() -> None:
    out = stepped_lines("debug")
    library = logging.getLogger("kubernetes.aio.rest")
    library.debug("response body: %s", "secret")
    library.info("secret")
    library.warning("gave %s\nup", "it")
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        logging.getLogger("asyncio").exception("Task exception was never retrieved")
    first, second = out.getvalue().splitlines()
    assert "secret" not in out.getvalue()
    assert 'event="gave it\\nup" library=kubernetes.aio.rest' in first
    assert "level=error" in second
    assert "ZeroDivisionError" in second


@stepped
async def test_a_log_that_can_not_be_written_stops_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    broken = os.fdopen(writer, "w")
    configure("info", SteppedClock(), broken)
    get_logger().info("nobody reads")
    with pytest.raises(BrokenPipeError):
        broken.close()
    get_logger().info("closed")


@stepped
async def test_a_repeated_event_is_said_once_a_period_with_the_number_left_out() -> None:
    clock = SteppedClock()
    out = io.StringIO()
    configure("info", clock, out, log_format="text")
    repeated = Repeated(clock)
    said = []
    for _ in range(13):
        said.append(repeated.say(get_logger().warning, "lease not renewed", pool="a"))
        await clock.sleep(10.0)
    assert said == [True, *[False] * 5, True, *[False] * 5, True]
    assert [line.rpartition("pool=a")[2] for line in out.getvalue().splitlines()] == ["", " left_out=5", " left_out=5"]


@stepped
async def test_the_same_event_about_another_thing_is_said() -> None:
    repeated = Repeated(SteppedClock())
    lines: list[dict[str, object]] = []

    def method(_event: str, **fields: object) -> None:
        lines.append(fields)

    assert repeated.say(method, "forbidden", about="leases", verb="create")
    assert repeated.say(method, "forbidden", about="machinepools", verb="patch")
    assert not repeated.say(method, "forbidden", about="leases", verb="create")
    assert lines == [{"verb": "create"}, {"verb": "patch"}]


@stepped
async def test_trouble_that_was_over_is_said_at_once_when_it_comes_again() -> None:
    repeated = Repeated(SteppedClock())
    assert repeated.say(get_logger().warning, "unreachable")
    repeated.forget("unreachable")
    repeated.forget("never said")
    assert repeated.say(get_logger().warning, "unreachable")


@stepped
async def test_the_memory_of_what_was_said_is_bounded() -> None:
    repeated = Repeated(SteppedClock())

    def method(_event: str) -> None:
        pass

    for number in range(3 * log.MOST_REMEMBERED):
        repeated.say(method, "undecodable", about=number)
    assert len(repeated._said) == log.MOST_REMEMBERED
    assert not repeated.say(method, "undecodable", about=3 * log.MOST_REMEMBERED - 1)
