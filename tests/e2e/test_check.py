"""`loopwatch check` on a real kube-apiserver, as somebody who holds the rights of `loopwatch rbac reader` and no other."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopwatch.check.probes import MANAGER_LEASE
from loopwatch.settings.model import Subject
from tests.e2e import identities
from tests.e2e.identities import Identity
from tests.e2e.programs import KEPT_VARIABLES
from tests.e2e.watching import LEASES, POOLS
from tests.real_servers.apiserver import ApiServer

POOL = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "spec": {"providerID": "test://a"}}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


@pytest.fixture
def reader(api_server: ApiServer, tmp_path: Path) -> Identity:
    """Somebody who looks."""
    return identities.create(api_server, tmp_path, Subject.READER)


def check(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    line = [sys.executable, "-m", "loopwatch", "check", f"--kubeconfig={kubeconfig}", "--watch=1s", *arguments]
    return subprocess.run(line, env=kept, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own command


def findings(kubeconfig: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """What it found, by key, good news left out; the exit code says the same."""
    ran = check(kubeconfig, "--output=json", *arguments)
    assert ran.stderr == ""
    document = json.loads(ran.stdout)
    assert ran.returncode == (0 if document["passed"] else 1)
    return {finding["check"]: finding for finding in document["findings"] if finding["severity"] != "ok"}


def test_a_reader_sees_pools_leases_rights_and_namespace_and_needs_no_other_right(api_server: ApiServer, reader: Identity) -> None:
    client = api_server.client
    for name in ("never", "silent"):
        client.create(POOLS, POOL | {"metadata": {"name": name}})
    client.create(LEASES, LEASE | {"metadata": {"name": "silent"}, "spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 60}})
    start = api_server.audit_log.position()
    assert findings(reader.kubeconfig, "--as=reader") == {}
    requests = api_server.audit_log.requests(since=start, user_agent="(check)")
    assert {(request.verb, request.resource, request.name) for request in requests if request.code == 403} == {
        ("get", "leases", MANAGER_LEASE.name)
    }, "only whether ironcore-controller-manager runs is asked without a right to it"

    found = findings(reader.kubeconfig, "--as=controller")
    assert found["never-reported"]["objects"] == ["never"]
    assert found["pool-silent"]["objects"] == ["silent"]
    assert found["grace-too-short"]["objects"] == ["silent"]
    assert found["right-missing"]["fix"] == "loopwatch rbac controller | kubectl apply -f -"
    assert "clock-skew" not in found, "the server runs on this host"


def test_a_controllers_identity_has_every_right_that_check_asks_about(api_server: ApiServer, tmp_path: Path) -> None:
    controller = identities.create(api_server, tmp_path, Subject.CONTROLLER)
    arguments = (f"--namespace={identities.NAMESPACE}", "--as=controller")
    assert set(findings(controller.kubeconfig, *arguments)) == {"namespace-unknown"}
    lost = next(right for right in controller.rights if right.key == "controller: patch machinepools/status")
    controller.lose(lost)
    assert findings(controller.kubeconfig, *arguments)["right-missing"]["objects"] == [lost.key]


def test_the_text_tells_each_finding_with_why_and_fix_and_ends_in_one(api_server: ApiServer, reader: Identity) -> None:
    del api_server
    ran = check(reader.kubeconfig, "--as=controller")
    assert ran.returncode == 1
    assert "ERROR   No right to patch machinepools/status (compute.ironcore.dev) in the whole cluster" in ran.stdout
    assert "        fix: loopwatch rbac controller | kubectl apply -f -" in ran.stdout
    assert "loopwatch check --as controller: FAILED" in ran.stdout.splitlines()[-1]


def test_what_can_not_be_used_is_one_line_and_exit_two(reader: Identity, tmp_path: Path) -> None:
    for arguments in (("--as=sidecar",), ("--as=nobody",), ("--watch=soon",)):
        ran = check(reader.kubeconfig, *arguments)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1), ran.stderr
    assert check(tmp_path / "nowhere").returncode == 2
