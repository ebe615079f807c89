"""What a sandbox runtime can be told to do, as data that is also JSON: `{"kind": "slow", "seconds": 3, "machine_classes": {"small": 4}}`.

Behaviours of the first sort answer calls; those of the second (`SocketBehaviour`) replace the gRPC server by something that is none.
Version is answered as long as a gRPC server of the right service is there: only Status is slow, hung or refused.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from loopwatch.iri.probe import CODES

HUGE_REPLY_BYTES = 5 * 1024 * 1024
"""Above gRPC's default limit of 4 MiB."""


class Behaviour(msgspec.Struct, frozen=True, tag_field="kind", kw_only=False):
    """The root of them all."""


class Ok(Behaviour, frozen=True, tag="ok"):
    """Status answers at once with these classes and quantities."""

    machine_classes: dict[str, int] = {}


class Error(Behaviour, frozen=True, tag="error"):
    """Status fails with a code (Go's name) and its details."""

    code: str = "Unavailable"
    details: str = "the runtime is made to fail"

    def __post_init__(self) -> None:
        """Refuse a code that no failed call has."""
        if self.code not in CODES[1:]:
            raise ValueError(f"{self.code!r} is no code of a failed call; allowed are {', '.join(CODES[1:])}")


class Hang(Behaviour, frozen=True, tag="hang"):
    """Status never answers; the connection lives."""


class Slow(Behaviour, frozen=True, tag="slow"):
    """Status answers after so many seconds."""

    seconds: float
    machine_classes: dict[str, int] = {}


class Huge(Behaviour, frozen=True, tag="huge"):
    """Status answers with more than a client takes."""


class Undecodable(Behaviour, frozen=True, tag="undecodable"):
    """Status answers with bytes that are no StatusResponse."""


class WrongService(Behaviour, frozen=True, tag="wrong-service"):
    """A gRPC server of another service: every call is Unimplemented."""


class SocketBehaviour(Behaviour, frozen=True):
    """Something that is no gRPC server listens on the socket."""


class Http1(SocketBehaviour, frozen=True, tag="http1"):
    """An HTTP/1.1 server: 400 to whatever is said."""


class Garbage(SocketBehaviour, frozen=True, tag="garbage"):
    """Bytes that mean nothing."""


class Silent(SocketBehaviour, frozen=True, tag="silent"):
    """Accepts connections and never says a word."""


class Closing(SocketBehaviour, frozen=True, tag="closing"):
    """Accepts connections and closes them at once."""


AnyBehaviour: TypeAlias = Ok | Error | Hang | Slow | Huge | Undecodable | WrongService | Http1 | Garbage | Silent | Closing

WRONG_SERVICE_DETAILS = "Method not found!"

_DECODER = msgspec.json.Decoder(AnyBehaviour)


def parse(text: bytes) -> AnyBehaviour:
    """The behaviour that a JSON text names; ValueError where it names none."""
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"no behaviour: {error}") from error


def render(behaviour: AnyBehaviour) -> bytes:
    """The JSON text of a behaviour: what `parse` reads."""
    return msgspec.json.encode(behaviour)
