"""What holds for the duty whatever comes in whatever order, and for two sidecars on one lease."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from loopwatch.pools.derive import duty as duties
from loopwatch.pools.derive import lease_sight
from loopwatch.pools.derive.duty import Duty, Presence, State
from loopwatch.pools.model import HOLDER_ANNOTATION, Lease
from loopwatch.settings.model import Mode
from tests.support import pools

US, OTHER, MACHINEPOOLLET = "pool-a_us", "pool-a_other", "pool-a_poollet"
INTERVAL = 10.0

leases = st.one_of(
    st.none(),
    st.builds(
        lambda holder, beat, named: pools.lease(
            renew_time=pools.renewal(beat), holder=holder, **({HOLDER_ANNOTATION: named} if named else {})
        ),
        st.sampled_from([US, OTHER, MACHINEPOOLLET]),
        st.integers(0, 5),
        st.sampled_from([US, OTHER, ""]),
    ),
)
events = st.one_of(
    st.tuples(st.just("lease"), leases),
    st.tuples(st.just("pool"), st.sampled_from(Presence)),
    st.tuples(st.just("machinepoollet"), st.booleans()),
    st.tuples(st.just("time"), st.none()),
)
histories = st.lists(st.tuples(events, st.floats(0, 25)), max_size=40)


def after(duty: Duty, event: tuple[str, object], at: float) -> Duty:
    match event:
        case "lease", (None | Lease()) as lease:
            return duties.lease_seen(duty, lease, at)
        case "pool", Presence() as presence:
            return duties.pool_seen(duty, presence, at)
        case "machinepoollet", bool() as answered:
            return (duties.machinepoollet_answered if answered else duties.machinepoollet_missed)(duty, at)
        case _:
            return duties.settle(duty, at)


def is_machinepoollet_s(lease: Lease | None) -> bool:
    return lease is not None and lease.holder not in {US, (lease.metadata.annotations or {}).get(HOLDER_ANNOTATION)}


@given(histories)
def test_auto_never_reports_once_a_machinepoollet_was_seen_to_renew(history: list[tuple[tuple[str, object], float]]) -> None:
    duty, at = duties.begin(Mode.AUTO, US, INTERVAL, ask_machinepoollet=True, at=0.0), 0.0
    seen: list[Lease | None] = []
    renewed = False
    for event, pause in history:
        at += pause
        duty = after(duty, event, at)
        if event[0] == "lease":
            lease = event[1]
            assert lease is None or isinstance(lease, Lease)
            before = seen[-1] if seen else None
            moved = (
                bool(seen)
                and lease is not None
                and (before is None or (before.renew_time, before.holder) != (lease.renew_time, lease.holder))
            )
            renewed = renewed or (moved and is_machinepoollet_s(lease))
            seen.append(lease)
        assert not (renewed and duty.reporting)
        assert not renewed or duty.state is State.OBSERVING


@given(st.sampled_from(Mode), histories)
def test_nobody_reports_without_a_living_machinepoollet_nor_for_an_absent_pool(
    mode: Mode, history: list[tuple[tuple[str, object], float]]
) -> None:
    duty, at = duties.begin(mode, US, INTERVAL, ask_machinepoollet=True, at=0.0), 0.0
    answered, running, presence = False, 0, Presence.UNKNOWN
    nowhere = False
    for event, pause in history:
        at += pause
        duty = after(duty, event, at)
        if event[0] == "machinepoollet":
            answered = answered or bool(event[1])
            running = 0 if event[1] else running + answered
        if event[0] == "pool":
            assert isinstance(event[1], Presence)
            presence = event[1]
        if event[0] == "lease":
            nowhere = event[1] is None
        if not answered or running > 1 or presence is Presence.ABSENT or mode is Mode.OBSERVE:
            assert not duty.reporting
        elif mode is Mode.REPORT:
            assert duty.reporting is not (nowhere and presence is Presence.UNKNOWN)


@given(histories, st.floats(0, 1000))
def test_stillness_is_never_more_than_the_time_that_passed_nor_than_what_was_in_sight(
    history: list[tuple[tuple[str, object], float]], more: float
) -> None:
    duty, at, looks = duties.begin(Mode.AUTO, US, INTERVAL, ask_machinepoollet=False, at=0.0), 0.0, 0
    for event, pause in history:
        at += pause
        looks += event[0] == "lease"
        duty = after(duty, event, at)
    still = lease_sight.still_for(duty.sight, at + more)
    assert 0 <= still <= at + more + 1e-6
    assert still <= looks * INTERVAL + 1e-6


@given(st.sampled_from(Mode), histories)
def test_no_wake_up_lies_in_the_past_but_for_a_look_that_is_due(mode: Mode, history: list[tuple[tuple[str, object], float]]) -> None:
    duty, at = duties.begin(mode, US, INTERVAL, ask_machinepoollet=True, at=0.0), 0.0
    for event, pause in history:
        at += pause
        duty = after(duty, event, at)
        assert duties.still_at(duty, at) > at
        if event[0] == "lease" and duty.watching:
            assert duties.look_at(duty) == at + INTERVAL


@dataclass
class Lived:
    """One sidecar in `auto` on a world of one lease: it sees the lease after a delay, and writes by version at its own ticks."""

    name: str
    offset: float
    delay: float
    duty: Duty
    sees: int = -1
    alive: bool = True


@dataclass
class World:
    """The lease's states in order, with the moment of each."""

    states: list[tuple[float, Lease | None]] = field(default_factory=lambda: [(0.0, None)])

    def write(self, at: float, holder: str) -> None:
        """A renewal, or a takeover, by a sidecar."""
        lease = pools.lease(renew_time=pools.renewal(len(self.states)), holder=holder, **{HOLDER_ANNOTATION: holder})
        self.states.append((at, lease))

    def newest(self) -> int:
        """The number of the newest state: its resourceVersion."""
        return len(self.states) - 1


