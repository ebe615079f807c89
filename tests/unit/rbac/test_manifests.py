"""What `loopwatch rbac` prints: sound objects, and YAML that no parser takes for anything else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.rbac.command import render
from loopwatch.rbac.manifests import manifests
from loopwatch.rbac.model import Named, Right, Room, Scope
from loopwatch.rbac.names import Names, NamesError
from loopwatch.rbac.rights import RIGHTS
from loopwatch.rbac.text import to_yaml
from loopwatch.settings.kinds import DNS_SUBDOMAIN
from loopwatch.settings.model import MetricsAuth, RbacSettings, Subject

NAMES = Names(namespace="ops", pool="pool-a")
ANY_NAME = st.from_regex(DNS_SUBDOMAIN, fullmatch=True).filter(lambda name: len(name) <= 200)


def printed(process: Subject | None = None, **given_: Any) -> list[dict[str, Any]]:
    """The documents that are printed."""
    return list(yaml.safe_load_all(render(RbacSettings(process=process, machine_pool_name="pool-a", namespace="ops", **given_))))


def named(documents: list[dict[str, Any]]) -> list[str]:
    """Each document as `Kind namespace/name`."""
    return [f"{each['kind']} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}" for each in documents]


def granted(documents: list[dict[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """Each namespace with a verb, what it is granted on, and the name of the one object, where there is one."""
    return [
        (
            document["metadata"].get("namespace", ""),
            (verb, (rule.get("resources") or rule["nonResourceURLs"])[0], *rule.get("resourceNames", ())),
        )
        for document in documents
        for rule in document.get("rules", ())
        for verb in rule["verbs"]
    ]


def test_a_sidecar_gets_an_account_and_roles_that_are_called_after_its_pool() -> None:
    assert named(printed(Subject.SIDECAR)) == [
        "ServiceAccount ops/loopwatch-sidecar-pool-a",
        "ClusterRole /loopwatch-sidecar-pool-a",
        "ClusterRoleBinding /loopwatch-sidecar-pool-a",
        "Role ironcore-machinepool-lease/loopwatch-sidecar-pool-a",
        "RoleBinding ironcore-machinepool-lease/loopwatch-sidecar-pool-a",
    ]


def test_a_controller_gets_a_role_in_each_namespace_that_it_works_in() -> None:
    roles = [line for line in named(printed(Subject.CONTROLLER, name_prefix="x")) if line.startswith("Role ")]
    assert roles == ["Role ironcore-machinepool-lease/x-controller", "Role ops/x-controller", "Role default/x-controller"]


def test_the_rules_of_a_sidecar_name_its_pool_wherever_they_can() -> None:
    _, cluster, _, leases, _ = printed(Subject.SIDECAR)
    ironcore, coordination = ["compute.ironcore.dev"], ["coordination.k8s.io"]
    assert cluster["rules"] == [
        {"apiGroups": ironcore, "resources": ["machinepools"], "resourceNames": ["pool-a"], "verbs": ["list", "watch", "get"]},
        {"apiGroups": ironcore, "resources": ["machinepools/status"], "resourceNames": ["pool-a"], "verbs": ["patch"]},
    ]
    assert leases["rules"] == [
        {"apiGroups": coordination, "resources": ["leases"], "resourceNames": ["pool-a"], "verbs": ["list", "watch", "get", "patch"]},
        {"apiGroups": coordination, "resources": ["leases"], "verbs": ["create"]},
    ]


def test_paths_that_are_no_resource_are_granted_as_such() -> None:
    cluster = printed(Subject.READER, metrics_auth=MetricsAuth.KUBERNETES)[1]
    assert cluster["rules"][-1] == {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


def test_each_binding_binds_the_role_of_its_own_name_to_the_account() -> None:
    for documents in (printed(), printed(service_account="shared")):
        roles = {f"{each['kind']} {each['metadata'].get('namespace')}": each for each in documents}
        for binding in [each for each in documents if each["kind"].endswith("Binding")]:
            reference = binding["roleRef"]
            assert reference["apiGroup"] == "rbac.authorization.k8s.io"
            assert f"{reference['kind']} {binding['metadata'].get('namespace')}" in roles
            assert reference["name"] == binding["metadata"]["name"]
            (subject,) = binding["subjects"]
            assert f"ServiceAccount ops/{subject['name']}" in named(documents)
            assert subject["namespace"] == "ops"


def test_a_shared_account_is_printed_once() -> None:
    assert named(printed(service_account="shared")).count("ServiceAccount ops/shared") == 1


@pytest.mark.parametrize("namespace", ["default", "ironcore-machinepool-lease"])
def test_two_scopes_in_one_namespace_are_one_role_since_the_second_would_replace_the_first(namespace: str) -> None:
    documents = list(yaml.safe_load_all(render(RbacSettings(process=Subject.CONTROLLER, namespace=namespace))))
    assert len(set(named(documents))) == len(documents)
    roles = [each for each in documents if each["kind"] == "Role" and each["metadata"]["namespace"] == namespace]
    assert len(roles) == 1
    assert sorted(what for _, what in granted(documents)) == sorted(what for _, what in granted(printed(Subject.CONTROLLER)))


def test_the_election_lease_is_where_and_what_the_settings_say() -> None:
    documents = printed(Subject.CONTROLLER, leader_elect_resource_name="lease-x", leader_elect_resource_namespace="elsewhere")
    role = next(each for each in documents if each["metadata"].get("namespace") == "elsewhere")
    assert role["rules"][0]["resourceNames"] == ["lease-x"]


@pytest.mark.parametrize("process", [Subject.SIDECAR, None])
def test_without_a_pool_a_sidecar_is_given_nothing_rather_than_every_pool(process: Subject | None) -> None:
    with pytest.raises(NamesError, match="--machine-pool-name is required for a sidecar's rights"):
        render(RbacSettings(process=process))
    assert render(RbacSettings(process=Subject.CONTROLLER))


def test_an_account_whose_name_would_be_too_long_is_refused_with_the_flag_that_helps() -> None:
    with pytest.raises(NamesError, match="give a shorter one with --service-account"):
        render(RbacSettings(process=Subject.SIDECAR, machine_pool_name="a" * 253))
    assert render(RbacSettings(process=Subject.SIDECAR, machine_pool_name="a" * 253, service_account="short"))


def test_the_same_settings_print_the_same_text() -> None:
    assert render(RbacSettings(machine_pool_name="a")) == render(RbacSettings(machine_pool_name="a"))


def test_verbs_of_one_resource_stand_in_one_rule_in_the_tables_order() -> None:
    def right(verb: str, named_: Named) -> Right:
        return Right(
            subject=Subject.READER, room=Room.POOLS, verb=verb, paths=("/x",), scope=Scope.CLUSTER, named=named_, why="w", without="x."
        )

    documents = manifests([right("b", Named.ANY), right("a", Named.ANY)], Subject.READER, NAMES)
    assert documents[1]["rules"] == [{"nonResourceURLs": ["/x"], "verbs": ["b", "a"]}]


@pytest.mark.parametrize(
    "name", ["1e3", "0x1f", "0o7", "123", "1.5", "1_0", "y", "n", "on", "off", "yes", "no", "true", "null", "0b1", "1-2"]
)
def test_a_name_that_another_parser_would_take_for_a_number_or_a_boolean_is_quoted(name: str) -> None:
    text = to_yaml([{"name": name}])
    assert text in {f'---\nname: "{name}"\n', f"---\nname: '{name}'\n"}


@given(ANY_NAME)
def test_any_name_comes_back_as_it_was_and_plain_only_where_it_begins_with_a_letter(name: str) -> None:
    text = to_yaml([{"resourceNames": [name]}])
    assert yaml.safe_load(text) == {"resourceNames": [name]}
    assert '"' in text or "'" in text or (name[0].isalpha() and len(name) > 1)


@given(st.sets(st.sampled_from([right.key for right in RIGHTS])))
def test_any_part_of_the_table_becomes_roles_that_grant_exactly_that_part(chosen: set[str]) -> None:
    for subject in Subject:
        held = [right for right in RIGHTS if right.key in chosen and right.subject is subject]
        wanted = [
            (NAMES.of_namespace(right.scope), (right.verb, right.what, *filter(None, [NAMES.of_object(right.named)]))) for right in held
        ]
        assert sorted(granted(manifests(held, subject, NAMES))) == sorted(wanted)
