"""Pools and their Leases on two API servers, and pools behind an aggregated API that fails: what can't be seen is never silence."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.e2e.conftest import StartLoopwatch
from tests.e2e.programs import Loopwatch
from tests.e2e.watching import LEASES, POOLS, Watcher, became, ready
from tests.e2e.world import POOL, until
from tests.real_servers.apiserver import ApiServer
from tests.real_servers.client import Client

GRACE_SECONDS = 8.0
BEAT_SECONDS = 1.0
AWAY_SECONDS = 3 * GRACE_SECONDS
API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.compute.ironcore.dev"
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


class Heartbeat:
    """Somebody who renews the pool's Lease, in a thread of its own. Use it in a `with`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        spec = {"holderIdentity": "by-hand", "leaseDurationSeconds": 5, "renewTime": _now()}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": POOL}, "spec": spec}
        self._client.create(LEASES, lease)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """No heartbeat from now on."""
        self._end.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):  # the server of the Leases may be the one that is away
                self._client.request(
                    "PATCH", f"{LEASES}/{POOL}", {"spec": {"renewTime": _now()}}, "application/merge-patch+json", BEAT_SECONDS
                )


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def leases_elsewhere(tmp_path: Path) -> Iterator[ApiServer]:
    """A second API server."""
    with ApiServer(tmp_path / "leases", audit=False) as server:
        yield server


def create_pool(server: ApiServer) -> None:
    """A pool that says it is Ready."""
    manifest = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "metadata": {"name": POOL}}
    server.client.create(POOLS, manifest | {"spec": {"providerID": "test://pool"}})
    condition = {"type": "Ready", "status": "True", "reason": "HeartbeatReceived", "message": "", "observedGeneration": 1}
    server.client.merge_patch(f"{POOLS}/{POOL}/status", {"status": {"conditions": [condition]}})


def blind(controller: Loopwatch, resource: str) -> float:
    """Seconds without sight of it, as /metrics shows."""
    return controller.counted("loopwatch_machinepool_lifecycle_blind_seconds", resource=resource)


def is_seen_again(controller: Loopwatch) -> None:
    """Wait for sight of both."""
    until("in sight again", lambda: blind(controller, "leases") + blind(controller, "machinepools") == 0, 30.0)


@pytest.mark.timeout(200)
def test_either_of_two_clusters_may_be_away_and_a_living_pool_is_not_marked(
    api_server: ApiServer, leases_elsewhere: ApiServer, start_loopwatch: StartLoopwatch
) -> None:
    create_pool(api_server)
    with Heartbeat(leases_elsewhere.client) as heartbeat, Watcher(api_server.client, POOLS) as pools:
        controller = start_loopwatch(
            "controller",
            f"--machine-pool-lifecycle-grace-period={GRACE_SECONDS:g}s",
            f"--lease-kubeconfig={leases_elsewhere.kubeconfig}",
            "--leader-elect-resource-namespace=default",
        )
        controller.wait_until_ready()
        for server, resource, other in ((leases_elsewhere, "leases", "machinepools"), (api_server, "machinepools", "leases")):
            is_seen_again(controller)
            server.pause()
            try:
                time.sleep(AWAY_SECONDS)
                assert blind(controller, resource) > AWAY_SECONDS / 2
                assert blind(controller, other) == 0
            finally:
                server.resume()
        is_seen_again(controller)
        time.sleep(GRACE_SECONDS * 1.5)
        assert [ready(event.object)[0] for event in pools.events] in ([], ["True"])
        heartbeat.stop()
        pools.wait_for("Unknown", became(POOL, "Unknown"), GRACE_SECONDS * 3)


@pytest.mark.timeout(200)
def test_pools_that_answer_503_while_leases_answer_200_are_lost_sight_and_no_silence(
    api_server: ApiServer, start_loopwatch: StartLoopwatch
) -> None:
    """The usual way in which an aggregated API fails: its APIService points to a service that is not there."""
    create_pool(api_server)
    with Heartbeat(api_server.client) as heartbeat:
        controller = start_loopwatch(
            "controller",
            f"--machine-pool-lifecycle-grace-period={GRACE_SECONDS:g}s",
            "--leader-elect-resource-namespace=default",
        )
        controller.wait_until_ready()
        is_seen_again(controller)
        try:
            api_server.client.merge_patch(API_SERVICE, aggregated_by("nobody"))
            until("503", lambda: api_server.client.get(POOLS).status == 503, 20.0)
            heartbeat.stop()
            time.sleep(AWAY_SECONDS)
            assert blind(controller, "machinepools") > AWAY_SECONDS / 2
            assert blind(controller, "leases") == 0
            assert controller.scrape().value("loopwatch_machinepool_silence_seconds", machinepool=POOL) <= GRACE_SECONDS
        finally:
            api_server.client.delete(API_SERVICE)
        until("served", lambda: api_server.client.get(POOLS).status == 200, 30.0)
        assert ready(api_server.client.get(f"{POOLS}/{POOL}").expect(200))[0] == "True"
        with Watcher(api_server.client, POOLS) as pools:
            until("dead", lambda: ready(api_server.client.get(f"{POOLS}/{POOL}").expect(200))[0] == "Unknown", GRACE_SECONDS * 3)
            assert pools.events


def aggregated_by(service: str) -> dict[str, object]:
    """A patch that takes the group from the server itself and gives it to a service."""
    spec = {"service": {"name": service, "namespace": "default", "port": 443}, "insecureSkipTLSVerify": True}
    return {"metadata": {"labels": {AUTOMANAGED: None}}, "spec": spec}
