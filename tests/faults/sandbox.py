"""The sandbox as a ground: processes with loops of their own, a network and an API server between them, all in one virtual time."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.resources import LEASE_NAMESPACE, LEASES, MACHINE_POOLS, ObjectKey, Resource
from loopwatch.kube.transport import Request
from loopwatch.sandbox.apiserver import ApiServer, calls
from loopwatch.sandbox.apiserver.api import ADMIN
from loopwatch.sandbox.apiserver.calls import Call
from loopwatch.sandbox.apiserver.router import Answer
from loopwatch.sandbox.apiserver.store import Event
from loopwatch.sandbox.faults import Fault
from tests.faults.ground import ELECTION, Api, Cut, Document, End, Ground
from tests.faults.ground import Process as AnyProcess
from tests.faults.journal import Journal
from tests.faults.plan import Plan
from tests.faults.seeding import hash_of
from tests.faults.truth import Write
from tests.faults.wire import Network, WireTransport
from tests.support.processes import Process, ProcessClock, World

T = TypeVar("T")


class SandboxApi:
    """See ground.Api."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    def read(self, resource: Resource, key: ObjectKey) -> Document | None:
        """A copy of an object; None where there is none."""
        return self._api.object(resource, key)

    def create(self, resource: Resource, body: Document) -> None:
        """Create an object that does not exist."""
        self._api.put_object(resource, body)

    def patch(self, resource: Resource, key: ObjectKey, body: Document, subresource: str = "") -> None:
        """A merge patch; nobody else writes meanwhile."""
        headers = {"Content-Type": "application/merge-patch+json"}
        request = Request("PATCH", resource.object_path(key, subresource), headers=headers, body=msgspec.json.encode(body))
        self._api._router.answer(calls.parse(request, ADMIN, self._api._types))

    def delete(self, resource: Resource, key: ObjectKey) -> None:
        """Delete an object; one that is gone already is as good."""
        if self._api.object(resource, key) is not None:
            self._api.delete_object(resource, key)

    def inject(self, resource: Resource, body: Document) -> None:
        """Store an object past every check."""
        self._api.inject_object(resource, body)


class SandboxGround(Ground):
    """On one world."""

    def __init__(self, plan: Plan, world: World) -> None:
        super().__init__(Journal(lambda: world.now), plan.times, plan.seed)
        self.world = world
        self.server = self.new_process("api")
        self.server_api = ApiServer(self.server.clock)
        self.server_api.create_namespace(LEASE_NAMESPACE)
        self.network = Network(world, self.server_api, self.server, plan.seed, plan.weather)
        self.network.on_send = self._sends
        self.network.on_answer = self._answered
        self._cuts: dict[tuple[str, str], int] = {}
        self._caller = ""
        self._spy()

    @property
    def now(self) -> float:
        """The world's."""
        return self.world.now

    @property
    def api(self) -> Api:
        """The API server's own door."""
        return SandboxApi(self.server_api)

    def at(self, when: float, what: Callable[[], object]) -> None:
        """In the world."""
        self.world.at(when, what)

    def new_process(self, client: str) -> Process:
        """Its chance is the seed's."""
        process = Process(self.world, client, seed=hash_of(f"{self.seed} {client}"))
        self.journal.names[process.loop] = client
        return process

    @contextlib.asynccontextmanager
    async def transport(self, process: AnyProcess, host: str, client: str) -> AsyncIterator[WireTransport]:
        """Over the network."""
        yield WireTransport(self.network, cast("Process", process), host, client)

    def reset(self, client: str) -> None:
        """All of its exchanges."""
        self.network.reset(client)

    def ask(self, process: AnyProcess, question: Callable[[], T]) -> T | None:
        """Nothing else runs meanwhile: the answer is at hand."""
        return question() if process.runs else None

    def new_clock(self, name: str) -> Clock:
        """On the world's time."""
        return ProcessClock(self.world, seed=hash_of(f"{self.seed} {name}"))

    def add_fault(self, fault: Fault) -> End:
        """In the table of the API server."""
        rule = self.server_api.faults.add(fault)
        return lambda: self.server_api.faults.remove(rule)

    def partition(self, hosts: Sequence[str], resources: Sequence[str], cut: Cut) -> End:
        """Links are cut as often as they are, and heal with the last end."""
        keys = [(host, resource) for host in hosts for resource in resources]
        for key in keys:
            self._cuts[key] = self._cuts.get(key, 0) + 1
            self.network.link(*key).break_off(cut)

        def heal() -> None:
            for key in keys:
                self._cuts[key] -= 1
                if not self._cuts[key]:
                    self.network.link(*key).heal()

        return heal

    def stall_server(self, hosts: Sequence[str], seconds: float) -> End:  # noqa: ARG002 - it is one process, whoever asks it
        """Its process stands still."""
        self.server.stall(seconds)
        return lambda: None

    def compact(self) -> None:
        """All of it."""
        self.server_api.compact()

    def holders(self, at: float) -> set[str]:  # noqa: ARG002 - it is asked at that very moment
        """As stored."""
        lease: dict[str, Any] = self.server_api.object(LEASES, ELECTION) or {"spec": {}}
        return {str(lease["spec"].get("holderIdentity", ""))}

    def _spy(self) -> None:
        """Hear of each write as the API server records it, and know from whom it came."""
        router = self.server_api._router
        answer = router.answer

        def remember(call: Call) -> Answer:
            self._caller = call.identity.client
            try:
                return answer(call)
            finally:
                self._caller = ""

        router.answer = remember  # type: ignore[method-assign]  # the one door that every write passes
        for resource in (MACHINE_POOLS, LEASES):
            router.store.collections[resource].listeners.append(partial(self._recorded, resource.plural))

    def _recorded(self, plural: str, event: Event) -> None:
        if plural == LEASES.plural and event.now.key.namespace != LEASE_NAMESPACE:
            return
        by = "" if self._caller == ADMIN.client else self._caller
        after = None if event.type == "DELETED" else event.now.body
        self.on_write(Write(self.now, by, plural, event.now.key.name, event.before.body if event.before else None, after))

    def _sends(self, client: str, request: Request) -> None:
        self.on_send(client, request)

    def _answered(self, client: str, request: Request, status: int, handled_at: float) -> None:
        self.on_answer(client, request, status, handled_at)
