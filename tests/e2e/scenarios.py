"""The 17 scenarios in which IronCore v0.5.0 was measured, and what loopwatch shows and does in each: one table.

It is the document (docs/scenarios.md is made from it) and the list of tests: tests/e2e/test_scenarios.py plays each row on a real
kube-apiserver, and fails where a row names other stand-ins or families than its play used. `upstream` is what the real programs were
seen to do with grace 5 s and heartbeat 2 s; what a stand-in leaves out, the row says.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

OLD = "Where the machinepoollet has no heartbeat (before v0.5.0) and a sidecar reports:"


class StandIn(enum.Enum):
    """What is not the real thing in a scenario."""

    RUNTIME = "machine runtime"
    MACHINEPOOLLET = "machinepoollet"
    LIFECYCLE = "lifecycle controller"
    SCHEDULER = "scheduler"
    HAND = "a person's hand"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row. `families` are those that its test reads; `does` is what loopwatch writes, and what it refrains from."""

    number: int
    name: str
    stand_ins: frozenset[StandIn]
    upstream: str
    shows: str
    does: str
    families: tuple[str, ...]


def _row(number: int, name: str, stand_ins: set[StandIn], upstream: str, *, shows: str, does: str, families: str) -> Scenario:
    return Scenario(number, name, frozenset(stand_ins), upstream, shows, does, tuple(f"loopwatch_{each}" for each in families.split()))


