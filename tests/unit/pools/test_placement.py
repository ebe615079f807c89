"""Machines and pools put together: from objects on the wire to the text of /metrics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwatch.pools.derive.machines import STATES
from tests.support.observed import SeenWithMachines
from tests.support.pools import lease, pool, raw_machine, ready_condition, renewal

UNKNOWN = ready_condition("Unknown", "MachinePoolStatusUnknown")
FALSE = ready_condition("False", "RuntimeUnreachable")
OF_MACHINES = ("machines{", "stranded_machines", "oldest_pending", "allocatable_computed")
POOL = {"machinepool": "pool-a"}
GOING = {"deletionTimestamp": "2026-05-01T12:00:00Z"}


def offering(name: str = "pool-a", *conditions: dict[str, Any], **more: Any) -> Any:
    return pool(name, *(conditions or (ready_condition(),)), **more)


def test_a_pool_with_its_machines_as_text() -> None:
    here = SeenWithMachines()
    here.pools(
        offering(
            "pool-a",
            FALSE,
            capacity={"class/machine.small": "10", "class/machine.large.v2": 2, "cpu": "64"},
            allocatable={"class/machine.small": "9", "class/machine.large.v2": "2"},
            taints=[
                {"key": "maintenance.ironcore.dev", "effect": "NoSchedule"},
                {"key": "maintenance.ironcore.dev", "effect": "NoExecute"},
                {"key": "gpu", "value": "only", "effect": "NoSchedule"},
            ],
        )
    )
    here.machines(
        raw_machine("one"),
        raw_machine("two", state="Terminating", **GOING),
        raw_machine("three", state="Pending"),
        raw_machine("four", state="Suspended", machine_class="large.v2"),
    )
    here.clock.step(2.5)
    page = here.store.render(here.observer.moment()).decode()
    start = page.index("# HELP loopwatch_machinepool_capacity")
    assert [line for line in page[start:].splitlines() if not line.startswith("#")] == [
        'loopwatch_machinepool_capacity{machinepool="pool-a",machine_class="small"} 10',
        'loopwatch_machinepool_capacity{machinepool="pool-a",machine_class="large.v2"} 2',
        'loopwatch_machinepool_allocatable{machinepool="pool-a",machine_class="small"} 9',
        'loopwatch_machinepool_allocatable{machinepool="pool-a",machine_class="large.v2"} 2',
        'loopwatch_machinepool_allocatable_computed{machinepool="pool-a",machine_class="small"} 7',
        'loopwatch_machinepool_allocatable_computed{machinepool="pool-a",machine_class="large.v2"} 1',
        'loopwatch_machinepool_maintenance{machinepool="pool-a"} 1',
        'loopwatch_machinepool_taints{machinepool="pool-a",effect="NoSchedule"} 2',
        'loopwatch_machinepool_taints{machinepool="pool-a",effect="NoExecute"} 1',
        'loopwatch_machinepool_taints{machinepool="pool-a",effect="PreferNoSchedule"} 0',
        'loopwatch_machinepool_taints{machinepool="pool-a",effect="Other"} 0',
        'loopwatch_machinepool_machines{machinepool="pool-a",state="Pending"} 1',
        'loopwatch_machinepool_machines{machinepool="pool-a",state="Running"} 1',
        'loopwatch_machinepool_machines{machinepool="pool-a",state="Shutdown"} 0',
        'loopwatch_machinepool_machines{machinepool="pool-a",state="Terminated"} 0',
        'loopwatch_machinepool_machines{machinepool="pool-a",state="Terminating"} 1',
        'loopwatch_machinepool_machines{machinepool="pool-a",state="Other"} 1',
        'loopwatch_machinepool_stranded_machines{machinepool="pool-a"} 3',
        'loopwatch_machinepool_oldest_pending_machine_age_seconds{machinepool="pool-a"} 2.5',
        "loopwatch_machines_on_missing_pool 0",
    ]


@pytest.mark.parametrize(
    ("conditions", "stranded"),
    [((ready_condition(),), 0), ((FALSE,), 2), ((UNKNOWN,), 2), (({"type": "Other", "status": "False"},), 0)],
    ids=["True", "False", "Unknown", "absent"],
)
def test_machines_are_stranded_where_ready_is_false_or_unknown(conditions: tuple[dict[str, Any], ...], stranded: int) -> None:
    here = SeenWithMachines()
    here.machines(raw_machine("one"), raw_machine("two", state="Pending"), raw_machine("three", **GOING))
    here.pools(offering("pool-a", *conditions))
    assert here.value("stranded_machines", **POOL) == stranded


def test_ready_that_turns_strands_and_frees_machines_without_an_event_of_theirs() -> None:
    here = SeenWithMachines()
    here.pools(offering())
    here.machines(raw_machine("one"))
    shown = [here.value("stranded_machines", **POOL)]
    for condition in (UNKNOWN, ready_condition(), FALSE):
        here.pool_event(offering("pool-a", condition))
        shown.append(here.value("stranded_machines", **POOL))
    assert shown == [0, 1, 0, 1]


def test_a_machine_placed_on_an_unready_pool_is_stranded_at_once() -> None:
    """What IronCore v0.5.0's scheduler does: it binds to pools that are Unknown."""
    here = SeenWithMachines()
    here.pools(offering("pool-a", UNKNOWN))
    here.machines(raw_machine("one", None, state="Pending"))
    assert here.value("stranded_machines", **POOL) == 0
    assert here.cluster("unbound_pending", machine_class="small") == 1
    here.machine_event(raw_machine("one", "pool-a", state="Pending"))
    assert here.value("stranded_machines", **POOL) == 1
    assert here.cluster("unbound_pending", machine_class="small") is None


