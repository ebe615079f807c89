"""What one controller could know: which answers it got and when, what of each pool had been delivered to it.

Kept beside the product, from the messages that reached the process and from what its observer held after each event; the arithmetic is
done again here. One witness for each process: a new one knows nothing.
"""

from __future__ import annotations

from loopwatch.controller import Controller
from loopwatch.kube.transport import Request
from loopwatch.pools.derive.view import PoolView
from loopwatch.pools.model import Condition
from tests.faults.paths import is_consistent_read, is_watch, resource_of
from tests.faults.truth import Ready, instant, ready_moved

RESOURCES = ("leases", "machinepools")
FULL_LIST = "*"


class Sight:
    """The stretches in which both APIs had answered a read within the last fifth of the grace."""

    def __init__(self, grace_seconds: float) -> None:
        self._window = grace_seconds / 5
        self._answers: dict[str, float] = {}
        self._stretches: list[list[float]] = []

    def answered(self, resource: str, at: float) -> None:
        """A list, or the opening of a watch, was answered with 200."""
        self._answers[resource] = at
        if len(self._answers) < len(RESOURCES):
            return
        until = min(self._answers.values()) + self._window
        if self._stretches and at <= self._stretches[-1][1]:
            self._stretches[-1][1] = max(until, self._stretches[-1][1])
        elif until > at:
            self._stretches.append([at, until])

    def has(self, at: float) -> bool:
        """Whether it is in sight at a moment that is not before the last answer."""
        return bool(self._stretches) and at < self._stretches[-1][1]

    def first_gap_ended(self, since: float) -> float:
        """When the first gap ended that ended after `since`; `since` itself where there was none. What was before all sight is no gap."""
        began = [begin for begin, _ in self._stretches[1:] if begin > since]
        return began[0] if began else since

    def seconds(self, since: float, until: float) -> float:
        """How much of that time was in sight."""
        total = 0.0
        for begin, end in reversed(self._stretches):
            if end <= since:
                break
            total += max(min(end, until) - max(begin, since), 0.0)
        return total


class Seen:
    """One pool, as it was delivered."""

    def __init__(self, view: PoolView, at: float) -> None:
        self.uid = view.pool.metadata.uid if view.pool else ""
        self.ready = _ready(view.pool.ready if view.pool else None)
        self.lease_known, self.renew_time = view.lease_known, _renew_time(view)
        self.progress_at = at

    def take(self, view: PoolView, at: float) -> None:
        """The observer holds something else now."""
        ready, renew_time = _ready(view.pool.ready if view.pool else None), _renew_time(view)
        if ready_moved(self.ready, ready) or (self.lease_known and renew_time != self.renew_time):
            self.progress_at = at
        self.ready, self.renew_time, self.lease_known = ready, renew_time, view.lease_known


class Witness:
    """One controller's."""

    def __init__(self, client: str, controller: Controller, grace_seconds: float, now: float) -> None:
        self.client, self.controller = client, controller
        self.sight = Sight(grace_seconds)
        self.seen: dict[str, Seen] = {}
        self.series_began_anew: set[str] = set()
        self.began = now
        self._reads: dict[tuple[str, str], float] = {}
        self._first_lists: dict[str, float] = {}
        self._due_news: dict[tuple[str, str], list[float]] = {}

    def look(self, name: str, at: float) -> None:
        """The observer's view of a pool has changed."""
        view = self.controller.observer.views.get(name)
        if view is None or view.pool is None:
            self.seen.pop(name, None)
            self.series_began_anew.add(name)
            return
        seen = self.seen.get(name)
        if seen is None or seen.uid != view.pool.metadata.uid:
            self.seen[name] = Seen(view, at)
            self.series_began_anew.add(name)
        else:
            seen.take(view, at)

    def answered(self, request: Request, status: int, handled_at: float, at: float) -> None:
        """An answer was read by the process."""
        resource = resource_of(request.path)
        last = request.path.rsplit("/", 1)[1]
        is_object = last != resource
        if resource not in RESOURCES or request.method != "GET" or not (status == 200 or (status == 404 and is_object)):
            return
        if not is_object:
            self.sight.answered(resource, at)
        if is_watch(request) or not is_consistent_read(request) or dict(request.query).get("limit") == "1":
            return
        if not is_object:
            self._first_lists.setdefault(resource, handled_at)
        self._reads[resource, last if is_object else FULL_LIST] = handled_at

    def read_at(self, resource: str, pool: str) -> float | None:
        """When the server handled the last read that showed this pool's object (or that there is none); None without one."""
        reads = [self._reads.get((resource, name)) for name in (pool, FULL_LIST)]
        return max((read for read in reads if read is not None), default=None)

    def owes(self, resource: str, pool: str, at: float) -> None:
        """The pool made progress at a moment at which nothing had hindered this process for long: it has to hear of it."""
        self._due_news.setdefault((resource, pool), []).append(at)

    def last_due_news(self, resource: str, pool: str, until: float) -> float | None:
        """The last of those moments, up to `until`; None where there was none."""
        return max((at for at in self._due_news.get((resource, pool), ()) if at <= until), default=None)

    def knows_since(self, resource: str) -> float:
        """When the server handled the list that was this process's first: what changed before it is no change to the process."""
        return self._first_lists.get(resource, float("inf"))

    def silence(self, pool: str, at: float) -> float | None:
        """For how long, in sight, the pool has shown no progress to this process; None for a pool that it does not know."""
        seen = self.seen.get(pool)
        return None if seen is None else self.sight.seconds(seen.progress_at, at)


def _ready(condition: Condition | None) -> Ready | None:
    return None if condition is None else Ready(condition.status, condition.reason, condition.observed_generation)


def _renew_time(view: PoolView) -> object:
    return instant(view.lease.renew_time) if view.lease else None
