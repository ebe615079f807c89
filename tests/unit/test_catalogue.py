"""Every table of metric families at once: names, labels and units as documented, and none left out of the catalogue."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import pytest

import loopwatch
from loopwatch.catalogue import GROUPS, groups
from loopwatch.metrics.family import Authority, Component, Family, Group, Kind
from loopwatch.metrics.store import Store

ROWS = [(group, family) for group in GROUPS for family in group.families]
EACH_ROW = pytest.mark.parametrize(("group", "family"), ROWS, ids=[family.name for _, family in ROWS])
OWN_ROWS = [row for row in ROWS if row[1].name.startswith("loopwatch_")]

C, S = Component.CONTROLLER, Component.SIDECAR
POOL = "loopwatch_machinepool"
# The names that operators were promised, with all their labels and who exposes them.
PROMISED: dict[str, tuple[tuple[str, ...], tuple[Component, ...]]] = {
    f"{POOL}_info": (("machinepool", "provider_id"), (C, S)),
    f"{POOL}_ready": (("machinepool", "status"), (C, S)),
    f"{POOL}_ready_reason": (("machinepool", "reason"), (C, S)),
    f"{POOL}_ready_transitions_total": (("machinepool", "to"), (C, S)),
    f"{POOL}_ready_age_seconds": (("machinepool",), (C, S)),
    f"{POOL}_generation": (("machinepool",), (C, S)),
    f"{POOL}_ready_observed_generation": (("machinepool",), (C, S)),
    f"{POOL}_lease_age_seconds": (("machinepool",), (C, S)),
    f"{POOL}_lease_duration_seconds": (("machinepool",), (C, S)),
    f"{POOL}_lease_holder_changes_total": (("machinepool",), (C, S)),
    f"{POOL}_lease_holder_conflict": (("machinepool",), (C, S)),
    f"{POOL}_lease_orphaned": (("machinepool",), (C, S)),
    f"{POOL}_silence_seconds": (("machinepool",), (C,)),
    f"{POOL}_lifecycle_grace_period_seconds": ((), (C,)),
    f"{POOL}_lifecycle_blind_seconds": (("resource",), (C,)),
    f"{POOL}_lifecycle_grace_too_short": ((), (C,)),
    f"{POOL}_lifecycle_marks_total": (("machinepool",), (C,)),
    f"{POOL}_lifecycle_elsewhere": ((), (C,)),
    f"{POOL}_lifecycle_mass_silence": ((), (C,)),
    f"{POOL}_lifecycle_mark_queue": ((), (C,)),
    "loopwatch_events_total": (("result",), (C,)),
    f"{POOL}_ready_without_lease": (("machinepool",), (C,)),
    f"{POOL}_unready_but_renewed": (("machinepool",), (C,)),
    f"{POOL}_never_reported": (("machinepool",), (C, S)),
    f"{POOL}_late_heartbeats_total": (("machinepool",), (C,)),
    f"{POOL}_machines": (("machinepool", "state"), (C,)),
    f"{POOL}_stranded_machines": (("machinepool",), (C,)),
    f"{POOL}_oldest_pending_machine_age_seconds": (("machinepool",), (C,)),
    f"{POOL}_capacity": (("machinepool", "machine_class"), (C, S)),
    f"{POOL}_allocatable": (("machinepool", "machine_class"), (C, S)),
    f"{POOL}_allocatable_computed": (("machinepool", "machine_class"), (C,)),
    f"{POOL}_maintenance": (("machinepool",), (C, S)),
    f"{POOL}_taints": (("machinepool", "effect"), (C, S)),
    "loopwatch_machines_on_missing_pool": ((), (C,)),
    "loopwatch_machines_unbound_pending": (("machine_class",), (C,)),
    f"{POOL}_state": (("machinepool", "state"), (C, S)),
    "loopwatch_heartbeat_state": (("machinepool", "state"), (S,)),
    "loopwatch_heartbeat_lease_writes_total": (("machinepool", "result"), (S,)),
    "loopwatch_heartbeat_lease_write_duration_seconds": (("machinepool",), (S,)),
    "loopwatch_heartbeat_ready_writes_total": (("machinepool", "result"), (S,)),
    "loopwatch_heartbeat_ready_unpublished": (("machinepool",), (S,)),
    "loopwatch_heartbeat_probes_total": (("machinepool", "code"), (S,)),
    "loopwatch_heartbeat_probe_duration_seconds": (("machinepool",), (S,)),
    "loopwatch_heartbeat_probe_success": (("machinepool",), (S,)),
    "loopwatch_heartbeat_machinepoollet_up": (("machinepool",), (S,)),
    "loopwatch_runtime_machine_class_quantity": (("machinepool", "machine_class"), (S,)),
    "loopwatch_leader_election_leading": ((), (C,)),
    "loopwatch_leader_election_transitions_total": ((), (C,)),
    "loopwatch_build_info": (("version", "component"), (C, S)),
    "loopwatch_reflector_synced": (("resource",), (C, S)),
    "loopwatch_reflector_objects": (("resource",), (C, S)),
    "loopwatch_reflector_lists_total": (("resource",), (C, S)),
    "loopwatch_reflector_watches_total": (("resource",), (C, S)),
    "loopwatch_reflector_errors_total": (("resource", "kind"), (C, S)),
    "loopwatch_reflector_undecodable_objects": (("resource",), (C, S)),
    "loopwatch_reflector_last_contact_age_seconds": (("resource",), (C, S)),
    "loopwatch_event_loop_lag_seconds": ((), (C, S)),
    "process_resident_memory_bytes": ((), (C, S)),
    "process_cpu_seconds_total": ((), (C, S)),
    "process_open_fds": ((), (C, S)),
    "python_gc_collections_total": (("generation",), (C, S)),
}


def labels(group: Group[Any], family: Family[Any]) -> tuple[str, ...]:
    return tuple(label.name for label in (*group.labels, *family.labels))


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_family_is_there_with_exactly_its_labels_and_exposed_by_those_who_should(name: str) -> None:
    found = [(labels(group, family), family.exposed_by) for group, family in ROWS if family.name == name]
    assert [(names, set(components)) for names, components in found] == [(PROMISED[name][0], set(PROMISED[name][1]))]


def test_no_family_of_ours_is_there_that_was_not_promised() -> None:
    assert {family.name for _, family in OWN_ROWS} <= PROMISED.keys()


def test_names_are_unique() -> None:
    names = [family.name for _, family in ROWS]
    assert len(set(names)) == len(names)


@EACH_ROW
def test_only_counters_and_histograms_end_as_such(group: Group[Any], family: Family[Any]) -> None:
    assert group.families
    ending = family.name.rpartition("_")[2]
    assert (ending == "total") == (family.kind is Kind.COUNTER)
    assert ending not in {"count", "sum", "bucket", "created"}


@EACH_ROW
def test_a_unit_stands_at_the_end_of_a_name(group: Group[Any], family: Family[Any]) -> None:
    assert group.families
    stem = family.name.removesuffix("_total")
    assert not re.search(r"_(seconds|bytes|ratio)_", stem)
    assert not re.search(r"_(ms|milliseconds|minutes|hours|percent|kb|mb|mib)(_|$)", stem)
    if family.help.startswith("Seconds") or family.kind is Kind.HISTOGRAM:
        assert family.unit == "seconds"


@EACH_ROW
def test_every_label_has_a_bound_and_none_holds_free_text(group: Group[Any], family: Family[Any]) -> None:
    for label in (*group.labels, *family.labels):
        assert label.bound, label.name
        assert label.name not in {"message", "uid", "pod", "holder", "error", "job", "instance", "cluster"}


@EACH_ROW
def test_states_and_labels_agree(group: Group[Any], family: Family[Any]) -> None:
    assert group.families
    if family.kind is Kind.STATE_SET:
        assert family.labels[0].bound == ", ".join(family.states)
    if family.kind is Kind.INFO:
        assert family.name.endswith("_info")


@pytest.mark.parametrize(("group", "family"), OWN_ROWS, ids=[family.name for _, family in OWN_ROWS])
def test_help_is_a_sentence(group: Group[Any], family: Family[Any]) -> None:
    assert group.families
    assert family.help.endswith(".")
    assert family.exposed_by
    assert len(family.help) <= 140


def test_what_only_the_leader_knows_is_read_from_the_leader() -> None:
    by_name = {family.name: family.authority for _, family in ROWS}
    assert by_name[f"{POOL}_lease_age_seconds"] is Authority.FRESHEST
    assert by_name[f"{POOL}_silence_seconds"] is Authority.LEADER
    assert by_name[f"{POOL}_lifecycle_blind_seconds"] is Authority.LEADER
    assert by_name[f"{POOL}_ready"] is Authority.LEADER
    assert by_name[f"{POOL}_ready_transitions_total"] is Authority.COUNTER
    assert by_name[f"{POOL}_lease_holder_changes_total"] is Authority.COUNTER
    assert by_name[f"{POOL}_lifecycle_marks_total"] is Authority.OWN
    assert by_name[f"{POOL}_late_heartbeats_total"] is Authority.COUNTER
    assert by_name[f"{POOL}_stranded_machines"] is Authority.LEADER
    assert by_name["loopwatch_machines_on_missing_pool"] is Authority.LEADER
    assert by_name["loopwatch_machines_unbound_pending"] is Authority.LEADER
    assert {by_name[name] for name in by_name if not name.startswith((POOL, "loopwatch_machines_"))} == {Authority.OWN}


def test_the_catalogue_leaves_no_table_out() -> None:
    declared: dict[int, str] = {}
    for module in pkgutil.walk_packages(loopwatch.__path__, "loopwatch."):
        if "families" in module.name or module.name.startswith("loopwatch.metrics."):
            contents = vars(importlib.import_module(module.name))
            declared |= {id(thing): f"{module.name}.{name}" for name, thing in contents.items() if isinstance(thing, Group)}
    assert declared.keys() == {id(group) for group in GROUPS}, declared.values()


@pytest.mark.parametrize("component", list(Component))
def test_a_component_has_exactly_its_families(component: Component) -> None:
    names = {family.name for group in groups(component) for family in group.families}
    assert names == {family.name for _, family in ROWS if component in family.exposed_by}
    Store(*groups(component))
