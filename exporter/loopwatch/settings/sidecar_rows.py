"""The settings of `loopwatch sidecar` alone."""

from __future__ import annotations

from loopwatch import durations
from loopwatch.settings.kinds import Kind, dns_subdomain_problem
from loopwatch.settings.model import Command, Mode
from loopwatch.settings.setting import Setting, Topic, above_zero, not_below_zero

LONGEST_LEASE_SECONDS = 2**31 - 1
"""leaseDurationSeconds of a Lease is an int32."""
_SIDECAR = (Command.SIDECAR,)
_SIDECAR_AND_CHECK = (Command.SIDECAR, Command.CHECK)
_SIDECAR_AND_RIGHTS = (Command.SIDECAR, Command.RBAC, Command.CHECK)


def _lease_duration(seconds: float) -> str:
    if seconds == int(seconds) and 1 <= seconds <= LONGEST_LEASE_SECONDS:
        return ""
    return (
        f"must be whole seconds, from 1s to {LONGEST_LEASE_SECONDS}s, because a Lease carries it as a whole number "
        f"(leaseDurationSeconds), got {durations.render(seconds)}"
    )


SIDECAR_ROWS = (
    Setting(
        name="machine-pool-name",
        kind=Kind.TEXT,
        commands=_SIDECAR_AND_RIGHTS,
        topic=Topic.POOL,
        required_by=_SIDECAR,
        range="a DNS subdomain, at most 253 characters",
        check=dns_subdomain_problem,
        help="The MachinePool to report for. Required for a sidecar.",
        upstream="machinepoollet",
    ),
    Setting(
        name="mode",
        kind=Kind.CHOICE,
        commands=_SIDECAR_AND_RIGHTS,
        topic=Topic.POOL,
        default="auto",
        choices=tuple(mode.value for mode in Mode),
        fields=lambda text: {"mode": Mode(text)},
        help="auto reports only where no machinepoollet does, report from the first tick, observe never writes.",
    ),
    Setting(
        name="machinepoollet-healthz",
        kind=Kind.URL,
        commands=_SIDECAR,
        topic=Topic.POOL,
        default="http://127.0.0.1:8081/healthz",
        off="off",
        range="an http:// URL, or off",
        help="Nothing is written while the machinepoollet does not answer here; any HTTP status is an answer. off vouches for it unasked.",
    ),
    Setting(
        name="heartbeat-interval",
        kind=Kind.DURATION,
        commands=_SIDECAR,
        topic=Topic.HEARTBEAT,
        default="10s",
        range="> 0",
        check=above_zero,
        help="Time from one heartbeat (lease renewal and probe) to the next.",
        upstream="machinepoollet",
    ),
    Setting(
        name="heartbeat-lease-duration",
        kind=Kind.DURATION,
        commands=_SIDECAR,
        topic=Topic.HEARTBEAT,
        default="40s",
        range="whole seconds, greater than --heartbeat-interval",
        check=_lease_duration,
        fields=lambda seconds: {"heartbeat_lease_duration_seconds": int(seconds)},
        help="The leaseDurationSeconds that is published on the pool's Lease.",
        upstream="machinepoollet",
    ),
    Setting(
        name="heartbeat-status-timeout",
        kind=Kind.DURATION,
        commands=_SIDECAR,
        topic=Topic.HEARTBEAT,
        default="5s",
        range="> 0 and less than --heartbeat-interval",
        help="How long the machine runtime may take for its Status answer.",
        upstream="machinepoollet",
    ),
    Setting(
        name="machine-runtime-endpoint",
        kind=Kind.TEXT,
        commands=_SIDECAR_AND_CHECK,
        topic=Topic.RUNTIME,
        range="unix:/path, dns:///host:port or host:port",
        fallback_variable="IRI_MACHINE_RUNTIME_ENDPOINT",
        help="Where the machine runtime listens. Unset: IRI_MACHINE_RUNTIME_ENDPOINT, then the well-known sockets of IronCore.",
        upstream="machinepoollet",
    ),
    Setting(
        name="runtime-start-grace",
        kind=Kind.DURATION,
        commands=_SIDECAR,
        topic=Topic.RUNTIME,
        default="60s",
        range=">= 0",
        check=not_below_zero,
        help="How long a runtime that never answered may take to start before Ready=False is published.",
    ),
)
