"""The sandbox over HTTP, and its control door: real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from loopwatch.clock import SystemClock
from loopwatch.kube.resources import LEASES, MACHINE_POOLS
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.faults import Cut, Fault, Hang, LoseAnswer, Silence
from loopwatch.sandbox.server import serve, write_kubeconfig

POOLS = MACHINE_POOLS.collection_path()
WAIT_SECONDS = 10.0


class Served:
    """A sandbox on a port, and a session to it."""

    def __init__(self, api: ApiServer, address: str, session: aiohttp.ClientSession) -> None:
        self.api, self.address, self.session = api, address, session

    def pool(self, name: str) -> None:
        self.api.put_object(MACHINE_POOLS, {"metadata": {"name": name}})

    async def door(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        async with self.session.request(method, f"{self.address}/_sandbox/{path}", json=body) as response:
            return response.status, await response.json()


@pytest.fixture
async def served() -> Any:
    api = ApiServer(SystemClock())
    async with serve(api) as address, aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=WAIT_SECONDS)) as session:
        yield Served(api, address, session)


async def test_a_quiet_watch_is_accepted_at_once_and_brings_one_line_an_event(served: Served) -> None:
    query = {"watch": "1", "resourceVersion": str(served.api.revision)}
    async with served.session.get(served.address + POOLS, params=query) as response:
        assert (response.status, response.headers["Transfer-Encoding"]) == (200, "chunked")
        for name in "ab":
            served.pool(name)
        lines = [json.loads(await response.content.readline()) for _ in range(2)]
    assert [line["object"]["metadata"]["name"] for line in lines] == ["a", "b"]


async def test_a_cut_breaks_the_connection_in_the_middle_of_a_line(served: Served) -> None:
    served.api.faults.add(Fault(effect=Cut(mid_line=True), verb="watch"))
    served.pool("a")
    received = b""
    async with served.session.get(served.address + POOLS, params={"watch": "1"}) as response:
        with contextlib.suppress(aiohttp.ClientPayloadError):
            async for chunk in response.content.iter_any():
                received += chunk
        assert isinstance(response.content.exception(), aiohttp.ClientPayloadError)
    assert received.startswith(b'{"type":"ADDED"')
    assert b"\n" not in received


async def test_a_lost_answer_is_a_connection_that_closes(served: Served) -> None:
    served.api.faults.add(Fault(effect=LoseAnswer(), verb="create"))
    body = {"apiVersion": MACHINE_POOLS.api_version, "kind": "MachinePool", "metadata": {"name": "a"}}
    with pytest.raises(aiohttp.ClientError):
        await served.session.post(served.address + POOLS, json=body)
    assert served.api.object(MACHINE_POOLS, "a") is not None


async def test_a_hang_leaves_nothing_behind_when_the_client_gives_up(served: Served) -> None:
    served.api.faults.add(Fault(effect=Hang(), verb="list"))
    with pytest.raises(TimeoutError):
        await served.session.get(served.address + POOLS, timeout=aiohttp.ClientTimeout(sock_read=0.05))
    async with asyncio.timeout(WAIT_SECONDS):
        while served.api.faults._wakers:
            await served.door("GET", "faults")  # a turn of the server's loop
    assert served.api.requests.matching(verb="list")[0].status == 0


async def test_a_half_open_watch_sends_its_head_and_no_more(served: Served) -> None:
    served.api.faults.add(Fault(effect=Silence(), verb="watch"))
    served.pool("a")
    async with served.session.get(served.address + POOLS, params={"watch": "1"}) as response:
        assert response.status == 200
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await response.content.readline()


async def test_leaving_closes_open_watches_at_once() -> None:
    async with aiohttp.ClientSession() as session:
        async with serve(ApiServer(SystemClock())) as address:
            response = await session.get(address + POOLS, params={"watch": "1"})
        async with asyncio.timeout(WAIT_SECONDS):
            with pytest.raises(aiohttp.ClientError):
                await response.content.read()
        response.close()


async def test_a_token_comes_in_the_authorization_header(served: Served) -> None:
    served.api.tokens = {"right": "pool-a"}
    for header, status in (("Bearer right", 200), ("Bearer wrong", 401), ("", 403)):
        headers = {"Authorization": header} if header else {}
        async with served.session.get(served.address + POOLS, headers=headers) as response:
            assert response.status == status


async def test_a_client_is_known_by_its_user_agent(served: Served) -> None:
    async with served.session.get(served.address + POOLS, headers={"User-Agent": "loopwatch-sidecar/0.1 (pool-a)"}) as response:
        assert response.status == 200
    assert len(served.api.requests.matching(client="loopwatch-sidecar", verb="list")) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
async def test_it_listens_on_loopback_alone(host: str) -> None:
    with pytest.raises(ValueError, match="not loopback"):
        async with serve(ApiServer(SystemClock()), host=host):
            pass


async def test_a_port_that_is_taken_is_an_error(served: Served) -> None:
    port = int(served.address.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"):
        async with serve(ApiServer(SystemClock()), port=port):
            pass


def test_a_kubeconfig_is_readable_by_its_owner_alone_and_by_any_yaml_reader(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, "http://127.0.0.1:1", token="t")
    assert path.stat().st_mode & 0o777 == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:1"}
    assert config["users"][0]["user"] == {"token": "t"}
    assert config["current-context"] == config["contexts"][0]["name"]


async def test_the_door_sets_lists_and_ends_faults(served: Served) -> None:
    fault = {"verb": "list", "resource": "machinepools", "count": 2, "effect": {"type": "respond", "status": 503}}
    status, made = await served.door("POST", "faults", fault)
    assert (status, made) == (200, {"number": 1})
    async with served.session.get(served.address + POOLS) as response:
        assert response.status == 503
    _, (listed,) = await served.door("GET", "faults")
    assert (listed["number"], listed["left"], listed["hits"]) == (1, 1, 1)
    assert listed["fault"]["effect"]["type"] == "respond"
    assert await served.door("DELETE", "faults?number=1") == (200, {"removed": 1})
    async with served.session.get(served.address + POOLS) as response:
        assert response.status == 200
    await served.door("POST", "faults", {"effect": {"type": "hang"}})
    assert await served.door("DELETE", "faults") == (200, {"removed": 1})


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", "faults", {"effect": {"type": "unknown"}}, "unknown"),
        ("POST", "faults", {"effect": {"type": "latency"}}, "seconds"),
        ("POST", "faults", {"effect": {"type": "hang"}, "count": 0}, "count 0 hits nothing"),
        ("DELETE", "faults?number=7", None, "there is no fault 7"),
        ("POST", "compact?revision=x", None, "invalid literal"),
        ("POST", "objects", {"resource": "pods", "object": {}}, "'pods' is not served"),
        ("POST", "objects", {"resource": "leases", "object": {}}, "needs metadata"),
    ],
)
async def test_the_door_says_what_is_wrong(served: Served, method: str, path: str, body: object, said: str) -> None:
    status, answer = await served.door(method, path, body)
    assert (status, said in answer["error"]) == (400, True), answer


async def test_the_door_names_its_controls(served: Served) -> None:
    status, answer = await served.door("GET", "nothing")
    assert (status, "GET /_sandbox/requests" in answer["error"]) == (404, True)


async def test_the_door_compacts_stores_and_counts(served: Served) -> None:
    served.pool("a")
    status, answer = await served.door("POST", "compact")
    assert (status, answer["revision"]) == (200, served.api.revision)
    query = {"watch": "1", "resourceVersion": str(served.api.revision - 1)}
    async with served.session.get(served.address + POOLS, params=query) as response:
        assert json.loads(await response.content.readline())["object"]["code"] == 410
    foreign = {"metadata": {"name": "l", "namespace": "default"}, "spec": {"renewTime": 5}}
    assert (await served.door("POST", "objects", {"resource": "leases", "object": foreign}))[0] == 200
    lease = next(lease for lease in served.api.objects(LEASES) if lease["metadata"]["name"] == "l")
    assert lease["spec"] == {"renewTime": 5}
    _, counts = await served.door("GET", "requests")
    assert [(count["verb"], count["resource"], count["count"]) for count in counts] == [("watch", "machinepools", 1)]
    assert await served.door("DELETE", "requests") == (200, {})
    assert await served.door("GET", "requests") == (200, [])
