"""Faults on demand: what a test or an operator's drill may do to the sandbox's API server.

A fault is data: which requests it hits, what happens to them, how often. The table only decides; the API server acts. Faults that change
a stream (cut, silence, no bookmarks, garbage, stale, hang) hit watches that are open already, as a failing network would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec


class Latency(msgspec.Struct, frozen=True, tag="latency"):
    """The request is handled after a wait."""

    seconds: float


class Respond(msgspec.Struct, frozen=True, tag="respond"):
    """An answer with this HTTP status instead of the real one: a Status object, or a proxy's page with `html`."""

    status: int
    reason: str = ""
    message: str = ""
    retry_after_seconds: int | None = None
    html: bool = False


class Unauthorized(msgspec.Struct, frozen=True, tag="unauthorized"):
    """401, whatever the token."""


class Forbid(msgspec.Struct, frozen=True, tag="forbid"):
    """403 in RBAC's words, for `user` (empty: whoever calls)."""

    user: str = ""


class NotServed(msgspec.Struct, frozen=True, tag="not-served"):
    """404 without an object's name, as for a resource that no CRD declares; discovery leaves it out."""


class Hang(msgspec.Struct, frozen=True, tag="hang"):
    """No answer, and open watches go silent. With `resume` all go on when the fault is removed (a process stopped and continued)."""

    resume: bool = False


class LoseAnswer(msgspec.Struct, frozen=True, tag="lose-answer"):
    """The connection closes without an answer, after the request was carried out, or before with `applied` false."""

    applied: bool = True


class Stale(msgspec.Struct, frozen=True, tag="stale"):
    """Reads that name a resourceVersion, and watches, see nothing later than the moment the fault was set (or `revision`)."""

    revision: int | None = None


class Cut(msgspec.Struct, frozen=True, tag="cut"):
    """A watch breaks once it has sent so many lines; with `mid_line` in the middle of the next."""

    after_lines: int = 0
    mid_line: bool = False


class Silence(msgspec.Struct, frozen=True, tag="silence"):
    """A watch stays open and never says anything again, once it has sent so many lines (half-open)."""

    after_lines: int = 0


class NoBookmarks(msgspec.Struct, frozen=True, tag="no-bookmarks"):
    """Watches bring no bookmarks but the one that ends the initial events."""


class Garbage(msgspec.Struct, frozen=True, tag="garbage"):
    """Each watch that is hit brings this line once, after so many others, and goes on."""

    line: str = '{"type":"MODIFIED","object":{"metadata":{"name":'
    after_lines: int = 0


