"""Each process with exactly the rights that `loopwatch rbac` prints, a real token in a file, and RBAC on: its main claims hold.

And it uses all of them: a right that no request asked for would be one too many. Times are scaled: heartbeat 1 s, grace 5 s.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from loopwatch.rbac.command import names_of, render
from loopwatch.rbac.model import Right, Scope
from loopwatch.settings.model import RbacSettings, Subject
from tests.e2e.bereft import create_machine, create_pool, create_still_lease, rights_of, write_ready
from tests.e2e.conftest import StartLoopwatch
from tests.e2e.identities import NAMESPACE, Identity, create, issue
from tests.e2e.programs import Loopwatch
from tests.e2e.test_check import findings
from tests.e2e.watching import LEASES, MACHINES, POOLS
from tests.e2e.world import POOL, World, until
from tests.real_servers.apiserver import LEASE_NAMESPACE, ApiServer

CLAIM_SECONDS = 30.0
GRACE = "--machine-pool-lifecycle-grace-period=5s"
ELECTION = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
    f"--leader-elect-resource-namespace={NAMESPACE}",
)
HEARTBEAT = ("--heartbeat-interval=1s", "--heartbeat-lease-duration=4s", "--heartbeat-status-timeout=500ms")
Used = set[tuple[str, str, str]]
"""Verb, resource and namespace of requests."""


def used(identity: Identity, since: int) -> Used:
    """What the API server was asked by this identity; none of it may have been refused."""
    requests = [each for each in identity.server.audit_log.requests(since=since) if each.user == identity.user]
    assert [each for each in requests if each.code == 403] == [], "a right is missing in the table"
    return {(each.verb, each.resource, each.namespace) for each in requests}


def granted(identity: Identity, rights: Iterable[Right]) -> Used:
    """What the table grants it."""
    names = names_of(identity.settings)
    return {(right.verb, right.what, names.of_namespace(right.scope)) for right in rights if right.resource is not None}


def scraped(process: Loopwatch, token: str) -> int:
    """The status of a scrape; 0 where nothing answers yet."""
    try:
        return process.get("/metrics", token)[0]
    except OSError:
        return 0


@pytest.mark.timeout(120)
def test_a_sidecar_needs_its_rights_uses_each_and_asks_for_no_more(world: World, tmp_path: Path) -> None:
    since = world.server.audit_log.position()
    create_still_lease(world.server.client, POOL)
    identity = create(world.server, tmp_path, Subject.SIDECAR, machine_pool_name=POOL, metrics_auth="kubernetes")
    reader = create(world.server, tmp_path, Subject.READER, metrics_auth="kubernetes")
    sidecar = world.start(
        "sidecar",
        *HEARTBEAT,
        f"--machine-pool-name={POOL}",
        "--metrics-auth=kubernetes",
        f"--machine-runtime-endpoint=unix:{world.runtime.socket}",
        f"--machinepoollet-healthz={world.machinepoollet.healthz}",
        kubeconfig=identity.kubeconfig,
    )
    world.becomes("True", CLAIM_SECONDS)
    taken = len(world.renewals())
    until("renewed", lambda: len(world.renewals()) > taken, CLAIM_SECONDS)
    world.server.client.delete(f"{LEASES}/{POOL}")
    world.leases.wait_for("the Lease is gone", lambda event: event.type == "DELETED", CLAIM_SECONDS)
    gone = world.leases.events[-1].at
    world.leases.wait_for("a new Lease is made", lambda event: event.type == "ADDED", CLAIM_SECONDS, after=gone)
    until("a scraper is let in", lambda: scraped(sidecar, reader.token_file.read_text()) == 200, CLAIM_SECONDS)
    assert used(identity, since) == granted(identity, identity.rights)


@pytest.mark.timeout(120)
def test_a_controller_needs_its_rights_uses_each_and_asks_for_no_more(
    api_server: ApiServer, start_loopwatch: StartLoopwatch, tmp_path: Path
) -> None:
    since, client = api_server.audit_log.position(), api_server.client
    create_pool(client, POOL)
    uid = client.get(f"{POOLS}/{POOL}").expect(200)["metadata"]["uid"]
    create_still_lease(client, POOL)
    create_machine(client, "on-a-dead-pool", POOL)
    identity = create(api_server, tmp_path, Subject.CONTROLLER, metrics_auth="kubernetes")
    token = create(api_server, tmp_path, Subject.READER, metrics_auth="kubernetes").token_file.read_text()
    controller = start_loopwatch("controller", GRACE, *ELECTION, "--metrics-auth=kubernetes", kubeconfig=identity.kubeconfig)

    def status() -> str:
        conditions = client.get(f"{POOLS}/{POOL}").expect(200).get("status", {}).get("conditions", [{}])
        return str(conditions[0].get("status", ""))

    def events() -> dict[str, int]:
        listed = client.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DMachinePool").expect(200)
        return {event["reason"]: event["count"] for event in listed["items"] if event["involvedObject"]["uid"] == uid}

    try:
        controller.wait_until("marked", lambda: status() == "Unknown", 2 * CLAIM_SECONDS)
        write_ready(client, POOL, "True", "HeartbeatReceived")
        controller.wait_until("marked again", lambda: status() == "Unknown", CLAIM_SECONDS)
        reasons = {"MachinePoolStatusUnknown": 2, "MachinePoolStatusRecovered": 1}
        controller.wait_until("told by Events", lambda: events() == reasons, CLAIM_SECONDS)
        page = controller.get("/metrics", token)
        assert page[0] == 200
        assert "\nloopwatch_leader_election_leading 1\n" in page[1]
        assert f'\nloopwatch_machinepool_stranded_machines{{machinepool="{POOL}"}} 1\n' in page[1]
        holder = client.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/loopwatch-controller").expect(200)
        assert holder["spec"]["holderIdentity"]
        assert controller.stop() == 0
        assert used(identity, since) == granted(identity, identity.rights)
    finally:
        client.delete(MACHINES)
        client.delete(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")


@pytest.mark.parametrize("right", [right for right in rights_of(Subject.READER) if right.resource], ids=lambda right: right.key)
def test_a_reader_sees_what_the_table_says_and_is_refused_without(right: Right, api_server: ApiServer, tmp_path: Path) -> None:
    assert right.resource is not None
    create_pool(api_server.client, POOL)
    create_still_lease(api_server.client, POOL)
    reader = create(api_server, tmp_path, Subject.READER)
    client = api_server.client_with(issue(api_server.client, reader.account))
    path = right.resource.collection_path(LEASE_NAMESPACE if right.scope is Scope.LEASES else "")
    if right.verb == "get":
        path += f"/{LEASE_NAMESPACE if right.what == 'namespaces' else POOL}"
    if right.verb == "watch":
        path += "?watch=1&timeoutSeconds=1"
    assert client.get(path).status == 200
    reader.lose(right)
    refused = client.get(path)
    assert refused.status == 403
    assert f'cannot {right.verb} resource "{right.what}"' in refused.body["message"]
    missing = findings(reader.kubeconfig, "--as=reader", "--watch=0s")["right-missing"]
    assert missing["objects"] == [right.key], "`loopwatch check` names it"


KUBECTL = shutil.which("kubectl")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed; the other tests have the API server read the same YAML")
@pytest.mark.parametrize("pool", ["pool-a", "1e3", "y"])
def test_kubectl_takes_what_is_printed_and_finds_nothing_to_change_the_second_time(
    pool: str, api_server: ApiServer, tmp_path: Path
) -> None:
    create(api_server, tmp_path, Subject.READER)  # for the namespace
    text = render(RbacSettings(machine_pool_name=pool, namespace=NAMESPACE, name_prefix=f"kubectl-{pool}"))

    def apply() -> list[str]:
        line = [str(KUBECTL), "apply", f"--kubeconfig={api_server.kubeconfig}", "-f", "-"]
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = subprocess.run(line, input=text, capture_output=True, text=True, timeout=60, check=False, env=environment)  # noqa: S603
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert len(apply()) == text.count("\nkind: ")
    assert {line.rsplit(" ", 1)[1] for line in apply()} == {"unchanged"}
