"""The settings of the commands that are no process of a cluster."""

from __future__ import annotations

from loopwatch.settings.kinds import HIGHEST_PORT, Kind, dns_label_problem, dns_subdomain_problem
from loopwatch.settings.model import Command, Output, Subject
from loopwatch.settings.setting import Setting, Topic, not_below_zero

_DEMO = (Command.DEMO,)
_RBAC = (Command.RBAC,)
_CHECK = (Command.CHECK,)


def _port(number: int) -> str:
    return "" if number <= HIGHEST_PORT else f"must be a port from 0 to {HIGHEST_PORT}, got {number}"


TOOL_ROWS = (
    Setting(
        name="port",
        kind=Kind.COUNT,
        commands=_DEMO,
        topic=Topic.DEMO,
        default="9808",
        unit="TCP port",
        range=f"0 to {HIGHEST_PORT}; 0 takes a free one",
        check=_port,
        help="The port of the demo's page on 127.0.0.1.",
    ),
    Setting(
        name="once",
        kind=Kind.BOOLEAN,
        commands=_DEMO,
        topic=Topic.DEMO,
        default="false",
        help="Play the story once, check what /metrics showed of it, and exit 0 or 1.",
    ),
    Setting(
        name="process",
        kind=Kind.CHOICE,
        commands=_RBAC,
        topic=Topic.RIGHTS,
        positional=True,
        choices=tuple(subject.value for subject in Subject),
        fields=lambda text: {"process": Subject(text)},
        help="Whose rights to print; reader is somebody who looks: `loopwatch check`, or a scraper. Unset: all three.",
    ),
    Setting(
        name="namespace",
        kind=Kind.TEXT,
        commands=(*_RBAC, *_CHECK),
        topic=Topic.RIGHTS,
        default="loopwatch",
        range="a DNS label, at most 63 characters",
        check=dns_label_problem,
        help="The namespace of the ServiceAccount, and of the election Lease.",
    ),
    Setting(
        name="service-account",
        kind=Kind.TEXT,
        commands=_RBAC,
        topic=Topic.RIGHTS,
        range="a DNS subdomain, at most 253 characters",
        check=dns_subdomain_problem,
        help="Who is given the rights. Unset: an account that is named as the roles are.",
    ),
    Setting(
        name="name-prefix",
        kind=Kind.TEXT,
        commands=_RBAC,
        topic=Topic.RIGHTS,
        default="loopwatch",
        range="a DNS subdomain, at most 253 characters",
        check=dns_subdomain_problem,
        help="What the names of roles, bindings and accounts begin with; two installations in one cluster need two.",
    ),
    Setting(
        name="as",
        kind=Kind.CHOICE,
        commands=_CHECK,
        topic=Topic.CHECK,
        default="controller",
        choices=tuple(subject.value for subject in Subject),
        fields=lambda text: {"subject": Subject(text)},
        help="For whom to look: the rights asked about are those of this process with the options given, of the identity in use.",
    ),
    Setting(
        name="watch",
        kind=Kind.DURATION,
        commands=_CHECK,
        topic=Topic.CHECK,
        default="15s",
        range=">= 0",
        check=not_below_zero,
        help="How long to watch Leases: shorter than the heartbeat interval and living pools look silent, above 40s and dead ones show.",
    ),
    Setting(
        name="output",
        kind=Kind.CHOICE,
        commands=_CHECK,
        topic=Topic.CHECK,
        default="text",
        choices=tuple(output.value for output in Output),
        fields=lambda text: {"output": Output(text)},
        help="text for people; json is one document, told in docs/check.md.",
    ),
)
