"""The API server is gone for three minutes, with everybody's default times: nobody alive is marked, and who died meanwhile is."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.programs import Loopwatch
from tests.e2e.watching import POOLS, Watcher, became, ready
from tests.e2e.world import POOL, World, until
from tests.real_servers.apiserver import ApiServer

OUTAGE_SECONDS = 180.0
AFTERWARDS_SECONDS = 75.0
DIES = "pool-b"


def sidecar_of(world: World, name: str) -> Loopwatch:
    """A sidecar that reports from the first tick."""
    return world.start(
        "sidecar",
        f"--machine-pool-name={name}",
        "--mode=report",
        f"--machine-runtime-endpoint=unix:{world.runtime.socket}",
        f"--machinepoollet-healthz={world.machinepoollet.healthz}",
    )


def answers_since(server: ApiServer) -> float:
    """The moment at which the API server lists pools again, which is before its restart is called done."""
    client = server.client
    while True:
        with contextlib.suppress(OSError):
            if client.request("GET", POOLS, timeout_seconds=1.0).status == http.client.OK:
                return time.monotonic()
        time.sleep(0.05)


@pytest.mark.timeout(480)
def test_three_minutes_without_the_api_server_mark_nobody_alive_and_hide_nobody_dead(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    manifest = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachinePool", "metadata": {"name": DIES}}
    world.server.client.create(POOLS, manifest | {"spec": {"providerID": f"test://{DIES}"}})
    controller = world.start("controller", "--leader-elect-resource-namespace=default")
    controller.wait_until_ready()
    living, dying = sidecar_of(world, POOL), sidecar_of(world, DIES)
    for name in (POOL, DIES):
        world.pools.wait_for("True", became(name, "True"), 30.0)
    until("leading", lambda: controller.counted("loopwatch_leader_election_leading") == 1, 20.0)
    time.sleep(15.0)

    world.server.kill()
    gone = time.monotonic()
    time.sleep(OUTAGE_SECONDS / 2)
    dying.kill()
    time.sleep(OUTAGE_SECONDS / 2 - (time.monotonic() - gone - OUTAGE_SECONDS / 2))
    with ThreadPoolExecutor(1) as look_out:
        first_answer = look_out.submit(answers_since, world.server)
        world.server.restart()
        back = first_answer.result(30.0)
    with Watcher(world.server.client, POOLS) as pools:
        unknown = pools.wait_for("Unknown", became(DIES, "Unknown"), 90.0)
        record_property("return of the API server to Unknown of the pool that died meanwhile, s", round(unknown.at - back, 1))
        assert 39.0 <= unknown.at - back <= 62.0
        time.sleep(max(AFTERWARDS_SECONDS - (time.monotonic() - back), 0.0))
        assert [ready(event.object)[0] for event in pools.events if event.object["metadata"]["name"] == POOL] in ([], ["True"])
    assert ready(world.server.client.get(f"{POOLS}/{POOL}").expect(200))[0] == "True"
    for program in (controller, living):
        assert program.exit_code is None
        assert program.get("/healthz")[0] == 200
