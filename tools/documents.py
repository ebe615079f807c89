"""The pages of docs/ that are made from tables: metrics.md, rbac.md and settings.md.

Pure: tables in, Markdown out. Each page begins with the command that writes it, and says nothing that its table does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from loopwatch.check.table import Row, Severity
from loopwatch.metrics.family import Authority, Family, Group, Kind, Label
from loopwatch.rbac.model import Right
from loopwatch.settings.kinds import Kind as SettingKind
from loopwatch.settings.model import Command, Subject
from loopwatch.settings.table import Setting, Topic

COMMAND = "make gen"
_KINDS = {Kind.INFO: "info (a gauge that is always 1)", Kind.STATE_SET: "state set (gauges, exactly one of them 1)"}
_UNITS = {SettingKind.DURATION: "ms, s, m, h"}


def metrics_page(groups: Iterable[Group[Any]]) -> str:
    """docs/metrics.md: one section a group, in the order of the catalogue, one line a family."""
    return "\n".join(
        [
            _written_from("exporter/loopwatch/catalogue.py"),
            "# Metrics",
            "",
            "Every family that a process of loopwatch exposes on `/metrics`. A value that is not known is absent, never 0. A series",
            "vanishes with its object. Seconds are rounded to a millisecond.",
            "",
            "**Authority** says whose sample counts where several processes expose a family; alert rules and dashboards follow it.",
            "",
            *_table(("authority", "how to read it"), ((authority.value, authority.meaning) for authority in Authority)),
            "",
            "**Stability**: a `stable` name is neither renamed nor dropped within a major version; an `alpha` one may change, and",
            "CHANGELOG.md says so.",
            *(line for group in groups for line in _group_section(group)),
            "",
        ]
    )


def settings_page(rows: Sequence[Setting]) -> str:
    """docs/settings.md: one section a topic, one line a setting."""
    return "\n".join(
        [
            _written_from("exporter/loopwatch/settings/table.py"),
            "# Settings",
            "",
            "A flag goes before its environment variable, a variable before the default; an empty variable counts as not set.",
            "Durations are written as Go writes them: `500ms`, `10s`, `1m30s`. A boolean flag without a value is true: `--no-act` is",
            "`--no-act=true`. What can't be used is told in one line on stderr, with exit code 2.",
            *(line for topic in Topic for line in _topic_section(topic, rows)),
            "",
        ]
    )


def rights_page(rights: Sequence[Right]) -> str:
    """docs/rbac.md: one section a subject, one line a right."""
    return "\n".join(
        [
            _written_from("exporter/loopwatch/rbac/rights.py"),
            "# Rights",
            "",
            "The least that works: a right that is not here is given to nobody, and each line says what breaks without it. A missing",
            "right is told in the log with its verb, resource and namespace: when it is first missed, and once a minute while it is.",
            "",
            "`loopwatch rbac` prints them as a ServiceAccount with Roles, ClusterRoles and their bindings:",
            "",
            "    loopwatch rbac sidecar --machine-pool-name POOL --namespace NAMESPACE | kubectl apply -f -",
            "    loopwatch rbac controller --namespace NAMESPACE | kubectl apply -f -",
            "    loopwatch rbac reader --namespace NAMESPACE | kubectl apply -f -",
            "",
            "Give it the settings that the process is started with: what stands under *with* is needed with those alone. *Only* is the",
            "one object that a rule names; it can't name one for `create`. The namespaces must be there. Where pools, Leases and the",
            "process's own pod are in different clusters, apply the manifests to each: `tokenreviews`, `subjectaccessreviews` and the",
            "election's Lease are asked for in the pod's own.",
            "",
            "What the API server serves, and what oneself may do, everybody who is authenticated may ask: the ClusterRoles",
            "`system:discovery` and `system:basic-user` of Kubernetes allow it.",
            *(line for subject in Subject for line in _subject_section(subject, rights)),
            "",
        ]
    )


def check_page(rows: Sequence[Row]) -> str:
    """docs/check.md: what `loopwatch check` prints, and one line a finding, the gravest first."""
    ordered = sorted(rows, key=lambda row: list(Severity).index(row.severity), reverse=True)
    cells = (
        (f"`{row.key}`", row.severity.value, _escaped(row.title), _escaped(row.why), f"`{row.fix}`".replace("|", "\\|")) for row in ordered
    )
    return "\n".join(
        [
            _written_from("exporter/loopwatch/check/table.py"),
            "# loopwatch check",
            "",
            "Looks for what stands in the way, before installing and after, and changes nothing. `--as sidecar|controller|reader` says for",
            "which process to look; its other options are those that the process will be started with. Rights are asked about for the",
            "identity in use (`--kubeconfig`, or the pod's ServiceAccount), by SelfSubjectAccessReview. Looking needs the rights of",
            "`loopwatch rbac reader`, and watches Leases for `--watch`: pools that did not move in that time are told as silent.",
            "Whether ironcore-controller-manager runs is read from the Lease of its election, `ironcore-system/d0ae00be.ironcore.dev`,",
            "where that may be read; beyond it, another lifecycle shows by its name on a pool's Unknown.",
            "",
            "Exit code 0: no error was found; warnings are for somebody to think about. 1: an error was found. 2: the command line can't",
            "be used.",
            "",
            "## JSON",
            "",
            "`--output json` prints one document. Fields are added, but neither renamed nor dropped, while `schema` says `v1`.",
            "",
            *_table(
                ("field", "holds"),
                (
                    ("`schema`", "`loopwatch.check/v1`"),
                    ("`as`", "sidecar, controller or reader"),
                    ("`passed`", "false where a finding is an error"),
                    ("`counts`", "how many findings of each severity: `ok`, `info`, `warning`, `error`"),
                    ("`findings[].check`", "a key of the table below; one with severity `ok` says that all is well there"),
                    ("`findings[].severity`", "`ok`, `info`, `warning` or `error`"),
                    ("`findings[].what`", "what was found, in words"),
                    ("`findings[].why`", "why it matters; empty for `ok`"),
                    ("`findings[].fix`", "the command that mends it, or shows more; empty for `ok`"),
                    ("`findings[].objects`", "every pool, object or right that it is about"),
                ),
            ),
            "",
            "## Findings",
            "",
            *_table(("check", "severity", "what", "why it matters", "what mends it"), cells),
            "",
        ]
    )


def _written_from(source: str) -> str:
    return f"<!-- Written by `{COMMAND}` from {source}: change that, not this. -->\n"


def _group_section(group: Group[Any]) -> Iterable[str]:
    yield from ("", f"## {group.name[0].upper()}{group.name[1:]}", "")
    if group.labels:
        yield from (f"Every series carries {', '.join(map(_label, group.labels))}.", "")
    heads = ("family", "type", "unit", "labels", "authority", "stability", "exposed by", "meaning")
    yield from _table(heads, (_family_cells(group, family) for family in group.families))


def _family_cells(group: Group[Any], family: Family[Any]) -> Sequence[str]:
    return (
        f"`{family.name}`",
        _KINDS.get(family.kind, family.kind.value),
        family.unit,
        "<br>".join((*(f"`{label.name}`" for label in group.labels), *map(_label, family.labels))),
        family.authority.value,
        family.stability.value,
        ", ".join(component.value for component in family.exposed_by),
        _escaped(family.help),
    )


def _label(label: Label) -> str:
    return f"`{label.name}` ({_escaped(label.bound)})"


def _subject_section(subject: Subject, rights: Sequence[Right]) -> Iterable[str]:
    yield from ("", f"## {subject.value[0].upper()}{subject.value[1:]}", "")
    heads = ("verb", "resource", "where", "only", "with", "room", "what for", "without it")
    yield from _table(heads, (_right_cells(right) for right in rights if right.subject is subject))


def _right_cells(right: Right) -> Sequence[str]:
    group = f" ({right.resource.group})" if right.resource and right.resource.group else ""
    return (
        right.verb,
        f"`{right.what}`{group}" if right.resource else f"`{right.what}` (nonResourceURLs)",
        right.scope.value,
        f"`{right.named.value}`" if right.named.value else "",
        "<br>".join(f"`--{when.setting}` {' or '.join(when.values)}" for when in right.when),
        right.room.value,
        _escaped(right.why),
        _escaped(right.without),
    )


def _topic_section(topic: Topic, rows: Sequence[Setting]) -> Iterable[str]:
    of_topic = [row for row in rows if row.topic is topic]
    if of_topic:
        yield from ("", f"## {topic.value}", "")
        heads = ("flag", "variable", "type", "default", "unit", "range", "commands", "meaning")
        yield from _table(heads, map(_setting_cells, of_topic))


def _setting_cells(row: Setting) -> Sequence[str]:
    variables = [f"`{name}`" for name in (row.variable, row.fallback_variable) if name]
    meaning = f"{row.help} (Also a flag of IronCore's {row.upstream}.)" if row.upstream else row.help
    return (
        f"`{row.flag}`",
        ", else ".join(variables),
        _escaped(row.kind.value),
        f"`{row.default}`" if row.default else "",
        row.unit or _UNITS.get(row.kind, ""),
        _escaped(row.allowed),
        ", ".join(command.value for command in Command if command in row.commands),
        _escaped(meaning),
    )


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterable[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for cells in lines:
        yield f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Plain text within a table's cell."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
