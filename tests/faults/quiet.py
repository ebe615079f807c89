"""The rest of invariant 2, once the storm is over: whoever can report, does, and has its pool back from Unknown; its runtime is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwatch.settings.model import Mode
from tests.faults.pods import Pod
from tests.faults.truth import ready_of

if TYPE_CHECKING:
    from tests.faults.invariants import Observer

POOLLET_SECONDS = 60.0
"""The stand-in gives a dead connection 45 s, as client-go does, whatever the times of the scenario are."""
UNSCALED_SECONDS = 8.0
"""With the short times: what some waits are longer than they should be, above all the 10 s for an answer to a list."""
HALF_OPEN_GRACES = 2.5
"""A half-open watch (90 s with a grace of 50 s) and the longest back-off after it (30 s)."""
LATE_INTERVALS = 2.5


def settled_seconds(observer: Observer) -> float:
    """How long a process of ours is given to find everything again."""
    times = observer.cluster.plan.times
    return HALF_OPEN_GRACES * times.grace + (0.0 if times.scale == 1.0 else UNSCALED_SECONDS)


def check_reporters(observer: Observer) -> None:
    """At the end of the calm."""
    for pod in observer.cluster.pods.values():
        who = _reporter(observer, pod)
        if who:
            _check_reported(observer, pod, who)


def _reporter(observer: Observer, pod: Pod) -> str:
    """Who has to report for this pod's pool; empty where nobody can be held to it."""
    cluster = observer.cluster
    poollet_seconds = cluster.undisturbed_seconds(pod.poollet) if pod.poollet else 0.0
    if pod.poollet is not None and pod.poollet.version == "v0.5.0":
        return pod.poollet.client if poollet_seconds > POOLLET_SECONDS else ""
    if pod.poollet is not None and poollet_seconds < settled_seconds(observer):
        return ""
    able = [
        host.client
        for host in pod.sidecars
        if host.mode is not Mode.OBSERVE and cluster.undisturbed_seconds(host) > settled_seconds(observer)
    ]
    return " or ".join(able)


def _check_reported(observer: Observer, pod: Pod, who: str) -> None:
    truth, times = observer.truth.pool(pod.pool), observer.cluster.plan.times
    if truth.pool is None:
        return
    ready = ready_of(truth.pool)
    if ready is None or ready.status != "True":
        observer.fail(2, f"{pod.pool} is reported for by {who}, its runtime is well, and its Ready is {ready}")
    late = observer.now - truth.lease_progress[-1]
    if truth.lease is None or late > LATE_INTERVALS * times.interval:
        observer.fail(2, f"{pod.pool} is reported for by {who}, and its Lease was renewed {late:.1f} s ago")
