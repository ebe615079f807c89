"""The loop of election against an API server of Leases, in virtual time: what it sends, when it leads, and what an operator is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from loopwatch.election.derive import Times
from loopwatch.election.elector import RELEASE_SECONDS, process_identity
from loopwatch.kube.transport import Request
from tests.support.contenders import KEY, Contender
from tests.support.lease_api import HEALTHY, Fate, LeaseApi
from tests.support.logs import Lines
from tests.support.processes import BEGIN, World

LOST = Fate(arrives_after=None)
ANSWER_LOST = Fate(answer_after=None)
SOON = 0.1


class Scene:
    """A world, an API server, contenders with fates that a test changes as it goes: `fates[name]` is asked for each request."""

    def __init__(self, *, namespace: bool = True) -> None:
        self.world = World()
        self.api = LeaseApi(*([KEY.namespace] if namespace else []))
        self.fates: dict[str, Callable[[Request], Fate]] = {}

    def contender(self, name: str = "a", times: Times | None = None) -> Contender:
        """One more contender, that starts now."""

        def fate_of(request: Request) -> Fate:
            return self.fates.get(name, _fine)(request)

        return Contender(self.world, name, self.api, times=times, fate_of=fate_of)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run(self.world.now + seconds)

    @property
    def spec(self) -> dict[str, Any]:
        """The Lease's spec as it stands."""
        spec: dict[str, Any] = self.api.leases[KEY]["spec"]
        return spec


def _fine(_request: Request) -> Fate:
    return HEALTHY


def writes_are(fate: Fate) -> Callable[[Request], Fate]:
    return lambda request: HEALTHY if request.method == "GET" else fate


def all_are(fate: Fate) -> Callable[[Request], Fate]:
    return lambda _request: fate


def once(fate: Fate, method: str = "PATCH") -> Callable[[Request], Fate]:
    """The first such request has this fate, all else is well."""
    left = [fate]
    return lambda request: left.pop() if request.method == method and left else HEALTHY


def methods(contender: Contender, since: float = 0.0) -> list[str]:
    return [request.method for at, request in contender.transport.sent if at >= since]


def told(contender: Contender) -> list[tuple[float, bool]]:
    return [(round(at - BEGIN, 3), change.leading) for at, change in contender.changes]


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    with scene.world:
        yield scene


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    with lines.caught():
        yield lines


def test_the_first_contender_makes_the_lease_and_leads_at_once(scene: Scene) -> None:
    first = scene.contender()
    scene.run(SOON)
    assert first.leads()
    assert methods(first) == ["GET", "POST"]
    assert scene.spec["holderIdentity"] == "a_1"
    assert (scene.spec["leaseDurationSeconds"], scene.spec["leaseTransitions"]) == (15, 0)
    assert [change.reason for _, change in first.changes] == ["there was no Lease: this process made it"]


