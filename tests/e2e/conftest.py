"""What the end-to-end tests stand on: a real API server, and loopwatch as real processes.

They run by `make e2e` alone, whose plugin (tests/real_servers/plugin.py) starts the server. Without it nothing here is collected, so that
`pytest` works on a machine without Go; tests/conftest.py says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.programs import Loopwatch, Machinepoollet, MachineRuntime
from tests.e2e.watching import LEASES, POOLS, Watcher
from tests.e2e.world import World
from tests.real_servers.apiserver import ApiServer
from tests.real_servers.plugin import SERVER

HERE = Path(__file__).parent

StartLoopwatch = Callable[..., Loopwatch]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect nothing where no server was started."""
    return True if collection_path.is_relative_to(HERE) and SERVER not in config.stash else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs the real servers."""
    if item.path.is_relative_to(HERE):
        item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def api_server(pytestconfig: pytest.Config) -> ApiServer:
    """The server of this session, with an audit log. Who pauses or kills it brings it back before the test ends."""
    return pytestconfig.stash[SERVER]


@pytest.fixture(autouse=True)
def empty_cluster(api_server: ApiServer) -> Iterator[None]:
    """No pool and no Lease is there from another test: a controller watches them all."""
    _clear(api_server)
    yield
    _clear(api_server)


def _clear(api_server: ApiServer) -> None:
    for collection in (POOLS, LEASES):
        api_server.client.delete(collection)


@pytest.fixture
def start_loopwatch(api_server: ApiServer, tmp_path: Path) -> Iterator[StartLoopwatch]:
    """Start `loopwatch COMMAND ARGUMENTS...` on the API server; all are ended with the test, and their logs shown when it failed.

    Called as start_loopwatch(command, *arguments, kubeconfig=None, variables=None). Without `kubeconfig` the administrator's is used.
    """
    started: list[Loopwatch] = []

    def start(command: str, *arguments: str, kubeconfig: Path | None = None, variables: dict[str, str] | None = None) -> Loopwatch:
        line = [*arguments, f"--kubeconfig={kubeconfig or api_server.kubeconfig}"]
        program = Loopwatch(command, line, tmp_path / f"loopwatch-{len(started)}-{command}.log", variables or {})
        started.append(program)
        return program

    yield start
    for program in started:
        program.discard()
        print(f"--- {program.log.name}\n{program.tail(100)}")  # noqa: T201 - pytest shows it only with a failure


@pytest.fixture
def world(api_server: ApiServer, start_loopwatch: StartLoopwatch, tmp_path: Path) -> Iterator[World]:
    """A pool on the real server, its runtime and machinepoollet, watched; no process of loopwatch runs yet."""
    runtime = MachineRuntime(tmp_path)
    client = api_server.client
    with Machinepoollet() as machinepoollet, Watcher(client, POOLS) as pools, Watcher(client, LEASES) as leases:
        world = World(api_server, runtime, machinepoollet, start_loopwatch, pools, leases)
        world.create_pool()
        yield world
    runtime.process.discard()