def test_before_machines_were_listed_nothing_is_said_of_them() -> None:
    here = SeenWithMachines()
    here.pools(offering("pool-a", capacity={"class/machine.small": "3"}))
    assert here.lines(*OF_MACHINES) == []
    assert here.cluster("on_missing_pool") is None
    assert here.value("capacity", machine_class="small", **POOL) == 3
    here.machines()
    assert here.by_label("machines", "state") == dict.fromkeys(STATES, 0), "zeros included"
    assert here.value("stranded_machines", **POOL) == 0
    assert here.value("allocatable_computed", machine_class="small", **POOL) == 3
    assert here.lines("oldest_pending") == []
    assert here.cluster("on_missing_pool") == 0


def test_no_machine_misses_its_pool_before_the_pools_were_listed() -> None:
    here = SeenWithMachines()
    here.machines(raw_machine("one"))
    assert here.cluster("on_missing_pool") is None
    here.pools()
    assert here.cluster("on_missing_pool") == 1


def test_a_pool_that_comes_goes_and_comes_again_finds_its_machines() -> None:
    here = SeenWithMachines()
    here.pools()
    here.machines(raw_machine("one"), raw_machine("two", "pool-b"))
    assert here.cluster("on_missing_pool") == 2
    here.pool_event(offering())
    assert here.cluster("on_missing_pool") == 1
    assert here.by_label("machines", "state")["Running"] == 1
    here.pool_deleted("pool-a")
    assert here.cluster("on_missing_pool") == 2
    assert [line for line in here.lines("") if "pool-a" in line] == []
    here.machine_deleted("one")
    assert here.cluster("on_missing_pool") == 1
    here.pool_event(offering("pool-a", uid="uid-2"))
    assert here.by_label("machines", "state")["Running"] == 0


def test_a_pool_that_vanished_in_a_watch_gap_leaves_its_machines_without_one() -> None:
    here = SeenWithMachines()
    here.pools(offering(), offering("pool-b"))
    here.machines(raw_machine("one"))
    here.pools(offering("pool-b"))
    assert here.cluster("on_missing_pool") == 1


def test_a_pool_that_cannot_be_decoded_exists_all_the_same() -> None:
    here = SeenWithMachines()
    here.pools(broken=["pool-a"])
    here.machines(raw_machine("one"))
    assert here.cluster("on_missing_pool") == 0
    assert here.lines(*OF_MACHINES) == [], "whether it is ready is not known"
    here.pool_event(offering("pool-a", UNKNOWN))
    assert here.value("stranded_machines", **POOL) == 1


def test_a_machine_that_cannot_be_decoded_is_counted_nowhere() -> None:
    here = SeenWithMachines()
    here.pools(offering())
    here.machines(raw_machine("one"), raw_machine("two"))
    here.machines(raw_machine("one"), broken=["two"])
    assert here.by_label("machines", "state")["Running"] == 1


def test_an_orphaned_lease_is_no_pool() -> None:
    here = SeenWithMachines()
    here.pools()
    here.leases(lease("pool-a"))
    here.machines(raw_machine("one"))
    assert here.cluster("on_missing_pool") == 1


