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


class Mode(enum.Enum):
    """When a sidecar reports for its pool."""

    AUTO = "auto"
    """Only where nobody else does, and never again once a machinepoollet was seen to renew."""
    REPORT = "report"
    """From the first tick, whoever else reports: as upstream's machinepoollet."""
    OBSERVE = "observe"
    """Never: it watches and measures."""


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """What the sidecar and the controller share. An empty `listen_host` is every address of the machine."""

    kubeconfig: str | None = None
    context: str | None = None
    listen_host: str = ""
    listen_port: int = 9808
    log_level: str = "info"


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
    act: bool = True


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """`loopwatch demo`. Port 0 takes any free one."""

    command: ClassVar[Command] = Command.DEMO

    port: int = 9808
    once: bool = False
