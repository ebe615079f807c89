"""The resources that loopwatch knows, and their paths."""

from __future__ import annotations

from typing import NamedTuple

LEASE_NAMESPACE = "ironcore-machinepool-lease"
"""Where machinepoollets keep their Leases: a constant of IronCore v0.5.0, there is no flag for it."""


class ObjectKey(NamedTuple):
    """What names an object of one resource; `namespace` is empty for cluster-scoped ones."""

    namespace: str
    name: str


class Resource(NamedTuple):
    """One resource of one API version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def root(self) -> str:
        """`/api/v1` or `/apis/GROUP/VERSION`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def api_version(self) -> str:
        """As an object's `apiVersion` says it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection_path(self, namespace: str = "") -> str:
        """Path of the list; without a namespace, of all namespaces."""
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{scope}/{self.plural}"

    def object_path(self, key: ObjectKey, subresource: str = "") -> str:
        """Path of one object, or of a subresource of it."""
        tail = f"/{subresource}" if subresource else ""
        return f"{self.collection_path(key.namespace)}/{key.name}{tail}"


MACHINE_POOLS = Resource("compute.ironcore.dev", "v1alpha1", "machinepools", "MachinePool", namespaced=False)
MACHINES = Resource("compute.ironcore.dev", "v1alpha1", "machines", "Machine", namespaced=True)
MACHINE_CLASSES = Resource("compute.ironcore.dev", "v1alpha1", "machineclasses", "MachineClass", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event", namespaced=True)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
SUBJECT_ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
