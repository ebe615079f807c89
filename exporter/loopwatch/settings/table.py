"""The table of settings: each row is a flag, an environment variable, a line of `--help` and a line of docs/settings.md.

A new setting is a new row (and a field in `model`). The names, defaults and texts that IronCore v0.5.0 has too are its own, so that
a machinepoollet's arguments can be moved over as they are; `upstream` says which.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loopwatch import durations
from loopwatch.settings.kinds import HIGHEST_PORT, Kind, dns_subdomain_problem
from loopwatch.settings.model import Command, Mode

VARIABLE_PREFIX = "LOOPWATCH_"
HIGHEST_MARK_RATE = 10_000
LONGEST_LEASE_SECONDS = 2**31 - 1
"""leaseDurationSeconds of a Lease is an int32."""


class Topic(enum.Enum):
    """A panel of `--help` and a section of docs/settings.md, in this order."""

    POOL = "Machine pool"
    HEARTBEAT = "Heartbeat"
    RUNTIME = "Machine runtime"
    LIFECYCLE = "Lifecycle"
    KUBERNETES = "Kubernetes"
    PROCESS = "This process"
    DEMO = "Demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row.

    `default` is a text as a user would write it, empty where the setting stays unset. `check` gets the parsed value and says what is
    wrong with it ("must be > 0, got 0s"), or nothing. `fields` turns the value into fields of the settings object, where that is
    more than one field of the row's own name.
    """

    name: str
    kind: Kind
    commands: tuple[Command, ...]
    topic: Topic
    help: str
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    range: str = ""
    check: Callable[[Any], str] | None = None
    unit: str = ""
    off: str = ""
    fallback_variable: str = ""
    upstream: str = ""
    fields: Callable[[Any], Mapping[str, Any]] | None = None

    @property
    def flag(self) -> str:
        """`--NAME`."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """`LOOPWATCH_NAME`."""
        return VARIABLE_PREFIX + self.name.replace("-", "_").upper()

    @property
    def field(self) -> str:
        """The settings object's field, for rows without `fields`."""
        name = self.name.replace("-", "_")
        return f"{name}_seconds" if self.kind is Kind.DURATION else name

    @property
    def allowed(self) -> str:
        """The range in words."""
        return self.range or ", ".join(self.choices)

    def parse(self, text: str) -> Any:  # noqa: ANN401 - each kind has a type of its own
        """The value of a text, None for the row's word for `off`; ValueError with what is allowed."""
        if self.off and text == self.off:
            return None
        value = self.kind.parse(text)
        problem = self._problem(value)
        if problem:
            raise ValueError(problem)
        return value

    def field_values(self, value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as parsed
        """The fields that a parsed value sets."""
        return self.fields(value) if self.fields and value is not None else {self.field: value}

    def _problem(self, value: Any) -> str:  # noqa: ANN401 - as parsed
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, got {value!r:.80}"
        return self.check(value) if self.check else ""


def _above_zero(seconds: float) -> str:
    return "" if seconds > 0 else f"must be > 0, got {durations.render(seconds)}"


def _not_below_zero(seconds: float) -> str:
    return "" if seconds >= 0 else f"must be >= 0, got {durations.render(seconds)}"


def _lease_duration(seconds: float) -> str:
    if seconds == int(seconds) and 1 <= seconds <= LONGEST_LEASE_SECONDS:
        return ""
    return (
        f"must be whole seconds, from 1s to {LONGEST_LEASE_SECONDS}s, because a Lease carries it as a whole number "
        f"(leaseDurationSeconds), got {durations.render(seconds)}"
    )


def _port(number: int) -> str:
    return "" if number <= HIGHEST_PORT else f"must be a port from 0 to {HIGHEST_PORT}, got {number}"


_SIDECAR = (Command.SIDECAR,)
_CONTROLLER = (Command.CONTROLLER,)
_DEMO = (Command.DEMO,)
_BOTH = (Command.SIDECAR, Command.CONTROLLER)

SETTINGS = (
    Setting(
        name="machine-pool-name",
        kind=Kind.TEXT,
        commands=_SIDECAR,
        topic=Topic.POOL,
        required=True,
        range="a DNS subdomain, at most 253 characters",
        check=dns_subdomain_problem,
        help="The MachinePool to report for. Required.",
        upstream="machinepoollet",
    ),
    Setting(
        name="mode",
        kind=Kind.CHOICE,
        commands=_SIDECAR,
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
        check=_above_zero,
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
        commands=_SIDECAR,
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
        check=_not_below_zero,
        help="How long a runtime that never answered may take to start before Ready=False is published.",
    ),
    Setting(
        name="machine-pool-lifecycle-grace-period",
        kind=Kind.DURATION,
        commands=_CONTROLLER,
        topic=Topic.LIFECYCLE,
        default="50s",
        range="> 0",
        check=_above_zero,
        help="How long a pool may be silent, while it could be seen, before its Ready condition becomes Unknown.",
        upstream="ironcore-controller-manager",
    ),
    Setting(
        name="mark-never-reported",
        kind=Kind.BOOLEAN,
        commands=_CONTROLLER,
        topic=Topic.LIFECYCLE,
        default="true",
        help="Also mark pools that never had a Lease nor a Ready condition, as upstream does.",
    ),
    Setting(
        name="mark-rate",
        kind=Kind.COUNT,
        commands=_CONTROLLER,
        topic=Topic.LIFECYCLE,
        default="250",
        unit="writes a second",
        range="1 to 10000",
        check=lambda rate: "" if 1 <= rate <= HIGHEST_MARK_RATE else f"must be from 1 to {HIGHEST_MARK_RATE}, got {rate}",
        help="How many pools are marked Unknown in a second at most, when many fall silent at once.",
    ),
    Setting(
        name="no-act",
        kind=Kind.BOOLEAN,
        commands=_CONTROLLER,
        topic=Topic.LIFECYCLE,
        default="false",
        fields=lambda no_act: {"act": not no_act},
        help="Watch and expose, write nothing.",
    ),
    Setting(
        name="kubeconfig",
        kind=Kind.PATH,
        commands=_BOTH,
        topic=Topic.KUBERNETES,
        help="The kubeconfig of the pools' cluster. Unset: $KUBECONFIG, then this pod's ServiceAccount, then ~/.kube/config.",
        upstream="machinepoollet and ironcore-controller-manager",
    ),
    Setting(
        name="context",
        kind=Kind.TEXT,
        commands=_BOTH,
        topic=Topic.KUBERNETES,
        help="The context of the kubeconfig to use. Unset: its current-context.",
    ),
    Setting(
        name="listen-address",
        kind=Kind.ADDRESS,
        commands=_BOTH,
        topic=Topic.PROCESS,
        default=":9808",
        range="host:port, [IPv6 address]:port, or :port for every address; port 0 takes a free one",
        fields=lambda address: {"listen_host": address.host, "listen_port": address.port},
        help="Where /metrics, /healthz and /readyz are served.",
    ),
    Setting(
        name="log-level",
        kind=Kind.CHOICE,
        commands=_BOTH,
        topic=Topic.PROCESS,
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="The least that is logged to stderr.",
    ),
    Setting(
        name="port",
        kind=Kind.COUNT,
        commands=_DEMO,
        topic=Topic.DEMO,
        default="9808",
        unit="TCP port",
        range=f"0 to {HIGHEST_PORT}; 0 takes a free one",
        check=_port,
        help="The port of the demo's page on 127.0.0.1.",
    ),
    Setting(
        name="once",
        kind=Kind.BOOLEAN,
        commands=_DEMO,
        topic=Topic.DEMO,
        default="false",
        help="Play the story once, check what /metrics showed of it, and exit 0 or 1.",
    ),
)


def settings_of(command: Command) -> tuple[Setting, ...]:
    """The rows of one command, in the order of the table."""
    return tuple(row for row in SETTINGS if command in row.commands)