def test_the_oldest_pending_machine_ages_by_observation_and_hands_on_to_the_next() -> None:
    here = SeenWithMachines()
    here.pools(offering())
    here.machines(raw_machine("one", state="Pending", creationTimestamp="2020-01-01T00:00:00Z"))
    here.clock.step(10)
    here.machine_event(raw_machine("two", state=None))
    here.clock.step(5)
    assert here.value("oldest_pending_machine_age_seconds", **POOL) == 15
    here.machines(raw_machine("two", state=None), raw_machine("one", state="Pending"))
    assert here.value("oldest_pending_machine_age_seconds", **POOL) == 15, "a relist makes nothing younger"
    here.machine_event(raw_machine("one", state="Running"))
    assert here.value("oldest_pending_machine_age_seconds", **POOL) == 5
    here.machine_event(raw_machine("two", state="Pending", **GOING))
    assert here.value("oldest_pending_machine_age_seconds", **POOL) is None


def test_a_stale_copy_of_machines_is_not_shown_and_a_fresh_one_is_again() -> None:
    here = SeenWithMachines()
    here.pools(offering("pool-a", UNKNOWN, capacity={"class/machine.small": "3"}))
    here.machines(raw_machine("one"))
    before = here.lines("")
    here.placement.show_machines(fresh=False)
    assert here.lines(*OF_MACHINES) == []
    assert here.cluster("on_missing_pool") is None
    assert here.value("capacity", machine_class="small", **POOL) == 3
    here.machine_event(raw_machine("two"))
    assert here.lines(*OF_MACHINES) == []
    here.machine_deleted("two")
    here.placement.show_machines(fresh=True)
    assert here.lines("") == before
    here.placement.show_machines(fresh=False)
    here.machines(raw_machine("one"))
    assert here.lines("") == before, "a list is fresh by itself"


def test_without_a_watch_of_machines_a_pool_still_says_what_it_offers() -> None:
    here = SeenWithMachines(counts_machines=False)
    here.pools(offering("pool-a", UNKNOWN, capacity={"class/machine.small": "3"}))
    assert here.lines(*OF_MACHINES) == []
    assert here.cluster("on_missing_pool") is None
    assert here.lines("capacity", "maintenance") == [
        'capacity{machinepool="pool-a",machine_class="small"} 3',
        'maintenance{machinepool="pool-a"} 0',
    ]


@pytest.mark.parametrize(
    ("capacity", "machines", "computed"),
    [("3", 1, 2), ("3", 3, 0), ("3", 5, 0), ("500m", 0, 0.5), (2**63 - 1, 0, 2.0**63), ("1k", 2, 998)],
)
def test_what_is_left_is_the_capacity_less_every_machine_of_the_class(capacity: str | int, machines: int, computed: float) -> None:
    """IronCore v0.5.0 publishes capacity less one for any number of Machines."""
    here = SeenWithMachines()
    here.pools(offering("pool-a", capacity={"class/machine.small": capacity}, allocatable={"class/machine.small": "2"}))
    others = [raw_machine("elsewhere", "pool-b"), raw_machine("other class", machine_class="large")]
    here.machines(*(raw_machine(str(number)) for number in range(machines)), *others)
    assert here.value("allocatable_computed", machine_class="small", **POOL) == computed
    assert here.value("allocatable", machine_class="small", **POOL) == 2


@pytest.mark.parametrize("quantity", ["", "many", "1 000", "0x10", None, "-", "1e"])
def test_a_quantity_that_cannot_be_read_is_absent_and_costs_nothing_else(quantity: str | None) -> None:
    here = SeenWithMachines()
    here.machines()
    here.pools(
        offering("pool-a", capacity={"class/machine.bad": quantity, "class/machine.good": "1", "class/machine.": "7", "memory": "1Gi"})
    )
    assert here.by_label("capacity", "machine_class") == {"good": 1}
    assert here.by_label("allocatable_computed", "machine_class") == {"good": 1}
    assert here.value("silence_seconds", **POOL) == 0


def test_a_class_that_goes_takes_its_series_along() -> None:
    here = SeenWithMachines()
    here.machines()
    here.pools(offering("pool-a", capacity={"class/machine.small": "1", "class/machine.large": "1"}))
    here.pool_event(offering("pool-a", capacity={"class/machine.large": "1"}))
    assert here.by_label("capacity", "machine_class") == {"large": 1}
    assert here.by_label("allocatable_computed", "machine_class") == {"large": 1}


