"""What a row of the table of rights holds."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loopwatch.kube.resources import Resource
from loopwatch.settings.model import Subject


class Room(enum.Enum):
    """What of loopwatch needs a right."""

    POOLS = "pools"
    ELECTION = "election"
    LISTEN = "listen address"


class Scope(enum.Enum):
    """Where a right holds; the value is how docs say it."""

    CLUSTER = "cluster"
    LEASES = "namespace ironcore-machinepool-lease"
    ELECTION = "namespace of the election Lease"
    EVENTS = "namespace default"


class Named(enum.Enum):
    """The only object that a right holds for; the value is how docs say it."""

    ANY = ""
    POOL = "--machine-pool-name"
    ELECTION_LEASE = "--leader-elect-resource-name"
    LEASE_NAMESPACE = "ironcore-machinepool-lease"


@dataclass(frozen=True, slots=True)
class When:
    """A setting without which a right is not needed: its name, and the values (texts, as a user writes them) that need it."""

    setting: str
    values: tuple[str, ...]

    def holds(self, settings: Mapping[str, str]) -> bool:
        """Whether the setting, of those given, has such a value. KeyError where it is not among them."""
        return settings[self.setting] in self.values


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One row: one verb on one resource, or on the URL paths `paths` where there is no resource.

    `when` are settings of the process that must all hold. `without` says what breaks where the right is missing, and how it shows.
    """

    subject: Subject
    room: Room
    verb: str
    why: str
    without: str
    resource: Resource | None = None
    subresource: str = ""
    paths: tuple[str, ...] = ()
    scope: Scope = Scope.CLUSTER
    named: Named = Named.ANY
    when: tuple[When, ...] = ()

    @property
    def what(self) -> str:
        """`machinepools/status`, `leases`, or the paths: as a rule of a Role lists it, without its group."""
        if self.resource is None:
            return ", ".join(self.paths)
        return self.resource.plural + (f"/{self.subresource}" if self.subresource else "")

    @property
    def key(self) -> str:
        """`sidecar: patch leases`: no two rows share it, since a room is told where it must be."""
        room = "" if self.room is Room.POOLS else f"{self.room.value}: "
        return f"{self.subject.value}: {room}{self.verb} {self.what}"

    def needed(self, settings: Mapping[str, str]) -> bool:
        """Whether a process with these settings (texts, by name) needs the right."""
        return all(when.holds(settings) for when in self.when)


def of_subject(rights: Iterable[Right], subject: Subject, settings: Mapping[str, str]) -> tuple[Right, ...]:
    """The rights that one subject needs with these settings, in the order of the table."""
    return tuple(right for right in rights if right.subject is subject and right.needed(settings))
