"""The sandbox runtime without a socket: a RuntimeProbe whose answers take the clock's time.

For stepped tests: a hang ends at the caller's deadline, in virtual seconds, with the result that the real probe would bring from the real
runtime. That the two agree is tested.
"""

from __future__ import annotations

from loopwatch.clock import Clock
from loopwatch.iri.probe import ProbeResult, deadline_exceeded, failed
from loopwatch.sandbox.runtime.behaviours import (
    WRONG_SERVICE_DETAILS,
    AnyBehaviour,
    Closing,
    Error,
    Garbage,
    Hang,
    Http1,
    Huge,
    Ok,
    Silent,
    Slow,
    Undecodable,
    WrongService,
)

_FIXED_RESULTS = {
    Huge: failed("ResourceExhausted", "CLIENT: Received message larger than max"),
    Undecodable: failed("Internal", "grpc: failed to unmarshal the received message"),
    WrongService: failed("Unimplemented", WRONG_SERVICE_DETAILS),
    Http1: failed("Unavailable", "Failed parsing HTTP/2 (Trying to connect an http1.x server)"),
    Garbage: failed("Unavailable", "Failed parsing HTTP/2"),
    Closing: failed("Unavailable", "Socket closed"),
}


class MemoryRuntime:
    """A runtime and the probe of it in one; it is up from the beginning. The methods are those of `Runtime`."""

    def __init__(self, clock: Clock, behaviour: AnyBehaviour | None = None) -> None:
        self._clock = clock
        self._behaviour: AnyBehaviour = behaviour or Ok()
        self._down: ProbeResult | None = None
        self.status_calls = 0
        self.version_calls = 0

    async def start(self) -> None:
        """Be there (again)."""
        self._down = None

    async def stop(self, grace_seconds: float = 0.0) -> None:  # noqa: ARG002 - the signature is Runtime's
        """Be gone, the socket removed."""
        self._down = failed("Unavailable", "connect failed: No such file or directory")

    async def kill(self) -> None:
        """Be gone, the socket's file left behind."""
        self._down = failed("Unavailable", "connect failed: Connection refused")

    async def behave(self, behaviour: AnyBehaviour) -> None:
        """Do so from the next call on."""
        self._behaviour = behaviour

    async def status(self, timeout_seconds: float) -> ProbeResult:
        """What a probe would bring; see RuntimeProbe."""
        if self._down:
            return self._down
        behaviour = self._behaviour
        if not isinstance(behaviour, WrongService | Http1 | Garbage | Silent | Closing):
            self.status_calls += 1
        if isinstance(behaviour, Ok):
            return _succeeded(behaviour.machine_classes)
        if isinstance(behaviour, Error):
            return failed(behaviour.code, behaviour.details)
        if isinstance(behaviour, Slow) and behaviour.seconds < timeout_seconds:
            await self._clock.sleep(behaviour.seconds)
            return _succeeded(behaviour.machine_classes)
        if isinstance(behaviour, Slow | Hang | Silent):
            await self._clock.sleep(timeout_seconds)
            return deadline_exceeded()
        return _FIXED_RESULTS[type(behaviour)]

    async def version(self, timeout_seconds: float | None) -> ProbeResult:
        """What the real probe's `version` would bring. A silent socket without a deadline is waited for until cancelled."""
        if self._down:
            return self._down
        if isinstance(self._behaviour, WrongService | Http1 | Garbage | Closing):
            return _FIXED_RESULTS[type(self._behaviour)]
        if isinstance(self._behaviour, Silent):
            return await self._silence(timeout_seconds)
        self.version_calls += 1
        return ProbeResult("OK")

    async def close(self) -> None:
        """Nothing is held open."""

    async def _silence(self, timeout_seconds: float | None) -> ProbeResult:
        if timeout_seconds is None:
            while isinstance(self._behaviour, Silent) and not self._down:
                await self._clock.sleep(1.0)
            return self._down or failed("Unavailable", "Socket closed")
        await self._clock.sleep(timeout_seconds)
        return deadline_exceeded()


def _succeeded(machine_classes: dict[str, int]) -> ProbeResult:
    return ProbeResult("OK", machine_classes=tuple(sorted(machine_classes.items())))