def test_a_leader_sends_one_patch_each_retry_period_or_a_little_sooner_and_nothing_else(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(120)
    sent = leader.transport.sent[2:]
    assert {request.method for _, request in sent} == {"PATCH"}
    assert all(1.6 - 1e-9 <= later - earlier <= 2.0 + 1e-9 for (earlier, _), (later, _) in pairwise(sent))
    assert len(leader.changes) == leader.elector.transitions == 1
    assert {("fieldManager", "loopwatch-controller")} == {pair for _, request in sent for pair in request.query}


def test_slow_answers_do_not_thin_out_the_renewals(scene: Scene) -> None:
    scene.fates["a"] = all_are(Fate(answer_after=1.0))
    leader = scene.contender()
    scene.run(120)
    sent = [at for at, request in leader.transport.sent if request.method == "PATCH"]
    assert all(1.6 - 1e-9 <= later - earlier <= 2.0 + 1e-9 for earlier, later in pairwise(sent))


def test_a_renewal_moves_renew_time_alone(scene: Scene) -> None:
    scene.contender()
    scene.run(SOON)
    before = scene.spec
    scene.run(10)
    assert {field for field, value in scene.spec.items() if value != before[field]} == {"renewTime"}


def test_a_standby_only_reads_and_does_not_lead(scene: Scene) -> None:
    scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    scene.run(60)
    assert set(methods(standby)) == {"GET"}
    assert not standby.elector.leading()
    assert standby.elector.transitions == 0


def test_a_standby_takes_over_from_a_dead_leader_once_the_lease_stood_still_for_its_duration(scene: Scene) -> None:
    leader = scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    scene.run(20)
    leader.process.kill()
    killed_at = scene.world.now
    scene.run(18)
    (at, change), *_ = standby.changes
    assert change.leading
    assert 13 <= at - killed_at <= 17 + SOON
    assert scene.spec["leaseTransitions"] == 1
    assert scene.spec["acquireTime"] == scene.api.effects[-2][1]["spec"]["acquireTime"]


def test_a_lead_ends_at_its_deadline_while_a_request_still_hangs_and_that_is_told_then(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.fates["a"] = all_are(LOST)
    deadline = leader.elector.leads_until
    scene.run(deadline - scene.world.now - 0.001)
    assert leader.leads()
    scene.run(0.001)
    assert not leader.leads()
    scene.run(3)
    assert told(leader)[1:] == [(round(deadline - BEGIN, 3), False)]
    assert "the Lease was not renewed for 10 s: " in leader.changes[-1][1].reason
    assert "no answer within 4 s" in leader.changes[-1][1].reason


def test_the_end_of_a_lead_that_was_renewed_but_once_is_told_when_it_comes(scene: Scene) -> None:
    leader = scene.contender(times=Times(6, 4.0, 0.4))
    scene.run(0.6)
    scene.fates["a"] = all_are(LOST)
    deadline = leader.elector.leads_until
    assert deadline < BEGIN + 4.5
    scene.run(5)
    assert told(leader)[1:] == [(round(deadline - BEGIN, 3), False)]


def test_a_lead_that_lapsed_while_the_process_stood_still_is_told_though_the_next_one_is_there_already(scene: Scene) -> None:
    """The answer to the second try comes before the deadline, but both are met only after a stall."""
    leader = scene.contender()
    scene.run(SOON)
    fates = [LOST, Fate(answer_after=0.6), Fate(answer_after=3.2)]
    scene.fates["a"] = lambda _request: fates.pop(0) if fates else HEALTHY
    deadline = leader.elector.leads_until
    scene.run(deadline - 0.61 - scene.world.now)
    assert leader.leads()
    leader.process.stall(0.71)
    scene.run(0.71)
    assert leader.leads()
    assert [leading for _, leading in told(leader)] == [True, False, True]
    assert leader.elector.transitions == 3


def test_a_lead_that_lapsed_comes_back_with_the_next_renewal_and_both_are_counted(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.fates["a"] = all_are(LOST)
    scene.run(13)
    del scene.fates["a"]
    scene.run(6)
    assert [leading for _, leading in told(leader)] == [True, False, True]
    assert leader.elector.transitions == 3
    assert scene.spec["leaseTransitions"] == 0


@pytest.mark.parametrize("fate", [LOST, ANSWER_LOST, Fate(reset=True), Fate(disguise=504), Fate(refusal=503), Fate(refusal=429)])
def test_one_request_that_fails_in_any_way_does_not_cost_the_lead(scene: Scene, fate: Fate) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.fates["a"] = once(fate)
    scene.run(60)
    assert told(leader) == [(0.004, True)]


def test_a_lost_answer_is_read_back_and_counts_from_the_sending(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.fates["a"] = once(ANSWER_LOST)
    scene.run(2)
    (sent_at, _) = leader.transport.sent[-1]
    assert leader.elector.leads_until < sent_at + 10
    scene.run(sent_at + 4.003 - scene.world.now)
    assert methods(leader)[2:4] == ["PATCH", "GET"]
    assert leader.elector.leads_until == sent_at + 10


def test_a_lost_takeover_is_found_by_reading(scene: Scene) -> None:
    gone = scene.contender("a")
    scene.run(SOON)
    gone.process.kill()
    scene.fates["b"] = once(ANSWER_LOST)
    standby = scene.contender("b")
    scene.run(21)
    assert standby.changes[0][1].reason == "a write whose answer was lost had gone through"
    assert standby.leads()


def test_a_stranger_who_touches_the_lease_costs_a_read_and_no_lead(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    since = scene.world.now
    scene.api.touch(*KEY)
    scene.run(2)
    assert methods(leader, since) == ["PATCH", "GET", "PATCH"]
    assert len(leader.changes) == 1


def test_of_two_that_race_for_a_free_lease_one_leads_and_nothing_is_said_about_it(scene: Scene, lines: Lines) -> None:
    contenders = [scene.contender("a"), scene.contender("b")]
    scene.run(SOON)
    assert sum(contender.leads() for contender in contenders) == 1
    assert lines.texts() == []


def test_a_leader_whose_lease_was_taken_by_hand_stops_when_it_learns_of_it(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.api.touch(*KEY)
    scene.spec["holderIdentity"] = "somebody"
    scene.run(2.1)
    assert not leader.leads()
    assert leader.changes[-1][1].reason == "the Lease is held by somebody"
    assert scene.spec["holderIdentity"] == "somebody"


def test_a_leader_whose_lease_was_emptied_by_hand_takes_it_anew(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.api.touch(*KEY)
    scene.spec["holderIdentity"] = ""
    scene.run(2.1)
    assert [change.reason for _, change in leader.changes][1:] == [
        "nobody holds the Lease",
        "nobody held the Lease, or its holder had stopped renewing it",
    ]
    assert scene.spec["leaseTransitions"] == 1


def test_a_lease_that_was_deleted_is_made_again_by_its_leader_while_a_standby_waits(scene: Scene) -> None:
    leader = scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    scene.run(5)
    del scene.api.leases[KEY]
    scene.run(5)
    assert len(leader.changes) == 1
    assert leader.leads()
    assert not standby.changes


def test_a_process_that_stood_still_past_its_deadline_does_not_lead_when_it_goes_on(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(5)
    leader.process.stall(30)
    scene.run(30 - 1e-6)
    assert not leader.elector.leading()
    scene.run(1)
    assert leader.leads()
    assert [leading for _, leading in told(leader)] == [True, False, True]


def test_a_wall_clock_that_jumps_or_stands_still_changes_nothing_but_what_is_written(scene: Scene) -> None:
    leader = scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    leader.process.clock.frozen_at = leader.process.clock.utcnow()
    scene.run(40)
    leader.process.clock.frozen_at = None
    leader.process.clock.jump_wall(-86400)
    standby.process.clock.jump_wall(86400)
    scene.run(40)
    assert leader.leads()
    assert not standby.changes


def test_on_sigterm_the_lease_is_released_and_a_standby_leads_within_a_retry_period(scene: Scene) -> None:
    leader = scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    scene.run(5.5)
    leader.terminate()
    scene.run(SOON)
    assert leader.task.done()
    assert leader.changes[-1][1].reason == "this process ends"
    assert (scene.spec["holderIdentity"], scene.spec["leaseDurationSeconds"], scene.spec["leaseTransitions"]) == ("", 1, 0)
    scene.run(2)
    assert standby.leads()
    assert (scene.spec["leaseDurationSeconds"], scene.spec["leaseTransitions"]) == (15, 1)


@pytest.mark.parametrize("fate", [LOST, ANSWER_LOST])
def test_a_renewal_that_was_under_way_at_sigterm_is_read_back_before_the_release(scene: Scene, fate: Fate) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.fates["a"] = once(fate)
    scene.run(2.5)
    leader.terminate()
    scene.run(SOON)
    assert methods(leader)[-3:] == ["PATCH", "GET", "PATCH"]
    assert scene.spec["holderIdentity"] == ""


def test_a_release_that_conflicts_is_tried_again(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(1)
    scene.api.touch(*KEY)
    leader.terminate()
    scene.run(SOON)
    assert scene.spec["holderIdentity"] == ""


def test_with_the_api_away_a_process_ends_within_a_second_and_says_that_the_lease_was_not_released(scene: Scene, lines: Lines) -> None:
    leader = scene.contender()
    scene.run(1)
    scene.fates["a"] = all_are(LOST)
    leader.terminate()
    scene.run(RELEASE_SECONDS - 0.001)
    assert not leader.elector.leading()
    assert not leader.task.done()
    scene.run(0.001)
    assert leader.task.cancelled()
    (line,) = lines.texts("warning")
    assert line.startswith("the election Lease was not released: others take it once it has not changed for its duration")
    assert "lease=loopwatch/loopwatch-controller lease_seconds=15 error=no answer within 1 s" in line


def test_a_release_that_is_refused_is_said(scene: Scene, lines: Lines) -> None:
    leader = scene.contender()
    scene.run(1)
    scene.fates["a"] = writes_are(Fate(refusal=403))
    leader.terminate()
    scene.run(SOON)
    assert "the election Lease was not released" in lines.texts("warning")[-1]


def test_a_takeover_under_way_at_sigterm_whose_end_nobody_knows_is_said(scene: Scene, lines: Lines) -> None:
    scene.fates["a"] = lambda request: HEALTHY if request.method == "GET" and not cut else LOST
    cut: list[bool] = []
    contender = scene.contender()
    scene.run(1)
    cut.append(True)
    contender.terminate()
    scene.run(RELEASE_SECONDS)
    assert contender.task.done()
    assert "the election Lease was not released" in lines.texts("warning")[-1]


def test_a_standby_ends_without_a_word_or_a_request(scene: Scene, lines: Lines) -> None:
    scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    scene.run(5)
    sent = len(standby.transport.sent)
    standby.terminate()
    scene.run(SOON)
    assert standby.task.done()
    assert len(standby.transport.sent) == sent
    assert lines.texts() == []


def test_who_gives_up_stops_at_once_lets_go_and_contends_again_only_after_the_time_it_named(scene: Scene) -> None:
    leader = scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    scene.run(5.5)
    assert leader.elector.give_up(15)
    assert not leader.elector.leading()
    assert not leader.elector.give_up(15)
    gave_up_at = scene.world.now
    scene.run(2.1)
    assert standby.leads()
    assert methods(leader, gave_up_at) == ["PATCH"]
    standby.process.kill()
    scene.run(12.8)
    assert methods(leader, gave_up_at) == ["PATCH"]
    scene.run(20)
    assert leader.leads()
    assert leader.changes[1][1].reason == "this process gave the lead up"


def test_who_holds_no_lease_has_nothing_to_give_up(scene: Scene) -> None:
    scene.contender("a")
    scene.run(SOON)
    standby = scene.contender("b")
    scene.run(5)
    assert not standby.elector.give_up(15)
    sent = len(standby.transport.sent)
    scene.run(5)
    assert len(standby.transport.sent) > sent


def test_a_holder_whose_lead_has_lapsed_can_let_its_lease_go(scene: Scene) -> None:
    holder = scene.contender()
    scene.run(SOON)
    scene.fates["a"] = all_are(Fate(arrives_after=None, reset=True))
    scene.run(12)
    assert not holder.elector.leading()
    del scene.fates["a"]
    assert holder.elector.give_up(15)
    scene.run(SOON)
    assert scene.spec["holderIdentity"] == ""


def test_a_leader_whose_lease_vanished_and_can_not_be_made_again_can_give_up(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    del scene.api.leases[KEY]
    scene.fates["a"] = lambda request: Fate(refusal=403) if request.method == "POST" else HEALTHY
    scene.run(3)
    assert leader.leads()
    assert leader.elector.give_up(15)
    assert not leader.leads()
    del scene.fates["a"]
    scene.run(12)
    assert KEY not in scene.api.leases


def test_a_renewal_under_way_while_the_lead_is_given_up_is_followed_by_the_release(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(SOON)
    scene.fates["a"] = once(Fate(answer_after=1.0))
    scene.run(2)
    leader.elector.give_up(15)
    scene.run(1.1)
    assert not leader.elector.leading()
    assert scene.spec["holderIdentity"] == ""
    assert [leading for _, leading in told(leader)] == [True, False]


def test_a_release_that_fails_is_tried_each_period_until_it_is_through(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(1)
    scene.fates["a"] = all_are(Fate(refusal=503))
    leader.elector.give_up(60)
    scene.run(10)
    del scene.fates["a"]
    scene.run(2.1)
    assert scene.spec["holderIdentity"] == ""
    assert not leader.elector.leading()


def test_a_namespace_that_is_missing_is_named_and_once_it_is_there_the_process_leads(lines: Lines) -> None:
    scene = Scene(namespace=False)
    with scene.world:
        contender = scene.contender()
        scene.run(30)
        assert not contender.elector.leading()
        (line,) = lines.texts("warning")
        assert 'create leases.coordination.k8s.io loopwatch/loopwatch-controller: 404 NotFound: namespaces "loopwatch" not found' in line
        assert "fix=create the namespace loopwatch, or name one that exists with --leader-elect-resource-namespace" in line
        scene.api.namespaces.add("loopwatch")
        scene.run(2.1)
        assert contender.leads()


@pytest.mark.parametrize(
    ("status", "verb", "words"),
    [
        (403, "get", "no right to get leases.coordination.k8s.io in namespace loopwatch"),
        (403, "create", "no right to create leases.coordination.k8s.io in namespace loopwatch"),
        (401, "get", "fix=the API server does not accept this process's token or certificate"),
        (400, "create", "fix=check --leader-elect-resource-name and --leader-elect-resource-namespace"),
    ],
)
def test_a_refusal_is_said_with_what_to_do_once_a_minute_and_the_loop_goes_on(
    scene: Scene, lines: Lines, status: int, verb: str, words: str
) -> None:
    method = {"get": "GET", "create": "POST"}[verb]
    scene.fates["a"] = lambda request: Fate(refusal=status) if request.method == method else HEALTHY
    contender = scene.contender()
    scene.run(59)
    assert not contender.elector.leading()
    (line,) = lines.texts("warning")
    assert words in line
    del scene.fates["a"]
    scene.run(2.1)
    assert contender.leads()


def test_who_is_refused_sends_no_more_than_one_read_and_one_write_a_period(scene: Scene) -> None:
    scene.fates["a"] = writes_are(Fate(refusal=403))
    contender = scene.contender()
    scene.run(30)
    sent = methods(contender)
    assert sent == ["GET", "POST"] * (len(sent) // 2)
    assert len(sent) <= 2 * (30 / 1.6 + 1)


def test_a_round_makes_two_tries_and_no_more(scene: Scene) -> None:
    holder = scene.contender()
    scene.run(SOON)
    since = scene.world.now
    scene.fates["a"] = writes_are(Fate(refusal=503))
    scene.run(2)
    assert methods(holder, since) == ["PATCH", "GET", "PATCH"]
    scene.run(2)
    assert methods(holder, since)[3:] == ["GET", "PATCH", "GET", "PATCH"]


def test_an_answer_that_is_no_lease_ends_nothing(scene: Scene, lines: Lines) -> None:
    contender = scene.contender()
    scene.run(1)
    scene.fates["a"] = all_are(Fate(disguise=200))
    scene.run(30)
    assert not contender.elector.leading()
    assert lines.texts("warning")
    del scene.fates["a"]
    scene.run(2.1)
    assert contender.leads()


def test_a_contender_waits_as_long_as_the_server_asks_and_turns_meanwhile(scene: Scene) -> None:
    scene.fates["a"] = once(Fate(refusal=429, retry_after="50"), "GET")
    contender = scene.contender()
    scene.run(49.9)
    assert methods(contender) == ["GET"]
    assert all(later - earlier <= 15.01 for earlier, later in pairwise([*contender.turns, scene.world.now]))
    scene.run(SOON + SOON)
    assert contender.leads()


def test_a_holder_that_is_throttled_renews_at_its_next_tick_all_the_same(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(1)
    scene.fates["a"] = once(Fate(refusal=429, retry_after="60"))
    scene.run(60)
    assert len(leader.changes) == 1


def test_a_turn_is_never_longer_than_the_times_say_though_all_hangs(scene: Scene) -> None:
    scene.fates["a"] = all_are(LOST)
    contender = scene.contender()
    scene.run(300)
    longest = max(later - earlier for earlier, later in pairwise([*contender.turns, scene.world.now]))
    assert longest <= contender.times.longest_turn_seconds


def test_settings_of_two_replicas_may_differ_while_they_are_rolled_out(scene: Scene) -> None:
    """The new one waits for as long as the old one was promised."""
    old = scene.contender("a", Times(60, 40.0, 5.0))
    scene.run(SOON)
    new = scene.contender("b", Times(15, 10.0, 2.0))
    scene.run(30)
    old.process.kill()
    scene.run(50)
    assert not new.changes
    scene.run(12)
    assert new.leads()


def test_an_identity_is_another_one_for_each_process_of_a_host() -> None:
    one, other = process_identity(), process_identity()
    assert one != other
    assert one.rpartition("_")[0] == other.rpartition("_")[0] != ""


def test_a_task_that_fails_is_not_hidden_and_the_lease_is_let_go(scene: Scene) -> None:
    contender = scene.contender()
    scene.run(1)

    def fail(_change: object) -> None:
        raise RuntimeError("the caller's fault")

    contender.elector._on_change = fail
    scene.fates["a"] = all_are(LOST)
    scene.run(20)
    assert contender.task.done()
    (failure,) = contender.process.failures()
    assert isinstance(failure, BaseExceptionGroup)
    contender.process._tasks.clear()


def test_bodies_are_json_of_the_lease_alone(scene: Scene) -> None:
    leader = scene.contender()
    scene.run(3)
    bodies = [msgspec.json.decode(request.body) for _, request in leader.transport.sent if request.body]
    assert [sorted(body) for body in bodies] == [["apiVersion", "kind", "metadata", "spec"], ["metadata", "spec"]]
