"""The table of rights as a whole: what it may hold, and what it must never."""

from __future__ import annotations

import pytest

from loopwatch.kube.resources import LEASE_NAMESPACE
from loopwatch.rbac.command import settings_as_texts
from loopwatch.rbac.model import Named, Right, Room, Scope, of_subject
from loopwatch.rbac.rights import RIGHTS
from loopwatch.settings.model import Command, MetricsAuth, Mode, RbacSettings, Subject
from loopwatch.settings.table import SETTINGS, settings_of
from tests.e2e import test_rights_controller, test_rights_sidecar

READING = {"get", "list", "watch"}
WRITTEN = {"leases", "machinepools/status", "events"}
REVIEWED = {"tokenreviews", "subjectaccessreviews"}
LANDED = {row.name for row in SETTINGS}


def keys(subject: Subject, **changed: object) -> list[str]:
    """The rights of a subject with these settings, without the subject's name."""
    settings = RbacSettings(process=subject, machine_pool_name="a", **changed)  # type: ignore[arg-type] # each test gives a field's own type
    return [right.key.removeprefix(f"{subject.value}: ") for right in of_subject(RIGHTS, subject, settings_as_texts(settings))]


def test_no_two_rows_are_the_same_right() -> None:
    assert len({right.key for right in RIGHTS}) == len(RIGHTS)


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: right.key)
def test_each_row_says_why_it_is_there_and_what_breaks_without_it(right: Right) -> None:
    assert right.why
    assert not right.why.endswith(".")
    assert right.without.endswith(".")
    assert "\n" not in right.why + right.without
    assert (right.resource is None) == bool(right.paths)


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: right.key)
def test_nobody_deletes_nobody_replaces_and_nothing_is_a_wildcard(right: Right) -> None:
    assert right.verb in READING | {"create", "patch"}
    assert "*" not in right.what
    if right.verb not in READING:
        assert right.what in WRITTEN | REVIEWED, "the spec of a MachinePool, and Machines, are nobody's to write"


@pytest.mark.parametrize("right", [right for right in RIGHTS if right.subject is Subject.READER], ids=lambda right: right.key)
def test_who_looks_changes_nothing(right: Right) -> None:
    assert right.verb in READING


@pytest.mark.parametrize(
    "right", [right for right in RIGHTS if right.subject is Subject.SIDECAR and right.room is Room.POOLS], ids=lambda right: right.key
)
def test_a_sidecar_may_touch_its_own_pool_alone_wherever_a_rule_can_say_so(right: Right) -> None:
    assert right.named is (Named.ANY if right.verb == "create" else Named.POOL)


@pytest.mark.parametrize("right", [right for right in RIGHTS if right.verb == "create"], ids=lambda right: right.key)
def test_a_name_never_stands_beside_create_since_no_api_server_would_honour_it(right: Right) -> None:
    assert right.named is Named.ANY


@pytest.mark.parametrize("right", [right for right in RIGHTS if right.what == "leases"], ids=lambda right: right.key)
def test_leases_are_never_granted_for_the_whole_cluster(right: Right) -> None:
    assert right.scope is not Scope.CLUSTER


def test_the_scope_of_leases_is_named_as_the_namespace_is() -> None:
    assert Scope.LEASES.value == f"namespace {LEASE_NAMESPACE}"
    assert Named.LEASE_NAMESPACE.value == LEASE_NAMESPACE


def test_each_condition_is_a_setting_of_the_process_that_loopwatch_rbac_takes_as_well() -> None:
    conditions = {when for right in RIGHTS for when in right.when if when.setting in LANDED}
    assert conditions
    taken = {row.name: row for row in settings_of(Command.RBAC)}
    for when in conditions:
        for value in when.values:
            taken[when.setting].parse(value)


def test_a_sidecar_that_only_observes_writes_nothing() -> None:
    assert keys(Subject.SIDECAR, mode=Mode.OBSERVE) == ["list machinepools", "watch machinepools", "list leases", "watch leases"]
    assert keys(Subject.SIDECAR, mode=Mode.REPORT) == keys(Subject.SIDECAR, mode=Mode.AUTO)


def test_a_controller_that_does_not_act_reads_and_nothing_else() -> None:
    assert keys(Subject.CONTROLLER, act=False, machines=False) == [
        "list machinepools",
        "watch machinepools",
        "list leases",
        "watch leases",
    ]


def test_without_election_or_machines_there_is_no_right_to_their_objects() -> None:
    everything = keys(Subject.CONTROLLER)
    assert [key for key in everything if key not in keys(Subject.CONTROLLER, leader_elect=False)] == [
        "election: get leases",
        "election: create leases",
        "election: patch leases",
    ]
    assert [key for key in everything if key not in keys(Subject.CONTROLLER, machines=False)] == ["list machines", "watch machines"]


@pytest.mark.parametrize("subject", Subject)
def test_reviews_and_metrics_are_granted_where_metrics_are_protected_alone(subject: Subject) -> None:
    more = {*keys(subject, metrics_auth=MetricsAuth.KUBERNETES)} - {*keys(subject)}
    reviews = {"listen address: create tokenreviews", "listen address: create subjectaccessreviews"}
    assert more == ({"listen address: get /metrics"} if subject is Subject.READER else reviews)


def test_each_right_of_a_process_has_a_claim_that_an_end_to_end_test_breaks_by_taking_it_away() -> None:
    claims = {*test_rights_sidecar.CLAIMS, *test_rights_controller.CLAIMS}
    assert claims == {right.key for right in RIGHTS if right.subject is not Subject.READER}, "a reader's rows are tried one by one"
