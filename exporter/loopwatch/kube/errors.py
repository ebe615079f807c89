"""What an API server refused, and what a kubeconfig lacks, in words that say what to do.

Every answer that is no 2xx becomes an ApiError with a bounded `kind`; bodies are a metav1.Status, or the HTML of some proxy, or nothing,
and none of them may hide the status. Texts are cleaned and cut. It refuses to hold a request's headers or body: there are secrets in them.
"""

from __future__ import annotations

import datetime
import email.utils
import math
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from loopwatch.kube.resources import ObjectKey, Resource
from loopwatch.kube.transport import TransportError
from loopwatch.text import clean_message

KINDS: Final = ("bad_request", "unauthorized", "forbidden", "not_found", "conflict", "gone", "throttled", "server", "other")
"""Every value that `ApiError.kind` takes."""

LONGEST_RETRY_AFTER_SECONDS: Final = 600.0
"""A Retry-After above it is taken as it: a proxy that says a day must not silence a heartbeat for a day."""

_KIND_OF_STATUS: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    410: "gone",
    422: "bad_request",
    429: "throttled",
}
_FOREIGN_BODY_BYTES: Final = 200


class Call(NamedTuple):
    """What was asked of the API, in the words of RBAC."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def on(cls, verb: str, resource: Resource, key: ObjectKey, subresource: str = "") -> Call:
        """A call on one object."""
        return cls(verb, resource, key.namespace, key.name, subresource)

    @property
    def what(self) -> str:
        """`machinepools.compute.ironcore.dev/status`: as a Role's rule names it, with its group."""
        group = f".{self.resource.group}" if self.resource.group else ""
        return f"{self.resource.plural}{group}" + (f"/{self.subresource}" if self.subresource else "")

    def __str__(self) -> str:
        """`patch leases.coordination.k8s.io ironcore-machinepool-lease/pool-a`."""
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {self.what}" + (f" {place}" if place else "")


class _Details(msgspec.Struct):
    name: str | None = None
    kind: str | None = None
    retryAfterSeconds: float | None = None  # noqa: N815 - the API's name


class _Status(msgspec.Struct):
    kind: str | None = None
    reason: str | None = None
    message: str | None = None
    code: int | None = None
    details: _Details | None = None


_decode_status: Final = msgspec.json.Decoder(_Status).decode


class ApiError(Exception):
    """An answer that is no success. `retry_after` is in seconds, None where the server asked for none."""

    def __init__(
        self,
        status: int,
        *,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
        details_name: str = "",
        details_kind: str = "",
        call: Call | None = None,
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = clean_message(reason, 128)
        self.message = clean_message(message)
        self.retry_after = retry_after
        self.details_name = clean_message(details_name, 256)
        self.details_kind = clean_message(details_kind, 128)
        self.call = call

    @classmethod
    def from_answer(cls, status: int, body: bytes, *, call: Call, retry_after: float | None = None) -> ApiError:
        """From an HTTP status and whatever body came with it."""
        try:
            said = _decode_status(body)
        except (msgspec.DecodeError, RecursionError):
            said = _Status(message=_foreign(body))
        return cls._from_status(status, said, call, retry_after)

    @classmethod
    def from_event(cls, event_object: msgspec.Raw, *, call: Call) -> ApiError:
        """From the Status that a watch's ERROR event carries; its `code` is the status, 500 where it has none."""
        try:
            said = _decode_status(event_object)
        except (msgspec.DecodeError, RecursionError):
            said = _Status(message=_foreign(bytes(event_object)))
        return cls._from_status(said.code or 500, said, call, None)

    @classmethod
    def _from_status(cls, status: int, said: _Status, call: Call, retry_after: float | None) -> ApiError:
        details = said.details or _Details()
        if retry_after is None and details.retryAfterSeconds:
            retry_after = _bounded(details.retryAfterSeconds)
        return cls(
            status,
            reason=said.reason or "",
            message=said.message or "",
            retry_after=retry_after,
            details_name=details.name or "",
            details_kind=details.kind or "",
            call=call,
        )

    @property
    def kind(self) -> str:
        """One of KINDS."""
        if self.status >= 500:
            return "server"
        return _KIND_OF_STATUS.get(self.status, "other")

    def __str__(self) -> str:
        """What was asked, of what, the status, the server's words; for 401 and 403 what an operator can do."""
        asked = f"{self.call}: " if self.call else ""
        answer = f"{self.status} {self.reason}".rstrip()
        # "Unauthorized" is all that API servers say to a 401.
        words = self.message if self.message != self.reason else ""
        return ": ".join(part for part in (f"{asked}{answer}", self._help(), words) if part)

    def _help(self) -> str:
        if self.status == 401:
            return "the API server does not accept the token or certificate in use: it has expired, was revoked, or is another cluster's"
        if self.status == 403 and self.call:
            where = f" in namespace {self.call.namespace}" if self.call.namespace else ""
            return f"this identity has no right to {self.call.verb} {self.call.what}{where}; grant that verb in its Role or ClusterRole"
        return ""


class StreamError(TransportError):
    """A watch brought something that is no event, or a list something that is no list."""

    kind = "stream"


class ConfigError(Exception):
    """A kubeconfig, or a file it names, that can't be used: where, what, and how to fix it."""

    def __init__(self, path: Path | str, what: str, fix: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(str(path), what, fix, line, column)
        self.path = str(path)
        self.what = clean_message(what)
        self.fix = fix
        self.line = line
        self.column = column

    def __str__(self) -> str:
        """`PATH:LINE:COLUMN: what; how to fix it`, lines and columns counted from 1."""
        place = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
        return f"{self.path}{place}: {self.what}; {self.fix}"


def retry_after_seconds(header: str | None, now: datetime.datetime) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or a date; None where there is none that can be read."""
    if not header:
        return None
    try:
        return _bounded(float(header))
    except ValueError:
        pass  # then it is a date, or nothing
    try:
        until = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=datetime.UTC)
    return _bounded((until - now).total_seconds())


def _bounded(seconds: float) -> float | None:
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_SECONDS)


def _foreign(body: bytes) -> str:
    """A body that is no Status: its first words, so that a proxy's page can be told."""
    if not body.strip():
        return ""
    return "the answer is no Status object: " + clean_message(" ".join(body[:4096].decode(errors="replace").split()), _FOREIGN_BODY_BYTES)
