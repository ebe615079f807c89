"""Every finding that `loopwatch check` can make: docs/check.md is written from these rows.

`key` is what a script may look for; it is as stable as a metric's name. `{…}` in a fix is filled in with what was found.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Severity(enum.Enum):
    """An error fails the check (exit 1); the others don't."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that may be found: what in general, why it matters, and how to mend it."""

    key: str
    severity: Severity
    title: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found; a finding that all is well has no why and no fix. `objects` are names of pools or rights, each in full."""

    key: str
    severity: Severity
    what: str
    why: str = ""
    fix: str = ""
    objects: tuple[str, ...] = ()


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

ROWS: Final = (
    Row(
        "api-unreachable",
        _E,
        "The API server does not answer.",
        "Nothing works without it, and nothing else could be checked.",
        "kubectl version   # with the same kubeconfig; then give --kubeconfig and --context",
    ),
    Row(
        "pools-not-served",
        _E,
        "The API server does not serve machinepools of compute.ironcore.dev/v1alpha1.",
        "There is nothing to report for or to watch: IronCore is not installed here, or this is another cluster than meant.",
        "kubectl get --raw /apis/compute.ironcore.dev   # then install IronCore, or give --kubeconfig of the cluster that serves pools",
    ),
    Row(
        "pools-unavailable",
        _E,
        "The API of machinepools can't be read.",
        "While it does not answer, nothing is reported and nothing is marked; pools and Leases could not be checked.",
        "kubectl get apiservice v1alpha1.compute.ironcore.dev",
    ),
    Row(
        "leases-unavailable",
        _E,
        "The Leases of machinepools can't be read.",
        "Without sight of Leases nothing is marked; who reports could not be checked.",
        "kubectl get leases -n ironcore-machinepool-lease",
    ),
    Row(
        "lease-namespace-missing",
        _E,
        "The namespace ironcore-machinepool-lease does not exist.",
        "Heartbeats are Leases in it. Neither machinepoollets nor sidecars create it, so no pool would ever report.",
        "kubectl create namespace ironcore-machinepool-lease",
    ),
    Row(
        "namespace-unknown",
        _I,
        "Whether the Leases' namespace exists could not be asked.",
        "Without it no heartbeat can be written.",
        "kubectl get namespace ironcore-machinepool-lease",
    ),
    Row(
        "right-missing",
        _E,
        "A right that the process needs is missing.",
        "docs/rbac.md says what breaks without each right.",
        "loopwatch rbac {options} | kubectl apply -f -",
    ),
    Row(
        "events-right-missing",
        _W,
        "The right to write Events is missing.",
        "Marks and recoveries are not told as Events on the pool; all else works. --events=false asks for no such right.",
        "loopwatch rbac {options} | kubectl apply -f -",
    ),
    Row(
        "rights-unknown",
        _W,
        "Rights could not be asked about.",
        "Whether the process may do what it must shows only once it runs.",
        "kubectl auth can-i --list",
    ),
    Row(
        "pool-missing",
        _E,
        "The MachinePool does not exist.",
        "A sidecar writes no Lease for a pool that does not exist; the machinepoollet makes the pool when it starts.",
        "kubectl get machinepools   # then mend --machine-pool-name",
    ),
    Row(
        "undecodable",
        _W,
        "Objects are not what the API says they are.",
        "Such a pool is shown as far as it is known, and never marked.",
        "kubectl get {resource} {name} -o yaml",
    ),
    Row(
        "orphaned-lease",
        _I,
        "Leases whose pool does not exist.",
        "They are left over, or a machinepoollet goes on after its pool was deleted: it makes the pool again only when it is restarted.",
        "kubectl delete lease -n ironcore-machinepool-lease {name}",
    ),
    Row(
        "machinepoollet-reports",
        _I,
        "Machinepoollets that report by themselves.",
        "A sidecar in mode auto only observes beside one, for as long as it runs; the controller sees its heartbeats as they are.",
        "nothing to do",
    ),
    Row(
        "two-reporters",
        _W,
        "--mode report beside a machinepoollet that reports.",
        "Both would take the Lease from each other at each tick, and a dead machinepoollet would look alive.",
        "loopwatch sidecar --machine-pool-name {name} --mode auto",
    ),
    Row(
        "pool-silent",
        _W,
        "Pools whose Lease was not renewed while it was watched.",
        "The controller marks a pool Unknown once it was silent for the whole grace period, {grace}, in its sight.",
        "kubectl get lease -n ironcore-machinepool-lease {name} -o yaml   # and look after its machinepoollet",
    ),
    Row(
        "never-reported",
        _W,
        "Pools that never had a Lease nor a Ready condition would be marked.",
        "The controller marks them Unknown one grace period after it first sees them, as upstream does; newer schedulers then avoid them.",
        "loopwatch controller --mark-never-reported=false   # until each pool has a reporter",
    ),
    Row(
        "never-reported-left",
        _I,
        "Pools that never had a Lease nor a Ready condition are left alone.",
        "With --mark-never-reported=false they are only shown (loopwatch_machinepool_never_reported).",
        "loopwatch sidecar --machine-pool-name {name}   # beside its machinepoollet",
    ),
    Row(
        "poollets-without-heartbeat",
        _W,
        "Pools that a lifecycle controller marked Unknown, and that have no Lease.",
        "Version skew: machinepoollets before IronCore v0.5.0 send no heartbeat, so a newer ironcore-controller-manager (or loopwatch) "
        "marks them though they work; IronCore's newer schedulers place nothing on them.",
        "loopwatch sidecar --machine-pool-name {name}   # beside its machinepoollet; or upgrade that to v0.5.0",
    ),
    Row(
        "silent-but-ready",
        _W,
        "Pools that are Ready=True although their Lease stood still for longer than its own duration.",
        "Nobody marks them: ironcore-controller-manager is older than v0.5.0 or runs without machinepoollifecycle, and no loopwatch "
        "controller acts. Whether they live can't be seen in their Ready.",
        "kubectl get pods -A | grep -e loopwatch-controller -e ironcore-controller-manager",
    ),
    Row(
        "lifecycle-elsewhere",
        _W,
        "Another lifecycle controller is at work.",
        "Two do no harm to each other, but the other one's marks know neither sight nor a confirming read, and its grace is its own.",
        "ironcore-controller-manager --controllers=*,-machinepoollifecycle   # or loopwatch controller --no-act",
    ),
    Row(
        "grace-too-short",
        _E,
        "The grace period is not above the largest lease duration.",
        "A few missed heartbeats would mark a living pool Unknown.",
        "loopwatch controller --machine-pool-lifecycle-grace-period {grace}",
    ),
    Row(
        "clock-skew",
        _W,
        "The clocks of this host and of the API server differ.",
        "loopwatch never compares them. Tokens, certificates and people who read timestamps do.",
        "timedatectl timesync-status   # on both hosts",
    ),
    Row(
        "runtime-silent",
        _E,
        "The machine runtime does not answer Status.",
        "The sidecar would publish Ready=False/RuntimeUnreachable.",
        "loopwatch check --as sidecar --machine-pool-name {name} --machine-runtime-endpoint unix:/path/of/the/socket",
    ),
    Row(
        "runtime-not-found",
        _W,
        "There is no machine runtime to ask.",
        "No endpoint was given and none of the well-known sockets is there; a sidecar waits for one of them. Run this inside the pod.",
        "loopwatch check --as sidecar --machine-pool-name {name} --machine-runtime-endpoint unix:/path/of/the/socket",
    ),
)
_BY_KEY: Final = {row.key: row for row in ROWS}


def found(key: str, what: str, objects: tuple[str, ...] = (), **filled: str) -> Finding:
    """A row's finding; `filled` are the words for its braces."""
    row = _BY_KEY[key]
    return Finding(key, row.severity, what, row.why.format(**filled), row.fix.format(**filled), objects)


def fine(key: str, what: str) -> Finding:
    """Something was looked at, and all is well."""
    return Finding(key, Severity.OK, what)
