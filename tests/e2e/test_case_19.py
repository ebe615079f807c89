"""Case 19 of the bug reports, on a real API server: a token that is refused before its file is replaced, and one that never is.

Token A is bound to a Secret; when that is deleted, the API server refuses the token as soon as it no longer remembers having accepted it
(ten seconds, by its source). The file is switched to token B half an interval after the sidecar was first refused, as in the case (5 s of
10 s). Times are scaled: heartbeat 2 s, lease 8 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from loopwatch.settings.model import Subject
from tests.e2e.identities import NAMESPACE, Identity, create, issue
from tests.e2e.programs import Loopwatch
from tests.e2e.watching import LEASES
from tests.e2e.world import POOL, World, longest_gap, until
from tests.real_servers.client import Client

INTERVAL_SECONDS = 2.0
REFUSED_WITHIN_SECONDS = 30.0
CLAIM_SECONDS = 20.0
PERSISTENT_BEATS = 5
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LEASE_WRITES = "loopwatch_heartbeat_lease_writes_total"
Record = Callable[[str, object], None]

pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True, slots=True)
class Doomed:
    """A sidecar whose token can be made invalid, as a process that beats."""

    world: World
    identity: Identity
    sidecar: Loopwatch
    token: str

    def invalidate(self) -> float:
        """Delete the Secret that the token is bound to; the moment of the API server's first refusal (time.monotonic)."""
        self.world.server.client.delete(f"{SECRETS}/{self.identity.account}")
        as_it = self.world.server.client_with(self.token)
        return until("the token is refused", lambda: as_it.get(f"{LEASES}/{POOL}").status == 401, REFUSED_WITHIN_SECONDS)


@pytest.fixture
def doomed(world: World, tmp_path: Path) -> Doomed:
    """A sidecar with a kubeconfig whose tokenFile holds a token that is bound to a Secret; it reports."""
    client = world.server.client
    identity = create(world.server, tmp_path, Subject.SIDECAR, machine_pool_name=POOL)
    token = bound_token(client, identity)
    identity.token_file.write_text(token)
    sidecar = world.start(
        "sidecar",
        f"--machine-pool-name={POOL}",
        "--mode=report",
        f"--heartbeat-interval={INTERVAL_SECONDS:g}s",
        "--heartbeat-lease-duration=8s",
        "--heartbeat-status-timeout=1s",
        f"--machine-runtime-endpoint=unix:{world.runtime.socket}",
        f"--machinepoollet-healthz={world.machinepoollet.healthz}",
        kubeconfig=identity.kubeconfig,
    )
    world.becomes("True", CLAIM_SECONDS)
    until("it beats", lambda: len(world.renewals()) >= 2, CLAIM_SECONDS)
    return Doomed(world, identity, sidecar, token)


def bound_token(client: Client, identity: Identity) -> str:
    """A token that dies with a Secret of the account's name."""
    secret = client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": identity.account}})
    bound_to = {"apiVersion": "v1", "kind": "Secret", "name": identity.account, "uid": secret["metadata"]["uid"]}
    return issue(client, identity.account, bound_to)


def test_a_token_that_is_replaced_half_an_interval_after_it_was_refused_costs_one_beat_at_most(
    doomed: Doomed, record_property: Record
) -> None:
    world, deleted_at, position = doomed.world, time.monotonic(), doomed.world.server.audit_log.position()
    refused_at = doomed.invalidate()
    record_property("Secret deleted to token refused, s", round(refused_at - deleted_at, 1))
    until("a beat is refused", lambda: doomed.sidecar.counted(LEASE_WRITES, result="error") > 0, CLAIM_SECONDS)
    time.sleep(INTERVAL_SECONDS / 2)
    replaced = doomed.identity.token_file.with_suffix(".new")
    replaced.write_text(issue(world.server.client, doomed.identity.account))
    replaced.replace(doomed.identity.token_file)
    replaced_at = time.monotonic()
    until("it beats on", lambda: len(world.renewals(after=replaced_at)) >= 3, CLAIM_SECONDS)
    gap = longest_gap(world.renewals(after=deleted_at))
    record_property("longest time between two beats, s", round(gap, 2))
    assert gap < 2 * INTERVAL_SECONDS + INTERVAL_SECONDS / 4, "one beat may be missed"
    assert world.statuses(after=deleted_at) == []
    assert doomed.sidecar.counted("loopwatch_heartbeat_ready_writes_total") == 1, "Ready was never written again"
    assert "credentials changed" in doomed.sidecar.text()
    answers = [request.code for request in world.server.audit_log.requests(since=position, user_agent="(sidecar)")]
    record_property("of its requests refused by 401", answers.count(401))
    assert 401 in answers, "or the case was not met at all"


def test_a_token_that_stays_refused_is_one_line_and_a_counter_that_rises(doomed: Doomed, record_property: Record) -> None:
    refused_at = doomed.invalidate()
    sidecar, world = doomed.sidecar, doomed.world
    until("beats fail", lambda: sidecar.counted(LEASE_WRITES, result="error") > 0, CLAIM_SECONDS)
    failed = sidecar.counted(LEASE_WRITES, result="error")
    time.sleep(PERSISTENT_BEATS * INTERVAL_SECONDS)
    record_property("failed lease writes in 10 s", sidecar.counted(LEASE_WRITES, result="error") - failed)
    assert sidecar.counted(LEASE_WRITES, result="error") - failed >= PERSISTENT_BEATS
    said = [line for line in sidecar.text().splitlines() if "the lease is not renewed" in line]
    assert len(said) == 1, "once a minute"
    assert f"patch leases.coordination.k8s.io ironcore-machinepool-lease/{POOL}: 401 Unauthorized" in said[0]
    assert "does not accept the token or certificate in use" in said[0]
    assert world.renewals(after=refused_at + 1.0) == []
    assert sidecar.get("/healthz")[0] == 200
    assert doomed.token not in sidecar.text()
    doomed.identity.token_file.write_text(issue(world.server.client, doomed.identity.account))
    mended_at = time.monotonic()
    until("it beats again", lambda: bool(world.renewals(after=mended_at)), CLAIM_SECONDS)
    record_property("token mended to the next beat, s", round(world.renewals(after=mended_at)[0] - mended_at, 2))
    assert world.statuses(after=refused_at) == []
