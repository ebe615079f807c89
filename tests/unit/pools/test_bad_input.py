"""Objects as no sane writer leaves them: each is shown as far as it goes, and decides nothing that it should not."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from loopwatch.kube.resources import MACHINE_POOLS, ObjectKey
from loopwatch.pools.act.mark import Marker
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.transport import SandboxTransport
from tests.support.observed import Seen, SeenWithMachines
from tests.support.pools import lease, pool, raw_machine, raw_pool, ready_condition, renewal
from tests.support.stepped import SteppedClock, stepped

LONGEST_NAME = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
FALSE = ready_condition("False", "RuntimeUnreachable")


def test_a_name_of_253_characters_is_a_label_like_any_other() -> None:
    assert len(LONGEST_NAME) == 253
    here = SeenWithMachines()
    here.answer()
    here.pools(pool(LONGEST_NAME, FALSE))
    here.leases(lease(LONGEST_NAME))
    here.machines(raw_machine("one", LONGEST_NAME))
    here.renew(lease(LONGEST_NAME, renew_time=renewal(1)))
    labels = {"machinepool": LONGEST_NAME}
    assert here.value("silence_seconds", **labels) == 0
    assert here.value("unready_but_renewed", **labels) == 1
    assert here.value("stranded_machines", **labels) == 1
    page = here.store.render(here.observer.moment()).decode()
    named = [sample for family in text_string_to_metric_families(page) for sample in family.samples if "machinepool" in sample.labels]
    assert {sample.labels["machinepool"] for sample in named} == {LONGEST_NAME}


def test_of_two_ready_entries_the_first_counts_everywhere() -> None:
    here = SeenWithMachines()
    here.pools(pool("pool-a", FALSE, ready_condition("True")))
    here.leases()
    here.machines(raw_machine("one"))
    assert here.value("ready", machinepool="pool-a", status="false") == 1
    assert here.value("ready_reason", machinepool="pool-a", reason="RuntimeUnreachable") == 1
    assert here.value("ready_without_lease", machinepool="pool-a") == 0
    assert here.value("stranded_machines", machinepool="pool-a") == 1
    before = here.value("silence_seconds", machinepool="pool-a")
    here.clock.step(1)
    here.pool_event(pool("pool-a", FALSE, ready_condition("False")))
    assert here.value("ready_transitions_total", machinepool="pool-a", to="false") == 0, "the second one changed, which nobody reads"
    assert before == 0


@stepped
async def test_of_two_ready_entries_a_mark_leaves_one_and_keeps_the_others() -> None:
    clock = SteppedClock()
    api = ApiServer(clock)
    raw = raw_pool("pool-a", {"type": "First", "status": "True"}, FALSE, {"type": "Between", "status": "True"}, ready_condition("True"))
    api.put_object(MACHINE_POOLS, raw | {"metadata": {"name": "pool-a"}})
    there = api.object(MACHINE_POOLS, ObjectKey("", "pool-a"))
    await Marker(SandboxTransport(api, client="marker"), clock, timeout_seconds=1).mark(msgspec.json.encode(there))
    marked = api.object(MACHINE_POOLS, ObjectKey("", "pool-a"))
    assert marked is not None
    assert [(entry["type"], entry["status"]) for entry in marked["status"]["conditions"]] == [
        ("First", "True"),
        ("Ready", "Unknown"),
        ("Between", "True"),
    ]


@pytest.mark.parametrize("renew_time", ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999999Z", "2026-02-28T20:11:41.636526400Z"])
def test_a_renew_time_of_the_far_future_or_with_nine_digits_is_a_heartbeat_once(renew_time: str) -> None:
    here = Seen()
    here.answer()
    here.pools(pool("pool-a", ready_condition()))
    here.leases(lease())
    here.passes(20)
    here.renew(lease(renew_time=renew_time))
    assert here.value("silence_seconds", machinepool="pool-a") == 0
    here.passes(20)
    here.renew(lease(renew_time=renew_time))
    assert here.value("silence_seconds", machinepool="pool-a") == 20
    here.passes(40)
    assert here.value("ready_without_lease", machinepool="pool-a") == 1, "the future keeps nobody alive"


def test_a_negative_lease_duration_is_shown_and_gives_nobody_less_time() -> None:
    here = Seen()
    here.answer()
    here.pools(pool("pool-a", ready_condition()))
    here.leases(lease(duration=-40))
    assert here.value("lease_duration_seconds", machinepool="pool-a") == -40
    assert here.value("lifecycle_grace_too_short") == 0
    assert here.value("ready_without_lease", machinepool="pool-a") == 0
    here.passes(45)
    here.clock.step(100)
    here.answer()
    assert here.value("silence_seconds", machinepool="pool-a") == 10, "a gap leaves it upstream's 40 s"


def test_holders_that_take_turns_under_a_negative_duration_are_a_conflict_all_the_same() -> None:
    here = Seen()
    here.pools(pool("pool-a", ready_condition()))
    here.leases(lease(duration=-40, holder="one"))
    for number, holder in enumerate(("other", "one"), start=1):
        here.renew(lease(duration=-40, holder=holder, renew_time=renewal(number)))
    assert here.value("lease_holder_conflict", machinepool="pool-a") == 1


def test_a_machine_without_a_pool_is_nobodys_and_shown_as_unbound() -> None:
    here = SeenWithMachines()
    here.pools(pool("pool-a", FALSE))
    here.machines(raw_machine("one", None, state="Pending"), raw_machine("two", None, state="Running"))
    assert here.cluster("unbound_pending", machine_class="small") == 1
    assert here.cluster("on_missing_pool") == 0
    assert here.value("stranded_machines", machinepool="pool-a") == 0
    assert set(here.by_label("machines", "state").values()) == {0}
