"""A machinepoollet's ServiceAccount on the real API server, whose right to the Leases comes and goes as in IronCore's manifests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.e2e.identities import NAMESPACE, REVIEWS, SEEN_SECONDS, issue, place
from tests.real_servers.apiserver import ApiServer

ACCOUNT = "machinepoollet"
LEASE_NAMESPACE = "ironcore-machinepool-lease"
RBAC = "rbac.authorization.k8s.io"
POOLS_AND_MORE = [
    {"apiGroups": ["compute.ironcore.dev"], "resources": ["machinepools"], "verbs": ["*"]},
    {"apiGroups": ["compute.ironcore.dev"], "resources": ["machinepools/status", "machines/status"], "verbs": ["get", "patch", "update"]},
    {"apiGroups": ["compute.ironcore.dev"], "resources": ["machines", "machineclasses"], "verbs": ["get", "list", "watch"]},
]
LEASES = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "list", "patch", "update", "watch"]}]


def create(server: ApiServer, folder: Path, *, with_leases: bool) -> Path:
    """The account with upstream's rights to pools, and those to Leases where asked for; a kubeconfig with its token."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    server.client.request("POST", "/api/v1/namespaces", namespace).expect(201, 409)
    for manifest in [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        _rbac("ClusterRole", rules=POOLS_AND_MORE),
        _rbac("ClusterRoleBinding", **_binds("ClusterRole")),
        _rbac("Role", LEASE_NAMESPACE, rules=LEASES),
    ]:
        server.client.apply(place(manifest), manifest)
    binding = _lease_binding()
    if with_leases:
        server.client.apply(place(binding), binding)
    else:
        server.client.delete(place(binding))
    _wait(server, to_leases=with_leases)
    token_file = folder / f"{ACCOUNT}.token"
    token_file.write_text(issue(server.client, ACCOUNT))
    return server.kubeconfig_with(token_file, ACCOUNT)


def lose_leases(server: ApiServer) -> None:
    """Take the right to Leases away, and wait until the API server acts by it."""
    server.client.delete(place(_lease_binding()))
    _wait(server, to_leases=False)


def _lease_binding() -> dict[str, Any]:
    return _rbac("RoleBinding", LEASE_NAMESPACE, **_binds("Role"))


def _rbac(kind: str, namespace: str = "", **content: Any) -> dict[str, Any]:
    metadata = {"name": "test-machinepoollet"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, **content}


def _binds(kind: str) -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    return {"roleRef": {"apiGroup": RBAC, "kind": kind, "name": "test-machinepoollet"}, "subjects": [subject]}


def _wait(server: ApiServer, *, to_leases: bool) -> None:
    deadline = time.monotonic() + SEEN_SECONDS
    while not (_may(server, "compute.ironcore.dev", "machinepools", "") and _may_patch_leases(server) == to_leases):
        assert time.monotonic() < deadline, f"the machinepoollet's rights are not yet as wanted (to Leases: {to_leases})"
        time.sleep(0.02)


def _may_patch_leases(server: ApiServer) -> bool:
    return _may(server, "coordination.k8s.io", "leases", LEASE_NAMESPACE)


def _may(server: ApiServer, group: str, resource: str, namespace: str) -> bool:
    asked = {"group": group, "resource": resource, "namespace": namespace, "verb": "patch"}
    spec = {"user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", "resourceAttributes": asked}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    allowed: bool = server.client.request("POST", REVIEWS, review).expect(201)["status"]["allowed"]
    return allowed
