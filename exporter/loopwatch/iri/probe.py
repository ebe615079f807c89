"""What a probe of the machine runtime is, and what it brings back: plain data, no gRPC.

The interface's Status call has no field for health: that it succeeds is the signal. What failed is told as operators of IronCore know it,
with Go's names for gRPC's codes. It refuses to raise: a probe that can't be made is an outcome like any other.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from loopwatch.iri.messages import MachineClasses
from loopwatch.text import clean_message

CODES = (
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
)
"""Every value of `ProbeResult.code`: gRPC's codes by number, as Go prints them."""

DEADLINE_EXCEEDED_DETAILS = "context deadline exceeded"
"""What Go says where grpc-python says "Deadline Exceeded"."""


class ProbeResult(msgspec.Struct, frozen=True):
    """How one call ended.

    `message` is empty for OK, else `rpc error: code = <code> desc = <details>`, cleaned and at most 1 KiB. `machine_classes` is what a
    successful Status answered: (name, how many machines), sorted by name.
    """

    code: str
    message: str = ""
    machine_classes: MachineClasses = ()

    @property
    def succeeded(self) -> bool:
        """True for OK."""
        return self.code == "OK"


class RuntimeProbe(Protocol):
    """Asks one machine runtime whether it answers."""

    async def status(self, timeout_seconds: float) -> ProbeResult:
        """Call Status once, within `timeout_seconds`. Raises nothing but CancelledError."""
        ...

    async def close(self) -> None:
        """Give the connection up; a call under way ends."""
        ...


def failed(code: str, details: str) -> ProbeResult:
    """The result of a call that failed, its message as grpc-go would put it. `code` is one of CODES but OK."""
    if code not in CODES[1:]:
        raise ValueError(f"{code!r} is no code of a failed call; allowed are {', '.join(CODES[1:])}")
    return ProbeResult(code, clean_message(f"rpc error: code = {code} desc = {details}"))


def deadline_exceeded() -> ProbeResult:
    """The result of a call that got no answer in time."""
    return failed("DeadlineExceeded", DEADLINE_EXCEEDED_DETAILS)
