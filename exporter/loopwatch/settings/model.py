"""The settings as the rest of loopwatch reads them: typed, frozen, durations in seconds, with the defaults of the table.

Plain data: whoever builds one by hand (a test, the demo) is believed. The checks belong to `loopwatch.settings.read`, which stands
between a user and these.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar


class Command(enum.Enum):
    """A command of `loopwatch` that has settings."""

    SIDECAR = "sidecar"
    CONTROLLER = "controller"
    DEMO = "demo"
    RBAC = "rbac"
    CHECK = "check"


class Mode(enum.Enum):
    """When a sidecar reports for its pool."""

    AUTO = "auto"
    """Only where nobody else does, and never again once a machinepoollet was seen to renew."""
    REPORT = "report"
    """From the first tick, whoever else reports: as upstream's machinepoollet."""
    OBSERVE = "observe"
    """Never: it watches and measures."""


class MetricsAuth(enum.Enum):
    """Who may see what a process serves."""

    NONE = "none"
    """Everybody who reaches the address, as with every exporter."""
    KUBERNETES = "kubernetes"
    """Whom the API server allows to `get` the path."""


class Subject(enum.Enum):
    """Who is given rights."""

    SIDECAR = "sidecar"
    CONTROLLER = "controller"
    READER = "reader"
    """Somebody who looks: whoever runs `loopwatch check`, or scrapes a protected /metrics."""


class Output(enum.Enum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """What the sidecar and the controller share. An empty `listen_host` is every address of the machine.

    `tls_cert_file` and `tls_key_file` are both set, or neither.
    """

    kubeconfig: str | None = None
    context: str | None = None
    listen_host: str = ""
    listen_port: int = 9808
    metrics_auth: MetricsAuth = MetricsAuth.NONE
    metrics_auth_outage_seconds: float = 900.0
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    log_level: str = "info"
    log_format: str = "auto"


@dataclass(frozen=True, kw_only=True)
class SidecarSettings(CommonSettings):
    """`loopwatch sidecar`. None for `machinepoollet_healthz` is `off`; None for `machine_runtime_endpoint` looks for a socket."""

    command: ClassVar[Command] = Command.SIDECAR

    machine_pool_name: str
    mode: Mode = Mode.AUTO
    heartbeat_interval_seconds: float = 10.0
    heartbeat_lease_duration_seconds: int = 40
    heartbeat_status_timeout_seconds: float = 5.0
    machine_runtime_endpoint: str | None = None
    machinepoollet_healthz: str | None = "http://127.0.0.1:8081/healthz"
    runtime_start_grace_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True)
class ControllerSettings(CommonSettings):
    """`loopwatch controller`. Without `act` it watches and exposes, and writes nothing."""

    command: ClassVar[Command] = Command.CONTROLLER

    machine_pool_lifecycle_grace_period_seconds: float = 50.0
    mark_never_reported: bool = True
    mark_rate: int = 250
    machines: bool = True
    events: bool = True
    lease_kubeconfig: str | None = None
    leader_elect: bool = True
    leader_elect_lease_duration_seconds: int = 15
    leader_elect_renew_deadline_seconds: float = 10.0
    leader_elect_retry_period_seconds: float = 2.0
    leader_elect_resource_name: str = "loopwatch-controller"
    leader_elect_resource_namespace: str | None = None
    act: bool = True


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """`loopwatch demo`. Port 0 takes any free one."""

    command: ClassVar[Command] = Command.DEMO

    port: int = 9808
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class RbacSettings:
    """`loopwatch rbac`. None for `process` is everybody's; None for `service_account` is a name made of the prefix.

    The settings from `mode` on are what the process will be started with: what it does not use, it is given no right to.
    """

    command: ClassVar[Command] = Command.RBAC

    process: Subject | None = None
    machine_pool_name: str | None = None
    namespace: str = "loopwatch"
    service_account: str | None = None
    name_prefix: str = "loopwatch"
    mode: Mode = Mode.AUTO
    act: bool = True
    leader_elect: bool = True
    leader_elect_resource_name: str = "loopwatch-controller"
    leader_elect_resource_namespace: str | None = None
    machines: bool = True
    events: bool = True
    metrics_auth: MetricsAuth = MetricsAuth.NONE


@dataclass(frozen=True, kw_only=True)
class CheckSettings:
    """`loopwatch check`. `subject` is for whom to look; the rest is what that process will be started with."""

    command: ClassVar[Command] = Command.CHECK

    subject: Subject = Subject.CONTROLLER
    watch_seconds: float = 15.0
    output: Output = Output.TEXT
    kubeconfig: str | None = None
    context: str | None = None
    lease_kubeconfig: str | None = None
    machine_pool_name: str | None = None
    machine_runtime_endpoint: str | None = None
    namespace: str = "loopwatch"
    mode: Mode = Mode.AUTO
    machine_pool_lifecycle_grace_period_seconds: float = 50.0
    mark_never_reported: bool = True
    act: bool = True
    leader_elect: bool = True
    leader_elect_resource_name: str = "loopwatch-controller"
    leader_elect_resource_namespace: str | None = None
    machines: bool = True
    events: bool = True
    metrics_auth: MetricsAuth = MetricsAuth.NONE
