"""The settings of the controller's election and of its second cluster.

Names and defaults of election are those of every Kubernetes component.
"""

from __future__ import annotations

from loopwatch.settings.kinds import Kind, dns_subdomain_problem
from loopwatch.settings.model import Command
from loopwatch.settings.setting import Setting, Topic

_CONTROLLER = (Command.CONTROLLER,)
_CONTROLLER_AND_CHECK = (Command.CONTROLLER, Command.CHECK)
_CONTROLLER_AND_RIGHTS = (Command.CONTROLLER, Command.RBAC, Command.CHECK)
UPSTREAM = "every Kubernetes component"


def _duration(name: str, default: str, help_text: str) -> Setting:
    return Setting(
        name=f"leader-elect-{name}",
        kind=Kind.DURATION,
        commands=_CONTROLLER,
        topic=Topic.ELECTION,
        default=default,
        range="> 0",
        help=help_text,
        upstream=UPSTREAM,
        fields=whole_seconds if name == "lease-duration" else None,
    )


def whole_seconds(seconds: float) -> dict[str, int]:
    """A Lease carries its duration as a whole number."""
    return {"leader_elect_lease_duration_seconds": int(seconds)}


ELECTION_ROWS = (
    Setting(
        name="leader-elect",
        kind=Kind.BOOLEAN,
        commands=_CONTROLLER_AND_RIGHTS,
        topic=Topic.ELECTION,
        default="true",
        help="Elect one of several replicas that acts; the others watch and expose. Never contends with --no-act.",
        upstream=UPSTREAM,
    ),
    _duration(
        "lease-duration",
        "15s",
        "How long the others wait, after the leader's last renewal that they saw, before one of them takes over.",
    ),
    _duration(
        "renew-deadline",
        "10s",
        "How long a leader acts after the sending of its last renewal that succeeded.",
    ),
    _duration(
        "retry-period",
        "2s",
        "How long to wait between two rounds of election; jitter makes it shorter, never longer.",
    ),
    Setting(
        name="leader-elect-resource-name",
        kind=Kind.TEXT,
        commands=_CONTROLLER_AND_RIGHTS,
        topic=Topic.ELECTION,
        default="loopwatch-controller",
        check=dns_subdomain_problem,
        help="The Lease by which replicas elect.",
        upstream=UPSTREAM,
    ),
    Setting(
        name="leader-elect-resource-namespace",
        kind=Kind.TEXT,
        commands=_CONTROLLER_AND_RIGHTS,
        topic=Topic.ELECTION,
        check=dns_subdomain_problem,
        help="The namespace of that Lease, in the pod's own cluster, else in --kubeconfig's. Unset: the pod's own, else default.",
        upstream=UPSTREAM,
    ),
    Setting(
        name="lease-kubeconfig",
        kind=Kind.PATH,
        commands=_CONTROLLER_AND_CHECK,
        topic=Topic.KUBERNETES,
        help="The kubeconfig of the cluster that holds the machinepools' Leases. Unset: the one that holds the pools.",
    ),
)
