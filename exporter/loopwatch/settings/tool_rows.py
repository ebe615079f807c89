"""The settings of the commands that are no process of a cluster."""

from __future__ import annotations

from loopwatch.settings.kinds import HIGHEST_PORT, Kind, dns_label_problem, dns_subdomain_problem
from loopwatch.settings.model import Command, Subject
from loopwatch.settings.setting import Setting, Topic

_DEMO = (Command.DEMO,)
_RBAC = (Command.RBAC,)


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
        commands=_RBAC,
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
)
