"""Whether a controller elects, by which Lease, and what it exposes of it: the settings of election made into its parts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from loopwatch.clock import Clock
from loopwatch.election import families
from loopwatch.election.act import ElectionLease
from loopwatch.election.derive import Times
from loopwatch.election.elector import Change, Elector, process_identity
from loopwatch.election.families import LEADER_ELECTION, LeadershipFacts
from loopwatch.kube.connection import ConnectionSettings
from loopwatch.kube.login import HOST_VARIABLE, PORT_VARIABLE
from loopwatch.kube.resources import ObjectKey
from loopwatch.kube.transport import Transport
from loopwatch.metrics.store import Store
from loopwatch.settings.model import ControllerSettings
from loopwatch.web.health import Loops

POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
ELSEWHERE: Final = "default"
"""The namespace of the election's Lease where this is no pod."""


def elects(settings: ControllerSettings) -> bool:
    """A process that never acts never contends."""
    return settings.act and settings.leader_elect


def times(settings: ControllerSettings) -> Times:
    """The times of election as set."""
    return Times(
        settings.leader_elect_lease_duration_seconds,
        settings.leader_elect_renew_deadline_seconds,
        settings.leader_elect_retry_period_seconds,
    )


def act_timeout_seconds(settings: ControllerSettings) -> float:
    """The longest that a write may take that was begun while leading; without bound where nobody else can lead."""
    return times(settings).act_timeout_seconds if elects(settings) else math.inf


def elector(
    settings: ControllerSettings, transport: Transport, clock: Clock, loops: Loops, on_change: Callable[[Change], None]
) -> Elector | None:
    """The contender of this process; None where it does not contend."""
    if not elects(settings):
        return None
    chosen = times(settings)
    key = ObjectKey(settings.leader_elect_resource_namespace or _own_namespace(), settings.leader_elect_resource_name)
    lease = ElectionLease(transport, clock, key, process_identity(), chosen)
    loop = loops.register("election", chosen.longest_turn_seconds)
    return Elector(lease, clock, on_change=on_change, turned=loop.turn)


def expose(store: Store, contender: Elector | None, *, acts: bool) -> None:
    """Without a contender the lead is fixed: held for good, or never with --no-act."""
    if contender is not None:
        families.install(store, contender)
    else:
        store.put(LEADER_ELECTION, (), LeadershipFacts(leading=acts))


def own_cluster(component: str, environ: Mapping[str, str] | None = None) -> ConnectionSettings | None:
    """The cluster that this pod runs in, whatever kubeconfigs are set; None where this is no pod."""
    variables = os.environ if environ is None else environ
    found = {name: variables[name] for name in (HOST_VARIABLE, PORT_VARIABLE) if variables.get(name)}
    return ConnectionSettings(component, environ=found) if len(found) == 2 else None  # host and port


def _own_namespace(file: Path = POD_NAMESPACE) -> str:
    """The namespace of this pod."""
    try:
        return file.read_text().strip() or ELSEWHERE
    except OSError:
        return ELSEWHERE