Effect = Latency | Respond | Unauthorized | Forbid | NotServed | Hang | LoseAnswer | Stale | Cut | Silence | NoBookmarks | Garbage


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. The matches are shell patterns; `verb` is RBAC's (get, list, watch, create, update, patch, delete).

    `client` is the User-Agent up to the first slash. `count` is how many requests or streams it hits; None: until it is removed.
    """

    effect: Effect
    verb: str = "*"
    resource: str = "*"
    subresource: str = "*"
    namespace: str = "*"
    name: str = "*"
    client: str = "*"
    count: int | None = None


class Traits(NamedTuple):
    """What a rule looks at."""

    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    client: str


class Rule:
    """A fault in the table, with what is left of its count."""

    def __init__(self, number: int, fault: Fault) -> None:
        self.number = number
        self.fault = fault
        self.left = fault.count
        self.hits = 0

    def matches(self, traits: Traits) -> bool:
        """Whether it is not used up and hits a request with these traits."""
        fault = self.fault
        patterns = (fault.verb, fault.resource, fault.subresource, fault.namespace, fault.name, fault.client)
        return self.left != 0 and all(fnmatchcase(value, pattern) for value, pattern in zip(traits, patterns, strict=True))

    def take(self) -> None:
        """Use it once."""
        self.hits += 1
        if self.left is not None:
            self.left -= 1


class FaultTable:
    """The rules in force, in the order in which they were added."""

    def __init__(self, revision: Callable[[], int]) -> None:
        self._revision = revision
        self._rules: dict[int, Rule] = {}
        self._last_number = 0
        self._wakers: dict[Callable[[], None], None] = {}  # in the order of their coming

    def add(self, fault: Fault) -> int:
        """Put a fault in force; its number, for `remove`. ValueError for a count below 1."""
        if fault.count is not None and fault.count < 1:
            raise ValueError(f"count {fault.count} hits nothing: leave it out for a fault until it is removed, or write 1 or more")
        if isinstance(fault.effect, Stale) and fault.effect.revision is None:
            fault = msgspec.structs.replace(fault, effect=Stale(self._revision()))
        self._last_number += 1
        self._rules[self._last_number] = Rule(self._last_number, fault)
        self._wake()
        return self._last_number

    def remove(self, number: int) -> bool:
        """End a fault; False where there is none of this number (any more)."""
        removed = self._rules.pop(number, None) is not None
        self._wake()
        return removed

    def clear(self) -> None:
        """End all faults."""
        self._rules.clear()
        self._wake()

    def rules(self) -> list[Rule]:
        """The rules, used-up ones included."""
        return list(self._rules.values())

    def matching(self, traits: Traits) -> Iterator[Rule]:
        """The rules that hit a request, without using them."""
        if not self._rules:
            return iter(())
        return (rule for rule in self.rules() if rule.matches(traits))

    def in_force(self, number: int) -> bool:
        """Whether a rule is still in the table, used up or not."""
        return number in self._rules

    def served(self, resource: str) -> bool:
        """Whether no fault takes the whole resource away."""
        return not any(
            isinstance(rule.fault.effect, NotServed) and rule.fault.verb == "*" and fnmatchcase(resource, rule.fault.resource)
            for rule in self._rules.values()
        )

    def frozen(self, traits: Traits) -> int | None:
        """The revision at which cached reads stand still; None where no Stale fault hits."""
        for rule in self.matching(traits):
            if isinstance(rule.fault.effect, Stale):
                rule.take()
                return rule.fault.effect.revision
        return None

    def on_change(self, waker: Callable[[], None]) -> None:
        """Call `waker` whenever a fault is added or removed, until `forget`."""
        self._wakers[waker] = None

    def forget(self, waker: Callable[[], None]) -> None:
        """Call it no more."""
        self._wakers.pop(waker, None)

    def _wake(self) -> None:
        for waker in list(self._wakers):
            waker()


class StreamState(NamedTuple):
    """What faults do to a stream at this moment."""

    silent: bool = False
    cut: Cut | None = None
    bookmarks: bool = True
    frozen: int | None = None


_UNTOUCHED = StreamState()


class StreamFaults:
    """The faults of one open watch: each rule is used at most once a stream; a cut and a silence can't be taken back."""

    def __init__(self, table: FaultTable, traits: Traits) -> None:
        self.table = table
        self._traits = traits
        self._used: set[int] = set()
        self._cut: Cut | None = None
        self._garbage: list[bytes] = []
        self.dead = False
        """Whether the stream will never say anything again, whatever happens to the faults."""

    def state(self, sent_lines: int) -> StreamState:
        """What to do now, after so many lines. To be asked at every change of the table, read from or not."""
        if self._cut is not None:
            return StreamState(cut=self._cut)
        if self.dead:
            return StreamState(silent=True)
        state = _UNTOUCHED
        for rule in self.table.rules():
            if rule.number in self._used or rule.matches(self._traits):
                state = self._apply(rule, sent_lines, state)
                if state.silent or state.cut:
                    break
        return state

    def next_garbage(self) -> bytes | None:
        """A line of garbage that is due, once."""
        return self._garbage.pop(0) if self._garbage else None

    def _apply(self, rule: Rule, sent_lines: int, state: StreamState) -> StreamState:
        effect = rule.fault.effect
        if isinstance(effect, Cut | Garbage | Silence) and sent_lines < effect.after_lines:
            return state
        fresh = rule.number not in self._used
        match effect:
            case Cut():
                self._cut = effect
                state = state._replace(cut=effect)
            case Garbage():
                self._garbage += [effect.line.encode() + b"\n"] if fresh else []
            case Silence() | Hang(resume=False):
                self.dead = True
                state = state._replace(silent=True)
            case Hang():
                state = state._replace(silent=True)
            case Stale():
                state = state._replace(frozen=effect.revision)
            case NoBookmarks():
                state = state._replace(bookmarks=False)
            case _:
                return state
        if fresh:
            rule.take()
            self._used.add(rule.number)
        return state
