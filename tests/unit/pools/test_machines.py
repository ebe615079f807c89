"""Counting Machines: whatever comes in whatever order, the counts equal a recount of what is there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwatch.pools.derive.machines import STATES, UNBOUND, Key, MachineBook
from loopwatch.pools.machine import Machine, decode_machine
from tests.support.pools import raw_machine

POOLS = ("pool-a", "pool-b", UNBOUND)


def machine(
    pool: str = "pool-a", state: str = "Running", machine_class: str = "small", *, deleting: bool = False, uid: str = "u"
) -> Machine:
    """A Machine as the decoder leaves it."""
    waits = state == "Pending" and not deleting
    return Machine(pool, machine_class, state, deleting, uid if waits else "")


def decoded(raw: dict[str, Any]) -> Machine:
    return decode_machine(msgspec.json.encode(raw))


def key(name: str) -> Key:
    return ("default", name)


def test_a_machine_is_decoded_to_what_is_counted_and_no_more() -> None:
    assert decoded(raw_machine("m", "pool-a", state="Running")) == Machine("pool-a", "small", "Running", deleting=False)
    assert decoded(raw_machine("m", "pool-a", state="Pending")) == Machine("pool-a", "small", "Pending", deleting=False, uid="uid-of-m")
    going = decoded(raw_machine("m", "pool-a", state="Pending", deletionTimestamp="2026-05-01T12:00:00Z"))
    assert going == Machine("pool-a", "small", "Pending", deleting=True)


@pytest.mark.parametrize(
    "raw",
    [
        {"metadata": {"name": "m"}},
        {"metadata": {"name": "m"}, "spec": None, "status": None},
        {"metadata": {"name": "m"}, "spec": {"machinePoolRef": None, "machineClassRef": None}, "status": {"state": None}},
        {"metadata": {"name": "m"}, "spec": {"machinePoolRef": {}, "machineClassRef": {"name": None}}, "status": {"state": ""}},
    ],
    ids=["no spec", "null", "null within", "empty within"],
)
def test_a_machine_without_pool_class_and_state_is_unbound_and_pending(raw: dict[str, Any]) -> None:
    assert decoded(raw) == Machine("", "", "Pending", deleting=False)


@pytest.mark.parametrize(
    "raw", [{}, {"metadata": None}, {"metadata": {}, "spec": {"machinePoolRef": "pool-a"}}, {"metadata": {}, "status": []}]
)
def test_what_is_no_machine_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(raw)


def test_machines_share_the_names_of_their_pool_and_class() -> None:
    """100,000 Machines name a few pools and classes: a text each would be most of what they cost."""
    one, other = decoded(raw_machine("one")), decoded(raw_machine("other"))
    assert one.pool is other.pool
    assert one.machine_class is other.machine_class
    assert one.state is other.state


def test_each_state_is_counted_and_one_that_nobody_knows_is_other() -> None:
    book = MachineBook()
    for number, state in enumerate([*STATES[:-1], "Suspended", "BrandNew"]):
        book.see(key(str(number)), machine(state=state), 1.0)
    assert dict(zip(STATES, book.of("pool-a").states, strict=True)) == {**dict.fromkeys(STATES, 1), "Other": 2}


def test_a_machine_that_changes_moves_from_count_to_count() -> None:
    book = MachineBook()
    assert book.see(key("m"), machine(state="Pending"), 1.0) == ("pool-a",)
    assert book.see(key("m"), machine(state="Pending"), 2.0) == (), "a relist moves nothing"
    assert book.see(key("m"), machine(state="Running"), 3.0) == ("pool-a",)
    assert book.of("pool-a").states == (0, 1, 0, 0, 0, 0)
    assert book.see(key("m"), machine(state="Running", deleting=True), 4.0) == ("pool-a",)
    assert book.of("pool-a").staying == 0
    assert book.forget(key("m")) == ("pool-a",)
    assert book.forget(key("m")) == ()
    assert book.of("pool-a").states == (0,) * 6


def test_a_machine_that_moves_to_another_pool_is_counted_there_alone() -> None:
    book = MachineBook()
    book.see(key("m"), machine("pool-a"), 1.0)
    assert book.see(key("m"), machine("pool-b"), 2.0) == ("pool-a", "pool-b")
    assert (sum(book.of("pool-a").states), sum(book.of("pool-b").states)) == (0, 1)


def test_waiting_counts_from_the_moment_it_was_first_seen_on_this_pool() -> None:
    book = MachineBook()
    book.see(key("m"), machine(UNBOUND, "Pending"), 1.0)
    assert book.unbound_waiting == {"small": 1}
    book.see(key("m"), machine("pool-a", "Pending"), 5.0)
    assert book.unbound_waiting == {}
    assert book.of("pool-a").waiting_since == 5.0
    book.see(key("other"), machine("pool-a", "Pending"), 6.0)
    assert book.of("pool-a").waiting_since == 5.0
    book.see(key("m"), machine("pool-a", "Running"), 7.0)
    assert book.of("pool-a").waiting_since == 6.0


def test_a_machine_made_again_under_its_name_waits_anew() -> None:
    book = MachineBook()
    book.see(key("m"), machine(state="Pending", uid="1"), 1.0)
    book.see(key("m"), machine(state="Pending", uid="2"), 9.0)
    assert book.of("pool-a").waiting_since == 9.0


def test_a_machine_without_a_uid_ceases_to_wait_like_any_other() -> None:
    book = MachineBook()
    book.see(key("m"), machine(state="Pending", uid=""), 1.0)
    book.see(key("m"), machine(state="Running"), 2.0)
    assert book.of("pool-a").waiting_since is None


def test_a_machine_that_is_being_deleted_waits_for_nothing() -> None:
    book = MachineBook()
    book.see(key("m"), machine(state="Pending"), 1.0)
    book.see(key("m"), machine(state="Pending", deleting=True), 2.0)
    book.see(key("n"), machine(UNBOUND, "Pending", deleting=True), 2.0)
    assert book.of("pool-a").waiting_since is None
    assert book.unbound_waiting == {}
    assert book.of("pool-a").states[0] == 1, "its state is Pending all the same"


def test_machines_of_a_pool_that_does_not_exist_are_missing_theirs_until_it_is_made() -> None:
    book = MachineBook()
    for number in range(3):
        book.see(key(str(number)), machine("pool-a"), 1.0)
    book.see(key("unbound"), machine(UNBOUND), 1.0)
    assert book.on_missing_pool == 3
    book.pool_exists("pool-a")
    book.pool_exists("pool-a")
    assert book.on_missing_pool == 0
    book.pool_gone("pool-a")
    book.pool_gone("pool-a")
    book.forget(key("0"))
    assert book.on_missing_pool == 2


machines = st.builds(
    machine,
    st.sampled_from(POOLS),
    st.sampled_from([*STATES[:-1], "Unheard"]),
    st.sampled_from(["small", "large", ""]),
    deleting=st.booleans(),
    uid=st.sampled_from(["1", "2", ""]),
)
keys = st.sampled_from([key(name) for name in "abcdef"])
events = st.one_of(
    st.tuples(st.just("see"), keys, machines),
    st.tuples(st.just("forget"), keys),
    st.tuples(st.just("list"), st.dictionaries(keys, machines)),
    st.tuples(st.sampled_from(["pool_exists", "pool_gone"]), st.sampled_from(POOLS[:-1])),
)


@given(st.lists(events, max_size=40))
@settings(max_examples=300)
def test_any_sequence_of_lists_events_and_pools_equals_a_recount(sequence: list[tuple[Any, ...]]) -> None:
    book, there, pools, since = MachineBook(), dict[Key, Machine](), set[str](), dict[Key, float]()
    for at, (kind, *what) in enumerate(sequence):
        before, moved, shown = dict(there), set[str](), {pool: book.of(pool) for pool in POOLS}
        if kind == "see":
            there[what[0]] = what[1]
            moved.update(book.see(what[0], what[1], at))
        elif kind == "forget":
            there.pop(what[0], None)
            moved.update(book.forget(what[0]))
        elif kind == "list":
            there = dict(what[0])
            moved |= book.replace(there, at)
        else:
            getattr(book, kind)(*what)
            (pools.add if kind == "pool_exists" else pools.discard)(what[0])
        _keep_since(since, before, there, at)
        _recount(book, there, pools, since)
        assert {pool for pool in POOLS if book.of(pool) != shown[pool]} <= moved, "whoever is told redraws those that moved, no others"


def _keep_since(since: dict[Key, float], before: dict[Key, Machine], after: dict[Key, Machine], at: float) -> None:
    """Since when each Machine waits where it is: a Machine that was somebody or somewhere else waits anew."""
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if new is None or not new.waits:
            since.pop(name, None)
        elif old is None or not old.waits or (old.pool, old.uid, old.machine_class) != (new.pool, new.uid, new.machine_class):
            since[name] = at


def _recount(book: MachineBook, there: dict[Key, Machine], pools: set[str], since: dict[Key, float]) -> None:
    for pool in POOLS[:-1]:
        mine = {name: each for name, each in there.items() if each.pool == pool}
        counted = book.of(pool)
        states = Counter(each.state if each.state in STATES else "Other" for each in mine.values())
        assert counted.states == tuple(states[state] for state in STATES)
        assert counted.classes == Counter(each.machine_class for each in mine.values())
        assert counted.staying == sum(not each.deleting for each in mine.values())
        assert counted.waiting_since == min((since[name] for name, each in mine.items() if each.waits), default=None)
    assert book.on_missing_pool == sum(each.pool != UNBOUND and each.pool not in pools for each in there.values())
    assert book.unbound_waiting == Counter(each.machine_class for each in there.values() if each.pool == UNBOUND and each.waits)
