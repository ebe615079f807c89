"""What the objects are called that `loopwatch rbac` prints, and what the rights' names stand for in one installation."""

from __future__ import annotations

from dataclasses import dataclass

from loopwatch.kube.resources import LEASE_NAMESPACE
from loopwatch.rbac.model import Named, Scope
from loopwatch.settings.kinds import dns_subdomain_problem
from loopwatch.settings.model import Subject


class NamesError(Exception):
    """The names can't be used; the text says which flag mends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """One installation. `pool` is needed for a sidecar alone; an empty `service_account` is one named as the roles are."""

    namespace: str = "loopwatch"
    prefix: str = "loopwatch"
    service_account: str = ""
    pool: str = ""
    election_lease: str = "loopwatch-controller"
    election_namespace: str = ""

    def of_roles(self, subject: Subject) -> str:
        """`loopwatch-controller`; a sidecar's has its pool's name, since each pool's sidecar may touch its own pool alone.

        Raises NamesError where that is not known.
        """
        return "-".join((self.prefix, subject.value, *([self.of_object(Named.POOL)] if subject is Subject.SIDECAR else [])))

    def of_account(self, subject: Subject) -> str:
        """The ServiceAccount. Raises NamesError where a name made of the others is none."""
        made = self.service_account or self.of_roles(subject)
        problem = dns_subdomain_problem(made)
        if problem:
            raise NamesError(f"the ServiceAccount's name {problem}; give a shorter one with --service-account")
        return made

    def of_object(self, named: Named) -> str:
        """The one object that a right holds for; empty for any. Raises NamesError where a sidecar's pool is not known."""
        if named is Named.POOL and not self.pool:
            raise NamesError("--machine-pool-name is required for a sidecar's rights: they hold for its own pool alone")
        return {
            Named.ANY: "",
            Named.POOL: self.pool,
            Named.ELECTION_LEASE: self.election_lease,
            Named.LEASE_NAMESPACE: LEASE_NAMESPACE,
        }[named]

    def of_namespace(self, scope: Scope) -> str:
        """The namespace of a scope; empty for the cluster."""
        return {
            Scope.CLUSTER: "",
            Scope.LEASES: LEASE_NAMESPACE,
            Scope.ELECTION: self.election_namespace or self.namespace,
            Scope.EVENTS: "default",
        }[scope]
