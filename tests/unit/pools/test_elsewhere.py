"""Another lifecycle controller at work: told from the name on a write of Unknown, and from nothing less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from loopwatch.pools.act.mark import FIELD_MANAGER
from loopwatch.pools.model import MachinePool, UnknownMachinePool, decode_machine_pool
from tests.support.observed import Seen
from tests.support.pools import raw_pool, ready_condition

UNKNOWN = ready_condition("Unknown", "MachinePoolStatusUnknown")
UPSTREAM = "ironcore-controller-manager"


def written_by(manager: object, *conditions: dict[str, Any], also: Sequence[object] = (), **more: Any) -> MachinePool:
    """A pool whose conditions list `manager` wrote last; the poollet owns the rest of the status."""
    raw = raw_pool("pool-a", *(conditions or (UNKNOWN,)), **more)
    raw["metadata"]["managedFields"] = [
        {"manager": "machinepoollet", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {".": {}, "f:state": {}}}},
        {"manager": manager, "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {"f:conditions": {}}}},
        {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:providerID": {}}}},
        *also,
    ]
    return decode_machine_pool(msgspec.json.encode(raw))


def elsewhere(here: Seen) -> float | None:
    return here.value("lifecycle_elsewhere")


def seen(*first: MachinePool) -> Seen:
    here = Seen()
    here.pools(*(first or (written_by("machinepoollet", ready_condition()),)))
    return here


def test_another_managers_unknown_shows_from_its_write_until_this_process_ends() -> None:
    here = seen()
    assert elsewhere(here) == 0
    here.pool_event(written_by(UPSTREAM))
    assert elsewhere(here) == 1
    here.pool_event(written_by("machinepoollet", ready_condition()))
    here.pool_deleted("pool-a")
    assert elsewhere(here) == 1
    assert elsewhere(Seen()) == 0


def test_our_own_unknown_is_not_elsewhere() -> None:
    here = seen()
    here.pool_event(written_by(FIELD_MANAGER))
    assert elsewhere(here) == 0


@pytest.mark.parametrize("condition", [ready_condition("False"), ready_condition("Unknown", "Maintenance"), ready_condition("True")])
def test_what_is_no_lifecycles_unknown_is_not_elsewhere(condition: dict[str, Any]) -> None:
    here = seen()
    here.pool_event(written_by(UPSTREAM, condition))
    assert elsewhere(here) == 0


def test_a_pool_that_was_unknown_before_says_nothing_of_who_marked_it() -> None:
    """Whoever adds a condition of its own to the list owns all of it."""
    here = seen(written_by(FIELD_MANAGER))
    here.pool_event(written_by("cleaner", UNKNOWN, {"type": "Clean", "status": "True"}))
    assert elsewhere(here) == 0
    assert elsewhere(seen(written_by(UPSTREAM))) == 0, "at first sight nobody knows whose Unknown it was"


def test_a_write_that_fell_into_a_watch_gap_is_seen_in_the_next_list() -> None:
    here = seen()
    here.pools(written_by(UPSTREAM))
    assert elsewhere(here) == 1


def test_another_pool_of_the_name_was_not_turned_to_unknown() -> None:
    here = seen()
    here.pools(written_by(UPSTREAM, uid="uid-2"))
    assert elsewhere(here) == 0


@pytest.mark.parametrize(
    "managed_fields",
    [
        None,
        [],
        [{}],
        [{"manager": UPSTREAM}],
        [{"manager": "", "fieldsV1": {"f:status": {"f:conditions": {}}}}],
        "broken",
        [{"manager": 1}],
    ],
    ids=["null", "none", "empty", "owns nothing", "nameless", "no list", "no text"],
)
def test_managed_fields_that_say_nothing_or_cannot_be_read_cost_nothing_else(managed_fields: object) -> None:
    raw = raw_pool("pool-a", UNKNOWN)
    raw["metadata"]["managedFields"] = managed_fields
    here = seen()
    here.pool_event(decode_machine_pool(msgspec.json.encode(raw)))
    assert elsewhere(here) == 0
    assert here.value("ready", machinepool="pool-a", status="unknown") == 1


def test_managed_fields_are_read_for_pools_that_a_lifecycle_marked_alone() -> None:
    assert not isinstance(written_by(UPSTREAM, ready_condition()), UnknownMachinePool)
    assert isinstance(written_by(UPSTREAM), UnknownMachinePool)
