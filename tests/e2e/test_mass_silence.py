"""2,000 pools fall silent on a real kube-apiserver: each is Unknown soon after its own deadline, and none that came back is marked."""

import asyncio
from collections.abc import Callable

import pytest

from tests.e2e import mass_silence
from tests.e2e.conftest import StartLoopwatch
from tests.real_servers.apiserver import ApiServer

POOLS = 2_000
LATEST_SECONDS = 15.0


@pytest.mark.alone
@pytest.mark.timeout(240)
@pytest.mark.parametrize("story", ["aligned", "phases", "return"])
def test_two_thousand_silent_pools_are_each_unknown_soon_after_their_deadline(
    story: str, api_server: ApiServer, start_loopwatch: StartLoopwatch, record_property: Callable[[str, object], None]
) -> None:
    figures = asyncio.run(mass_silence.play(story, api_server, lambda *flags: start_loopwatch("controller", *flags), POOLS))
    record_property(f"mass silence, {story}", str(figures))
    assert figures.throttled == 0
    assert figures.lead_changes == 1, "the leader lost its Lease"
    assert figures.wrongly_marked == 0
    assert figures.last_seconds <= LATEST_SECONDS
