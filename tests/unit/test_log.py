"""Log lines: one each, whatever they say, and never a reason to stop."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from loopwatch import log
from loopwatch.log import Repeated, configure, get_logger
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


def stepped_lines(level: str = "info", stream: io.StringIO | None = None) -> io.StringIO:
    out = io.StringIO() if stream is None else stream
    configure(level, SteppedClock(), out)
    return out


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
    for stream, lines in ((io.StringIO(), 1), (Terminal(), 4)):
        out = stepped_lines(stream=stream)
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
    configure("info", clock, out)
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
