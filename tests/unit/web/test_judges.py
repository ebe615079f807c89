"""Which cluster's word counts about a scraper: that of the pod that is scraped, where its token comes from."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from aiohttp import web

from loopwatch import leadership, sidecar
from loopwatch.clock import SystemClock
from loopwatch.kube.connection import ConnectionSettings, connect
from loopwatch.settings.model import MetricsAuth, SidecarSettings
from loopwatch.web.auth import Verdict
from tests.unit.kube.api_server import ApiServer, serving
from tests.unit.kube.kubeconfigs import kubeconfig, write

SETTINGS = SidecarSettings(machine_pool_name="pool-a", metrics_auth=MetricsAuth.KUBERNETES)


def knows_the_scraper(server: ApiServer) -> None:
    """From now on it accepts each token, and allows everything."""

    async def answer(request: web.Request) -> web.Response:
        user = {"username": "prometheus"}
        status = {"authenticated": True, "user": user} if request.path.endswith("tokenreviews") else {"allowed": True}
        return web.json_response({"status": status}, status=201)

    server.handler = answer


@pytest.mark.parametrize("in_a_pod", [True, False])
async def test_a_sidecars_scrapers_are_judged_by_the_cluster_of_its_pod_and_outside_of_pods_by_the_pools(
    in_a_pod: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = SystemClock()
    async with serving() as pools, serving() as own, contextlib.AsyncExitStack() as stack:
        knows_the_scraper(own if in_a_pod else pools)
        where = ConnectionSettings("sidecar", kubeconfig=write(tmp_path / "own", kubeconfig(own.url))) if in_a_pod else None
        monkeypatch.setattr(leadership, "own_cluster", lambda _component: where)
        transport = await connect(ConnectionSettings("sidecar", kubeconfig=write(tmp_path / "pools", kubeconfig(pools.url))), clock)
        stack.push_async_callback(transport.close)
        judge = await sidecar._judge(SETTINGS, transport, stack, clock)
        assert judge is not None
        assert await judge.judge("token", "/metrics") is Verdict.ALLOWED
        assert (len(own.seen), len(pools.seen)) == ((2, 0) if in_a_pod else (0, 2))


async def test_where_nobody_is_judged_no_cluster_is_connected_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(leadership, "own_cluster", lambda _component: pytest.fail("asked for"))
    async with serving() as pools, contextlib.AsyncExitStack() as stack:
        transport = await connect(ConnectionSettings("sidecar", kubeconfig=write(tmp_path / "pools", kubeconfig(pools.url))), SystemClock())
        stack.push_async_callback(transport.close)
        assert await sidecar._judge(SidecarSettings(machine_pool_name="pool-a"), transport, stack, SystemClock()) is None


@pytest.mark.parametrize(
    ("environment", "is_a_pod"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "KUBECONFIG": "/k", "HOME": "/h"}, True),
        ({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, False),
        ({"KUBERNETES_SERVICE_HOST": "", "KUBERNETES_SERVICE_PORT": "443"}, False),
        ({"KUBECONFIG": "/k"}, False),
    ],
)
def test_the_own_cluster_is_that_of_the_pod_whatever_kubeconfigs_there_are(environment: dict[str, str], is_a_pod: bool) -> None:
    found = leadership.own_cluster("sidecar", environment)
    assert (found is not None) == is_a_pod
    if found:
        assert found.kubeconfig is None
        assert set(found.environ) == {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}
