"""docs/scenarios.md, made from the table of scenarios that the end-to-end tests play."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.e2e.scenarios import Scenario
from tools.documents import COMMAND


def scenarios_page(scenarios: Sequence[Scenario]) -> str:
    """docs/scenarios.md: one section a scenario."""
    return "\n".join(
        [
            f"<!-- Written by `{COMMAND}` from tests/e2e/scenarios.py: change that, not this. -->\n",
            "# Scenarios",
            "",
            "The 17 scenarios in which IronCore v0.5.0 was measured (grace 5 s, heartbeat 2 s), and what loopwatch shows and does in each.",
            "`make e2e` plays them all on a real kube-apiserver (grace 5 s, heartbeat 1 s, Lease 4 s) and reads the families that are",
            "named. loopwatch's controller and sidecar are the real ones; IronCore's programs are stand-ins, named with each scenario,",
            "that send the bodies which the real ones were seen to send. MachinePool is a CRD there, and a CRD refuses strategic merge",
            "patches: the stand-in of the lifecycle controller sends a merge patch. Times that differ from the measured ones are given in",
            "brackets.",
            *(line for scenario in scenarios for line in _scenario_section(scenario)),
            "",
        ]
    )


def _scenario_section(scenario: Scenario) -> Iterable[str]:
    stand_ins = sorted(stand_in.value for stand_in in scenario.stand_ins)
    yield from ("", f"## {scenario.number}. {scenario.name[0].upper()}{scenario.name[1:]}", "")
    yield f"- **IronCore v0.5.0**: {scenario.upstream}"
    yield f"- **loopwatch shows**: {scenario.shows}"
    yield f"- **loopwatch does**: {scenario.does}"
    yield f"- **read**: {', '.join(f'`{family}`' for family in scenario.families)}"
    yield f"- **stand-ins**: {', '.join(stand_ins)}"
