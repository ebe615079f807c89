"""Processes that lack one right each, side by side: what `loopwatch rbac` prints, less one verb."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loopwatch.kube.errors import Call
from loopwatch.rbac.command import names_of
from loopwatch.rbac.model import Right
from loopwatch.rbac.rights import RIGHTS
from loopwatch.settings.model import Subject
from tests.e2e.identities import Identity
from tests.e2e.programs import Loopwatch
from tests.e2e.watching import LEASES, MACHINES, POOLS, ready
from tests.real_servers.client import Client
from tests.real_servers.processes import Process

START_SECONDS = 60.0
"""A dozen processes start at once, on two cores."""
CLAIM_SECONDS = 30.0
STALE_SECONDS = 3.0
"""Three heartbeats: what is that old was not kept current."""


@dataclass(frozen=True, slots=True)
class Bereft:
    """A process without one right; `pool` is the sidecar's own."""

    right: Right
    process: Loopwatch
    identity: Identity
    client: Client
    pool: str = ""

    def says_what_it_lacks(self) -> None:
        """Wait until the log names the verb, the resource and the namespace."""
        assert self.right.resource is not None
        call = Call(self.right.verb, self.right.resource, subresource=self.right.subresource)
        namespace = names_of(self.identity.settings).of_namespace(self.right.scope)
        where = f" in namespace {namespace}" if namespace else ""
        sentence = f"this identity has no right to {call.verb} {call.what}{where}; grant that verb in its Role or ClusterRole"
        self.waits_until("its log says what is missing", lambda: sentence in self.process.text())

    def waits_until(self, claim: str, true: Callable[[], bool], seconds: float = CLAIM_SECONDS) -> None:
        """Poll a claim about this process, which goes on running."""
        self.process.wait_until(f"{self.right.key}: {claim}", true, seconds)

    def shows(self, name: str, **labels: str) -> list[float]:
        """The samples of a family on its page, now; none where the page does not answer yet."""
        try:
            return self.process.scrape().values(name, **labels)
        except OSError:
            return []

    def answers(self, path: str, token: str = "") -> int:
        """The HTTP status of a path; 0 where it does not answer yet."""
        try:
            return self.process.get(path, token)[0]
        except OSError:
            return 0

    def ready(self, pool: str = "") -> str:
        """Status of the pool's Ready condition, as the API server has it; empty where there is none."""
        return ready(self.client.get(f"{POOLS}/{pool or self.pool}").expect(200))[0]

    def renew_time(self) -> str:
        """RenewTime of the pool's Lease; empty where there is no Lease."""
        answer = self.client.get(f"{LEASES}/{self.pool}")
        return "" if answer.status == http.client.NOT_FOUND else str(answer.expect(200)["spec"].get("renewTime", ""))

    def holder(self) -> str:
        """Who holds the pool's Lease."""
        return str(self.client.get(f"{LEASES}/{self.pool}").expect(200)["spec"]["holderIdentity"])

    def is_renewed(self) -> None:
        """Wait for a heartbeat from now on."""
        before = self.renew_time()
        self.waits_until("the Lease is renewed", lambda: self.renew_time() not in ("", before))


def rights_of(subject: Subject) -> list[Right]:
    """The rows of one subject."""
    return [right for right in RIGHTS if right.subject is subject]


def end(process: Process) -> None:
    """End it, and print the end of its log, which pytest shows with a failure."""
    process.discard()
    print(f"--- {process.log.name}\n{process.tail(40)}")  # noqa: T201 - shown only then


def start(command: str, identity: Identity, folder: Path, *arguments: str) -> Loopwatch:
    """A process with this identity."""
    line = [*arguments, f"--kubeconfig={identity.kubeconfig}"]
    return Loopwatch(command, line, folder / f"{identity.account}.log", {})


def create_pool(client: Client, name: str) -> None:
    """A MachinePool without a status."""
    manifest = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "metadata": {"name": name}}
    client.create(POOLS, manifest | {"spec": {"providerID": f"test://{name}"}})


def create_still_lease(client: Client, name: str) -> None:
    """A Lease whose holder renews it no more."""
    spec = {"holderIdentity": f"{name}_gone", "leaseDurationSeconds": 4}
    client.create(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec})


def create_machine(client: Client, name: str, pool: str) -> None:
    """A Machine on the pool."""
    manifest = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "Machine", "metadata": {"name": name, "namespace": "default"}}
    spec = {"machineClassRef": {"name": "small"}, "machinePoolRef": {"name": pool}}
    client.create(MACHINES, manifest | {"spec": spec})


def write_ready(client: Client, name: str, status: str, reason: str) -> None:
    """Write the Ready condition, as somebody else would."""
    condition = {"type": "Ready", "status": status, "reason": reason, "message": "by the test"}
    client.merge_patch(f"{POOLS}/{name}/status", {"status": {"conditions": [condition]}})