STEP = 0.5


def live(world: World, sidecars: list[Lived], begin: float, end: float) -> list[list[str]]:
    """Let them live; who reports at each step."""
    reporters, at = [], begin
    while at < end:
        for each in [each for each in sidecars if each.alive]:
            visible = max(index for index, (when, _) in enumerate(world.states) if when <= max(at - each.delay, 0))
            # A watch that brings nothing is made up for by a GET each interval: the lease stays in sight.
            if visible > each.sees or at - each.duty.sight.contact_at >= INTERVAL:
                each.sees = max(visible, each.sees)
                each.duty = duties.lease_seen(each.duty, world.states[each.sees][1], at)
            each.duty = duties.settle(each.duty, at)
            if each.duty.reporting and (at - each.offset) % INTERVAL < STEP:
                if each.sees == world.newest():
                    world.write(at, each.name)
                each.sees = world.newest()
                each.duty = duties.lease_seen(each.duty, world.states[each.sees][1], at)
        reporters.append([each.name for each in sidecars if each.alive and each.duty.reporting])
        at += STEP
    return reporters


def sidecar(name: str, offset: float, delay: float) -> Lived:
    duty = duties.begin(Mode.AUTO, name, INTERVAL, ask_machinepoollet=False, at=0.0)
    return Lived(name, offset, delay, duties.pool_seen(duty, Presence.PRESENT, 0.0))


half_steps = st.integers(0, 19).map(lambda halves: halves * STEP)


@settings(max_examples=60, deadline=None)
@given(half_steps, half_steps, half_steps, half_steps)
def test_of_two_sidecars_in_auto_one_reports_and_the_other_takes_over_when_it_dies(
    offset_a: float, offset_b: float, delay_a: float, delay_b: float
) -> None:
    a, b = sidecar("a", offset_a, delay_a), sidecar("b", offset_b, delay_b)
    world = World()
    live(world, [a, b], 0, 100)
    steady = live(world, [a, b], 100, 300)
    assert steady == [steady[0]] * len(steady), "no change of reporter while both live"
    assert len(steady[0]) == 1
    reporter, standby = (a, b) if a.duty.reporting else (b, a)
    assert standby.duty.state is State.STANDBY
    reporter.alive = False
    last_beat = world.states[-1][0]
    live(world, [a, b], 300, 400)
    assert standby.duty.reporting
    taken = next(when for when, lease in world.states if lease and lease.holder == standby.name and when > last_beat)
    assert 3 * INTERVAL <= taken - last_beat <= 5 * INTERVAL + standby.delay
