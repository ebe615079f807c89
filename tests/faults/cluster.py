"""A scenario: the hosts of a plan on some ground, and the hands that begin and end its troubles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from loopwatch.sandbox.runtime.behaviours import AnyBehaviour, Ok
from tests.faults import troubles
from tests.faults.ground import RESOURCES, Cut, End, Ground
from tests.faults.hands import Hands
from tests.faults.hosts import ControllerHost, Host
from tests.faults.plan import Plan, PodCast
from tests.faults.pods import Pod, PoolletHost, SidecarHost
from tests.faults.troubles import Misfortune, Trouble, aftermath_seconds, touched

NOTHING: End = lambda: None  # noqa: E731 - an end that has nothing to do


class Cluster:
    """Everybody of one plan."""

    def __init__(self, plan: Plan, ground: Ground) -> None:
        self.plan, self.ground = plan, ground
        self.journal = ground.journal
        self.began = ground.now
        self.hands = Hands(ground.api, self.journal)
        self.pods = {cast.pool: self._pod(cast) for cast in plan.pods}
        self.controllers = [
            ControllerHost(self.ground, name, mark_never_reported=plan.mark_never_reported) for name in plan.controller_hosts
        ]
        self._in_force: dict[int, Trouble] = {}
        self._disturbed: dict[str, float] = {}
        self._down_until: dict[str, float] = {}

    @property
    def hosts(self) -> list[Host]:
        """All of them."""
        of_pods = [host for pod in self.pods.values() for host in (pod.poollet, *pod.sidecars) if host is not None]
        return [*self.controllers, *of_pods]

    def host(self, name: str) -> Host:
        """One of them."""
        return next(host for host in self.hosts if host.name == name)

    def begin(self) -> None:
        """Make the pools, start everybody, and have the plan's misfortunes happen."""
        for cast in self.plan.pods:
            self.hands.put_pool(cast.pool)
            pod = self.pods[cast.pool]
            for host in (pod.poollet, *pod.sidecars):
                if host is not None:
                    self._at(cast.starts, host.start)
        for controller in self.controllers:
            controller.start()
        for misfortune in self.plan.misfortunes:
            self._at(misfortune.at, partial(self._begins, misfortune))

    def undisturbed_seconds(self, host: Host) -> float:
        """For how long nothing has come between this host's process and its work; 0 while something does, or no process is there."""
        if not host.running or any(touched(trouble, host.name) for trouble in self._in_force.values()):
            return 0.0
        return self.ground.now - max(self._disturbed.get(host.name, 0.0), host.started_at)

    def _at(self, seconds: float, what: Callable[[], object]) -> None:
        self.ground.at(self.began + seconds, what)

    def _pod(self, cast: PodCast) -> Pod:
        pod = Pod(self.ground, cast.pool)
        if cast.poollet != "none":
            pod.poollet = PoolletHost(pod, f"poollet-{cast.pool}", cast.poollet)
        pod.sidecars = [
            SidecarHost(pod, f"sidecar-{cast.pool}-{number}", mode, asks_poollet=cast.poollet != "none")
            for number, mode in enumerate(cast.sidecars)
        ]
        return pod

    # Troubles: each is begun by a method that gives its end.

    def _begins(self, misfortune: Misfortune) -> None:
        trouble = misfortune.trouble
        self.journal.note("trouble", f"begins, for {misfortune.seconds:.3f} s: {trouble}")
        number = id(misfortune)
        self._in_force[number] = trouble
        end = self._begin(trouble, misfortune.seconds)
        self.ground.at(self.ground.now + misfortune.seconds, partial(self._ends, number, trouble, end))

    def _ends(self, number: int, trouble: Trouble, end: End) -> None:
        del self._in_force[number]
        end()
        self.journal.note("trouble", f"ends: {trouble}")
        over = self.ground.now + aftermath_seconds(trouble)
        for host in self.hosts:
            if touched(trouble, host.name):
                self._disturbed[host.name] = max(over, self._disturbed.get(host.name, 0.0))

    def _begin(self, trouble: Trouble, seconds: float) -> End:  # noqa: C901 - one line for each kind
        match trouble:
            case troubles.ApiFault(fault=fault):
                return self.ground.add_fault(fault)
            case troubles.Partition(host=host, resource=resource, cut=cut):
                return self.ground.partition([host], RESOURCES if resource == "*" else (resource,), cut)
            case troubles.Stall(host=host):
                self.host(host).stall(seconds)
            case troubles.Down(host=host, clean=clean):
                return self._down(self.host(host), seconds, clean=clean)
            case troubles.PodDown(pool=pool):
                return self._pod_down(self.pods[pool], seconds)
            case troubles.ServerStall():
                return self.ground.stall_server([host.name for host in self.hosts], seconds)
            case troubles.ServerDown():
                return self.ground.partition([host.name for host in self.hosts], RESOURCES, "refuse")
            case troubles.Compaction():
                self.ground.compact()
            case troubles.WallJump(host=host, by_seconds=by_seconds):
                self.host(host).jump_wall(by_seconds)
                return lambda: self.host(host).jump_wall(-by_seconds)
            case troubles.RuntimeTrouble(pool=pool, behaviour=behaviour):
                return self._runtime(self.pods[pool], behaviour)
            case troubles.PodCut(pool=pool, to=to, cut=cut):
                return self._pod_cut(self.pods[pool], to, cut)
            case troubles.PoolGone(pool=pool):
                return self.hands.delete_pool(pool)
            case troubles.LeaseGone(pool=pool):
                self.hands.delete_lease(pool)
            case troubles.ForeignCondition(pool=pool, type=condition_type):
                return self.hands.add_condition(pool, condition_type)
            case troubles.SpecChange(pool=pool):
                self.hands.change_spec(pool)
            case troubles.BrokenObject(pool=pool, of=of):
                return self.hands.break_object(pool, of)
        return NOTHING

    def _down(self, host: Host, seconds: float, *, clean: bool) -> End:
        if clean:
            host.terminate()
        else:
            host.kill()
        return self._start_again(host, seconds)

    def _pod_down(self, pod: Pod, seconds: float) -> End:
        hosts = [host for host in (pod.poollet, *pod.sidecars) if host is not None]
        for host in hosts:
            host.kill()
        starts = [self._start_again(host, seconds) for host in hosts]

        def start() -> None:
            for each in starts:
                each()

        return start

    def _start_again(self, host: Host, seconds: float) -> End:
        """Not before the last that took it down is over; a process that ends by itself is left its second."""
        until = max(self._down_until.get(host.name, 0.0), self.ground.now + seconds)
        self._down_until[host.name] = until

        def start() -> None:
            if self.ground.now >= self._down_until[host.name]:
                self._start_when_gone(host)

        return start

    def _start_when_gone(self, host: Host) -> None:
        """A kubelet starts the next when the last has ended, and kills what has not within its time."""
        if host.up and host.ending:
            host.kill()
        host.start()

    def _runtime(self, pod: Pod, behaviour: AnyBehaviour | None) -> End:
        runtime = pod.runtime
        if behaviour is None:
            runtime.set_down(down=True)
            return lambda: runtime.set_down(down=False)
        runtime.set_behaviour(behaviour)
        return lambda: runtime.set_behaviour(Ok())

    def _pod_cut(self, pod: Pod, to: str, cut: Cut) -> End:
        def set_to(now: Cut | None) -> None:
            if to == "runtime":
                pod.to_runtime = now
            else:
                pod.to_poollet = now

        set_to(cut)
        return lambda: set_to(None)