@pytest.mark.parametrize(
    ("key", "maintenance"),
    [("maintenance.ironcore.dev", 1), ("maintenance.ironcore.dev/machine", 0), ("maintenance", 0), ("", 0)],
)
def test_maintenance_is_this_one_taint_whatever_its_effect(key: str, maintenance: int) -> None:
    here = SeenWithMachines()
    here.pools(offering("pool-a", taints=[{"key": key, "effect": "BrandNew"}]))
    assert here.value("maintenance", **POOL) == maintenance
    assert here.by_label("taints", "effect") == {"NoSchedule": 0, "NoExecute": 0, "PreferNoSchedule": 0, "Other": 1}


def test_a_taint_that_comes_alone_shows_with_its_event() -> None:
    here = SeenWithMachines()
    here.pools(offering())
    assert here.value("maintenance", **POOL) == 0
    here.pool_event(offering("pool-a", taints=[{"key": "maintenance.ironcore.dev", "effect": "NoExecute"}]))
    assert here.value("maintenance", **POOL) == 1


def test_a_renewal_of_a_lease_makes_nothing_of_this_anew() -> None:
    """Heartbeats are the most frequent events by far: they must not pay for Machines."""
    here = SeenWithMachines()
    here.pools(offering("pool-a", capacity={"class/machine.small": "1"}))
    here.leases(lease())
    here.machines(raw_machine("one"))
    before = dict(here.store.facts(here.groups[2]))
    here.renew(lease(renew_time=renewal(2)))
    after = here.store.facts(here.groups[2])
    assert all(after[key] is facts for key, facts in before.items())


NAMES = st.sampled_from(["pool-a", "pool-b"])
STATUSES = st.sampled_from([ready_condition(), FALSE, UNKNOWN])
SEEN_MACHINES = st.builds(
    raw_machine,
    st.sampled_from(["one", "two", "three"]),
    NAMES | st.none(),
    state=st.sampled_from(["Pending", "Running", None]),
    machine_class=st.sampled_from(["small", "large"]),
)
EVENTS = st.one_of(
    st.tuples(st.just("pools"), st.dictionaries(NAMES, STATUSES)),
    st.tuples(st.just("pool_event"), NAMES, STATUSES),
    st.tuples(st.just("pool_deleted"), NAMES),
    st.tuples(st.just("machines"), st.lists(SEEN_MACHINES, unique_by=lambda each: each["metadata"]["name"])),
    st.tuples(st.just("machine_event"), SEEN_MACHINES),
    st.tuples(st.just("machine_deleted"), st.sampled_from(["one", "two", "three"])),
)


@given(st.lists(EVENTS, max_size=25))
@settings(max_examples=150)
def test_the_page_after_any_history_is_the_page_of_one_who_comes_new(history: list[tuple[Any, ...]]) -> None:
    """But for times: series equal objects, whatever happened on the way."""
    here, pools, machines = SeenWithMachines(), dict[str, Any](), dict[str, Any]()
    listed = {"pools": False, "machines": False}
    for kind, *what in history:
        if kind == "pools":
            pools = dict(what[0])
            here.pools(*(offering(name, condition) for name, condition in pools.items()))
        elif kind == "pool_event":
            pools[what[0]] = what[1]
            here.pool_event(offering(*what))
        elif kind == "pool_deleted":
            pools.pop(what[0], None)
            here.pool_deleted(what[0])
        elif kind == "machines":
            machines = {each["metadata"]["name"]: each for each in what[0]}
            here.machines(*what[0])
        elif kind == "machine_event":
            machines[what[0]["metadata"]["name"]] = what[0]
            here.machine_event(what[0])
        else:
            machines.pop(what[0], None)
            here.machine_deleted(what[0])
        listed = {name: known or name == kind for name, known in listed.items()}
    new = SeenWithMachines()
    if listed["pools"]:
        new.pools()
    for name, condition in pools.items():
        new.pool_event(offering(name, condition))
    if listed["machines"]:
        new.machines(*machines.values())
    assert _lasting(here) == _lasting(new)


def _lasting(here: SeenWithMachines) -> list[str]:
    page = here.store.render(here.observer.moment()).decode().splitlines()
    wanted = ("loopwatch_machines_", *(f"loopwatch_machinepool_{name}" for name in OF_MACHINES))
    return sorted(line for line in page if line.startswith(wanted))
