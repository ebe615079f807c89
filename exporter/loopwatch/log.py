"""One line for each change of state, on stderr: an object of JSON for collectors, or key=value for people, coloured on a terminal.

What others wrote (messages, names) can't forge a line or move a terminal's cursor: characters that don't print are escaped. What looks
like a credential is blanked, whoever wrote it, and an object is told by its type alone: a log is read by more people than a Secret. A log
that can't be written (a closed pipe, a full disk) is lost; it never stops the loop that wanted to say something. Libraries are heard from
warnings upwards only, since below that they print requests and answers.
"""

from __future__ import annotations

import enum
import logging
import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from loopwatch.clock import Clock
from loopwatch.text import without_secrets

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
MOST_REMEMBERED = 1024
JSON: Final = "json"
TEXT: Final = "text"
AUTO: Final = "auto"
FORMATS: Final = (AUTO, JSON, TEXT)
LONGEST_VALUE: Final = 2048
LONGEST_TRACEBACK: Final = 16_384
LONGEST_READ: Final = 65_536
"""What is looked at for secrets; the rest of a longer text is dropped unseen."""
_FIRST: Final = ("timestamp", "level", "event")


def get_logger() -> FilteringBoundLogger:
    """The logger; what `configure` sets later holds for it too."""
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def configure(level: str, clock: Clock, stream: TextIO | None = None, *, log_format: str = AUTO) -> None:
    """Log from `level` (a key of LEVELS) upwards to `stream`, stderr where none is given.

    `log_format` is one of FORMATS; `auto` is text on a terminal, JSON elsewhere.
    """
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    as_json = log_format == JSON or (log_format == AUTO and not terminal)
    structlog.configure(
        processors=list(_processors(clock, as_json=as_json, colours=terminal)),
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=lambda *_: _Lines(out),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_FromLibraries()]
    root.setLevel(logging.WARNING)


class Repeated:
    """Says a thing that repeats itself at most once a period, with the number of times that were left out since."""

    def __init__(self, clock: Clock, period_seconds: float = 60.0) -> None:
        self._clock = clock
        self._period = period_seconds
        self._said: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def say(self, method: Callable[..., Any], event: str, *, about: Hashable = None, **fields: object) -> bool:
        """`method(event, **fields)` unless the same event about the same thing was said within the period; True where it was said."""
        key, now = (event, about), self._clock.monotonic()
        said_at, left_out = self._said.get(key, (None, 0))
        if said_at is not None and now - said_at < self._period:
            self._said[key] = (said_at, left_out + 1)
            return False
        self._said[key] = (now, 0)
        self._said.move_to_end(key)
        while len(self._said) > MOST_REMEMBERED:
            self._said.popitem(last=False)
        method(event, **fields, **({"left_out": left_out} if left_out else {}))
        return True

    def forget(self, event: str, about: Hashable = None) -> None:
        """The trouble is over: when it comes again it is said at once."""
        self._said.pop((event, about), None)


class _Lines:
    """Where structlog's finished lines go; each of its levels is the same to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        with suppress(OSError, ValueError):  # ValueError: the stream was closed
            self._stream.write(f"{line}\n")
            self._stream.flush()

    debug = info = warning = error = critical = msg


class _FromLibraries(logging.Handler):
    """Hands what libraries log to the same lines, with the library's name."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info if record.exc_info and record.exc_info[0] else None
        get_logger().log(record.levelno, record.getMessage(), library=record.name, **({"exc_info": error} if error else {}))


def _processors(clock: Clock, *, as_json: bool, colours: bool) -> Iterable[Processor]:
    yield structlog.processors.add_log_level
    yield _stamp(clock)
    yield structlog.processors.format_exc_info
    yield _publishable
    if as_json:
        # JSON escapes all that does not print; keys keep an order that can be read.
        yield _first_things_first
        yield structlog.processors.JSONRenderer()
    elif colours:
        yield _printable(one_line_by_us=True)
        yield structlog.dev.ConsoleRenderer(sort_keys=False)
    else:
        yield _printable(one_line_by_us=False)
        yield structlog.processors.LogfmtRenderer(key_order=_FIRST, bool_as_flag=False)


def _stamp(clock: Clock) -> Processor:
    def stamp(_logger: object, _method: str, event: EventDict) -> EventDict:
        event["timestamp"] = clock.utcnow().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return event

    return stamp


def _publishable(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Only plain values, none of them long, none of them a secret."""
    return {key: _plain(value, LONGEST_TRACEBACK if key == "exception" else LONGEST_VALUE) for key, value in event.items()}


def _plain(value: object, most: int) -> object:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not isinstance(value, str | BaseException | PurePath):
        return f"<{type(value).__name__}>"
    text = without_secrets(str(value)[:LONGEST_READ])
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def _first_things_first(_logger: object, _method: str, event: EventDict) -> EventDict:
    return {key: event[key] for key in _FIRST if key in event} | dict(event)


def _printable(*, one_line_by_us: bool) -> Processor:
    """Escapes what does not print; line feeds are left to the renderer of key=value, which escapes them, and to a terminal's traceback."""

    def clean(_logger: object, _method: str, event: EventDict) -> EventDict:
        return {key: _escaped(value, keep="\n" if key == "exception" or not one_line_by_us else "") for key, value in event.items()}

    return clean


def _escaped(value: object, keep: str) -> object:
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(each if each.isprintable() or each in keep else each.encode("unicode_escape").decode() for each in value)