SCENARIOS = (
    _row(
        1,
        "a pool is made by hand, and has no Lease",
        {StandIn.HAND},
        "Unknown 5.1 s after it was made; nothing else in its status; written once.",
        shows="The pool never reported, and its Ready is absent; then a transition to Unknown.",
        does="The controller marks it Unknown after one grace, once, in upstream's words (not with --mark-never-reported=false).",
        families="machinepool_lifecycle_marks_total machinepool_never_reported machinepool_ready machinepool_ready_transitions_total",
    ),
    _row(
        2,
        "a Lease renewed by hand beside a Ready written by hand stops, and is renewed again",
        {StandIn.HAND},
        "Stays True; Unknown 5.1 s after the last renewal; renewals alone never restore True.",
        shows="A late heartbeat at 0.75 of the Lease's duration, Ready without Lease after all of it; after the mark, unready but renewed.",
        does="The controller marks the pool one grace after the last renewal, and never writes True.",
        families="machinepool_late_heartbeats_total machinepool_lifecycle_marks_total machinepool_ready_without_lease"
        " machinepool_silence_seconds machinepool_unready_but_renewed",
    ),
    _row(
        3,
        "a machinepoollet starts",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "Pool applied, Lease and Ready=True 0.85 s after its start.",
        shows="Ready, provider, capacity, the Lease's duration; the sidecar shows what the runtime answers, and that it observes.",
        does="Nothing: the sidecar in mode auto has seen a machinepoollet renew.",
        families="heartbeat_lease_writes_total heartbeat_probe_success heartbeat_ready_writes_total heartbeat_state"
        " machinepool_capacity machinepool_info machinepool_lease_duration_seconds machinepool_never_reported"
        " machinepool_ready machinepool_state runtime_machine_class_quantity",
    ),
    _row(
        4,
        "the runtime's Status answers Unavailable, and answers again",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "False within one interval, True within one; the Lease is renewed all the time.",
        shows="RuntimeUnreachable, unready but renewed, and the probe's gRPC code.",
        does=f"Nothing. {OLD} it publishes False and True, and renews all the time.",
        families="heartbeat_probe_success heartbeat_probes_total heartbeat_state machinepool_ready_reason machinepool_unready_but_renewed",
    ),
    _row(
        5,
        "the runtime's Status hangs",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "False with DeadlineExceeded at the probe's timeout; the Lease is renewed after the probe, so later by that much.",
        shows="As 4, with DeadlineExceeded.",
        does=f"Nothing. {OLD} the same, and no renewal waits for a probe.",
        families="heartbeat_probe_success heartbeat_probes_total heartbeat_state machinepool_ready_reason machinepool_unready_but_renewed",
    ),
    _row(
        6,
        "the runtime is killed, and comes back",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "False with Unavailable (connection error); True on the first tick after its return.",
        shows="As 4.",
        does=f"As 4. {OLD} True within two intervals of its return.",
        families="heartbeat_probe_success heartbeat_probes_total heartbeat_state machinepool_ready_reason machinepool_unready_but_renewed",
    ),
    _row(
        7,
        "a machinepoollet is stopped (SIGSTOP) for 9 s and continued",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "Unknown 5.01 s after the last renewal; True within 25 ms of SIGCONT.",
        shows="The mark; the sidecar shows that the machinepoollet does not answer, and goes on observing.",
        does=f"The controller marks the pool; the sidecar takes nothing over. {OLD} it stops with the machinepoollet, the pool is marked,"
        " and it reports again when the machinepoollet answers.",
        families="heartbeat_machinepoollet_up heartbeat_state machinepool_lifecycle_marks_total",
    ),
    _row(
        8,
        "a machinepoollet is ended (SIGTERM) and started again",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "Its Lease is not released; Unknown 5.0 s after the last renewal; the new one takes the Lease, and is True 0.6 s after its start.",
        shows="The mark, one change of the Lease's holder, and no conflict of holders.",
        does="The controller marks the pool; the sidecar leaves the Lease alone, since it has seen a machinepoollet renew it.",
        families="heartbeat_machinepoollet_up heartbeat_state machinepool_lease_holder_changes_total"
        " machinepool_lease_holder_conflict machinepool_lifecycle_marks_total",
    ),
    _row(
        9,
        "two machinepoollets run for one pool",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "The holder alternates at every tick; the pool's status is written 2.5 times a second, since their addresses differ (the stand-ins'"
        " do not); never Unknown.",
        shows="A conflict of holders, and how often the holder changes; Ready stays True.",
        does="Nothing: no mark, and the sidecar does not join in.",
        families="heartbeat_lease_writes_total heartbeat_state machinepool_lease_holder_changes_total"
        " machinepool_lease_holder_conflict machinepool_lifecycle_marks_total machinepool_ready_transitions_total",
    ),
    _row(
        10,
        "a machinepoollet loses its right to Leases while it runs",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET, StandIn.LIFECYCLE},
        "Unknown for 3 to 25 ms and True again, once a grace; no scrape sees it.",
        shows="Every blip as a transition to Unknown, Ready without Lease, a late heartbeat, and a lifecycle controller elsewhere.",
        does="With --no-act nothing. In the place of IronCore's controller it marks likewise, once a grace, and counts each mark.",
        families="machinepool_late_heartbeats_total machinepool_lifecycle_elsewhere machinepool_lifecycle_marks_total"
        " machinepool_ready machinepool_ready_transitions_total machinepool_ready_without_lease",
    ),
    _row(
        11,
        "a machinepoollet never had the right to Leases",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "Its first tick never ends: no Lease, no Ready, Unknown for ever, while healthz and readyz say 200; exit after 120 s (here 8 s).",
        shows="A pool that never reported, until it is marked; with a sidecar, that the sidecar reports.",
        does="The controller marks it. Where a sidecar runs beside it, the sidecar reports, and stops when the machinepoollet has ended.",
        families="heartbeat_state machinepool_never_reported",
    ),
    _row(
        12,
        "a pool is deleted while its machinepoollet runs, and is made again by hand",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET, StandIn.HAND},
        "Its Lease goes on being renewed, nobody makes it again; made by hand, it is True within 15 ms.",
        shows="An orphaned Lease, and no series of the pool; both as before once it is there again.",
        does=f"Nothing. {OLD} its renewals stop while the pool is away, and begin again with it.",
        families="heartbeat_state machinepool_lease_orphaned machinepool_ready",
    ),
    _row(
        13,
        "the runtime is down when the machinepoollet starts",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET, StandIn.HAND},
        "Exit within 0.4 s; where Version answers and Status fails, exit after 10.7 s (here 2 s). Never False.",
        shows="A pool that never reported; the sidecar's probes fail, and nobody answers on healthz.",
        does="The controller marks it. The sidecar writes no Ready, and no Lease before a machinepoollet has answered.",
        families="heartbeat_machinepoollet_up heartbeat_probe_success heartbeat_ready_writes_total heartbeat_state"
        " machinepool_lifecycle_marks_total machinepool_never_reported",
    ),
    _row(
        14,
        "the lifecycle controller is restarted every 4 s while a pool is dead",
        {StandIn.LIFECYCLE, StandIn.HAND},
        "Three restarts: Unknown only 18.3 s after the last sign of life, a fresh grace each time.",
        shows="The silence, far beyond the grace, while Ready is still True: Ready without Lease.",
        does="With two of our controllers, of which the leader ends after 4 s, the other marks the pool on time: it keeps what it saw.",
        families="leader_election_leading machinepool_lifecycle_marks_total machinepool_ready"
        " machinepool_ready_without_lease machinepool_silence_seconds",
    ),
    _row(
        15,
        "the runtime is down for longer than the machinepoollet's relist threshold",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET},
        "healthz says 500 while Ready is False; the kubelet restarts the machinepoollet, which exits at its start: False turns to Unknown.",
        shows="A machinepoollet that is up, since any HTTP status is an answer; unready but renewed; transitions to False and Unknown.",
        does=f"The controller marks it. {OLD} it reports on while healthz says 500, and stops once nobody answers.",
        families="heartbeat_machinepoollet_up heartbeat_state machinepool_ready_transitions_total machinepool_unready_but_renewed",
    ),
    _row(
        16,
        "a Machine is made while its pool is Unknown; then the pool is tainted",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET, StandIn.SCHEDULER, StandIn.HAND},
        "v0.5.0 binds it to the Unknown pool, where it stays Pending; a taint with NoExecute deletes it at once (Event Evicted, left out).",
        shows="A Machine without a pool, then one more that is stranded, how long it waits; the taint; none stranded once evicted.",
        does="Nothing: loopwatch writes no Machine and no taint.",
        families="machinepool_machines machinepool_maintenance machinepool_oldest_pending_machine_age_seconds"
        " machinepool_stranded_machines machinepool_taints machines_unbound_pending",
    ),
    _row(
        17,
        "a foreign condition is in the list",
        {StandIn.RUNTIME, StandIn.MACHINEPOOLLET, StandIn.HAND},
        "It outlives the machinepoollet's writes; server-side apply of it alone conflicts, and by force removes Ready, since the list is"
        " atomic; the machinepoollet puts it back in milliseconds.",
        shows="A transition to absent, and Ready's return.",
        does=f"The controller's mark keeps it. {OLD} its writes keep it, and it puts Ready back at once.",
        families="heartbeat_state machinepool_lifecycle_marks_total machinepool_ready machinepool_ready_transitions_total",
    ),
)
