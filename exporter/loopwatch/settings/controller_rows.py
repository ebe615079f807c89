"""The settings of `loopwatch controller` alone."""

from __future__ import annotations

from loopwatch.settings.kinds import Kind
from loopwatch.settings.model import Command
from loopwatch.settings.setting import Setting, Topic, above_zero

HIGHEST_MARK_RATE = 10_000
_CONTROLLER = (Command.CONTROLLER,)
_CONTROLLER_AND_CHECK = (Command.CONTROLLER, Command.CHECK)
_CONTROLLER_AND_RIGHTS = (Command.CONTROLLER, Command.RBAC, Command.CHECK)

CONTROLLER_ROWS = (
    Setting(
        name="machine-pool-lifecycle-grace-period",
        kind=Kind.DURATION,
        commands=_CONTROLLER_AND_CHECK,
        topic=Topic.LIFECYCLE,
        default="50s",
        range="> 0",
        check=above_zero,
        help="How long a pool may be silent, while it could be seen, before its Ready condition becomes Unknown.",
        upstream="ironcore-controller-manager",
    ),
    Setting(
        name="mark-never-reported",
        kind=Kind.BOOLEAN,
        commands=_CONTROLLER_AND_CHECK,
        topic=Topic.LIFECYCLE,
        default="true",
        help="Also mark pools that never had a Lease nor a Ready condition, as upstream does.",
    ),
    Setting(
        name="mark-rate",
        kind=Kind.COUNT,
        commands=_CONTROLLER,
        topic=Topic.LIFECYCLE,
        default="250",
        unit="writes a second",
        range="1 to 10000",
        check=lambda rate: "" if 1 <= rate <= HIGHEST_MARK_RATE else f"must be from 1 to {HIGHEST_MARK_RATE}, got {rate}",
        help="How many pools are marked Unknown in a second at most, when many fall silent at once.",
    ),
    Setting(
        name="machines",
        kind=Kind.BOOLEAN,
        commands=_CONTROLLER_AND_RIGHTS,
        topic=Topic.LIFECYCLE,
        default="true",
        help="Watch Machines too, for the series that tell how many each pool holds, and in what state. false: those are absent.",
    ),
    Setting(
        name="events",
        kind=Kind.BOOLEAN,
        commands=_CONTROLLER_AND_RIGHTS,
        topic=Topic.LIFECYCLE,
        default="true",
        help="Tell of marks and recoveries by Events on the pool, in namespace default. A failure to do so is only counted.",
    ),
    Setting(
        name="no-act",
        kind=Kind.BOOLEAN,
        commands=_CONTROLLER_AND_RIGHTS,
        topic=Topic.LIFECYCLE,
        default="false",
        fields=lambda no_act: {"act": not no_act},
        help="Watch and expose, write nothing.",
    ),
)
