"""docs/scenarios.md says of each scenario all that its row says."""

from __future__ import annotations

from loopwatch.catalogue import GROUPS
from tests.e2e.scenarios import SCENARIOS
from tools.scenarios_page import scenarios_page


def test_every_scenario_is_on_the_page_with_all_that_its_row_says() -> None:
    sections = scenarios_page(SCENARIOS).split("\n## ")[1:]
    assert len(sections) == len(SCENARIOS) == 17
    for section, scenario in zip(sections, SCENARIOS, strict=True):
        assert section.startswith(f"{scenario.number}. ")
        for text in (scenario.upstream, scenario.shows, scenario.does, *scenario.families, *(each.value for each in scenario.stand_ins)):
            assert text in section


def test_every_family_that_a_scenario_names_is_exposed() -> None:
    exposed = {family.name for group in GROUPS for family in group.families}
    assert {family for scenario in SCENARIOS for family in scenario.families} <= exposed


def test_the_page_says_which_patch_the_lifecycle_controller_sends_on_a_crd() -> None:
    page = " ".join(scenarios_page(SCENARIOS).split())
    assert "the stand-in of the lifecycle controller sends a merge patch" in page
