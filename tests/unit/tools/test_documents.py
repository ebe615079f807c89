"""The pages made from tables, and how drift is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwatch.catalogue import GROUPS
from loopwatch.metrics.family import Authority, Component, Family, Group, Kind, Label, Stability
from loopwatch.rbac.rights import RIGHTS
from loopwatch.settings.model import Subject
from loopwatch.settings.table import SETTINGS
from tools import generate, generate_iri
from tools.documents import metrics_page, rights_page, settings_page

SAMPLE = Group[int](
    "machinepool",
    (Label("pool", "one per pool"),),
    (
        Family("x_age_seconds", Kind.GAUGE, "Age | in <s> at *most*.", lambda facts: facts, Authority.FRESHEST),
        Family(
            "x_ready",
            Kind.STATE_SET,
            "Ready.",
            lambda _: "a",
            Authority.LEADER,
            labels=(Label("status", "a, b"),),
            states=("a", "b"),
            exposed_by=(Component.CONTROLLER,),
            stability=Stability.ALPHA,
        ),
    ),
)


def test_a_family_is_one_line_with_all_that_the_table_says() -> None:
    page = metrics_page([SAMPLE])
    heads = "| family | type | unit | labels | authority | stability | exposed by | meaning |"
    assert "\n## Machinepool\n\nEvery series carries `pool` (one per pool).\n\n" + heads in page
    lines = page.splitlines()
    age = "| `x_age_seconds` | gauge | seconds | `pool` | freshest | stable | controller, sidecar | Age \\| in &lt;s> at \\*most\\*. |"
    state_set = "state set (gauges, exactly one of them 1)"
    assert age in lines
    assert f"| `x_ready` | {state_set} |  | `pool`<br>`status` (a, b) | leader | alpha | controller | Ready. |" in lines


def test_the_metrics_page_explains_every_authority() -> None:
    page = metrics_page([])
    for authority in Authority:
        assert f"| {authority.value} | {authority.meaning} |" in page


def test_every_family_and_every_setting_is_on_its_page_once() -> None:
    page = metrics_page(GROUPS)
    assert [page.count(f"| `{family.name}` |") for group in GROUPS for family in group.families] == [1] * sum(
        len(group.families) for group in GROUPS
    )
    page = settings_page(SETTINGS)
    assert [page.count(f"| `{row.flag}` | `{row.variable}`") for row in SETTINGS] == [1] * len(SETTINGS)


def test_a_setting_is_one_line_with_all_that_the_table_says() -> None:
    page = settings_page(SETTINGS)
    assert (
        "\n| `--heartbeat-status-timeout` | `LOOPWATCH_HEARTBEAT_STATUS_TIMEOUT` | duration | `5s` | ms, s, m, h | "
        "> 0 and less than --heartbeat-interval | sidecar | How long the machine runtime may take for its Status answer. "
        "(Also a flag of IronCore's machinepoollet.) |\n"
    ) in page
    assert "`LOOPWATCH_MACHINE_RUNTIME_ENDPOINT`, else `IRI_MACHINE_RUNTIME_ENDPOINT`" in page


def test_a_right_is_one_line_with_all_that_the_table_says() -> None:
    page = rights_page(RIGHTS)
    assert (
        "\n| patch | `leases` (coordination.k8s.io) | namespace ironcore-machinepool-lease | `--machine-pool-name` | "
        "`--mode` auto or report | pools | each heartbeat | The Lease is made and never renewed, so the pool falls silent: "
        "loopwatch_heartbeat_lease_writes_total counts forbidden. |\n"
    ) in page
    assert "\n| get | `/metrics` (nonResourceURLs) | cluster |" in page
    assert sum(line.startswith("| ") for line in page.splitlines()) == len(RIGHTS) + 2 * len(Subject), "each right, and each table's head"


@pytest.mark.parametrize("page", [metrics_page(GROUPS), rights_page(RIGHTS), settings_page(SETTINGS)], ids=["metrics", "rbac", "settings"])
def test_tables_are_whole_and_the_page_says_what_writes_it(page: str) -> None:
    assert page.startswith("<!-- Written by `make gen` from exporter/loopwatch/")
    assert page.endswith("|\n")
    assert not page.endswith("\n\n")
    width = 0
    for line in page.splitlines():
        columns = line.replace("\\|", "").count("|") if line.startswith("|") else 0
        assert not (columns and width) or columns == width, line
        width = columns


def test_drift_is_found_shown_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = ["docs/check.md", "docs/metrics.md", "docs/rbac.md", "docs/scenarios.md", "docs/settings.md"]
    assert generate.write_documents(tmp_path, check=True) == everything
    assert list(tmp_path.iterdir()) == [], "a check writes nothing"
    assert generate.write_documents(tmp_path, check=False) == everything
    assert generate.write_documents(tmp_path, check=True) == []
    settings = tmp_path / "docs/settings.md"
    settings.write_text(settings.read_text().replace("| `50s` |", "| `51s` |"))
    capsys.readouterr()
    assert generate.write_documents(tmp_path, check=True) == ["docs/settings.md"]
    shown = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("-|") for line in shown) == sum(line.startswith("+|") for line in shown) == 1
    assert generate.write_documents(tmp_path, check=False) == ["docs/settings.md"]
    assert generate.write_documents(tmp_path, check=True) == []


@pytest.mark.parametrize(("drifted", "code"), [([], 0), (["exporter/x"], 1)])
def test_a_check_fails_where_any_generator_finds_drift(drifted: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["generate", "--check"])
    monkeypatch.setattr(generate, "write_documents", lambda _root, *, check: [] if check else ["wrote"])
    monkeypatch.setattr(generate_iri, "write", lambda check: drifted if check else ["wrote"])
    assert generate.main() == code
    monkeypatch.setattr("sys.argv", ["generate"])
    assert generate.main() == 0, "what was written is not drift"
