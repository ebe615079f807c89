"""Rows of one subject as Kubernetes objects: a ServiceAccount, and a Role or ClusterRole with its binding for each scope.

Pure and deterministic: the same rows and names give the same objects, in the same order. Rules that differ only in their verb become
one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from loopwatch.rbac.model import Right, Scope
from loopwatch.rbac.names import Names
from loopwatch.settings.model import Subject

Manifest = dict[str, Any]
RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_API_VERSION: Final = f"{RBAC_GROUP}/v1"


def manifests(rights: Iterable[Right], subject: Subject, names: Names) -> list[Manifest]:
    """What `kubectl apply` makes of the rights. Raises NamesError."""
    by_namespace: dict[str, list[Right]] = {}
    for right in sorted(rights, key=lambda right: list(Scope).index(right.scope)):
        # By what the scope stands for: with --namespace default, two scopes are one namespace and must be one Role.
        by_namespace.setdefault(names.of_namespace(right.scope), []).append(right)
    account = _object("v1", "ServiceAccount", subject, names.of_account(subject), names.namespace)
    return [account, *(each for namespace, held in by_namespace.items() for each in _granted(held, namespace, subject, names))]


def rules(rights: Iterable[Right], names: Names) -> list[Manifest]:
    """The rules of one role: a rule a resource and name, with all its verbs. Raises NamesError."""
    verbs: dict[tuple[str, str, tuple[str, ...], str], list[str]] = {}
    for right in rights:
        group = right.resource.group if right.resource else ""
        target = (group, right.what if right.resource else "", right.paths, names.of_object(right.named))
        verbs.setdefault(target, []).append(right.verb)
    return [_rule(*target, listed) for target, listed in verbs.items()]


def _rule(group: str, resource: str, paths: tuple[str, ...], name: str, verbs: list[str]) -> Manifest:
    if not resource:
        return {"nonResourceURLs": list(paths), "verbs": verbs}
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": [resource], **named, "verbs": verbs}


def _granted(rights: Iterable[Right], namespace: str, subject: Subject, names: Names) -> list[Manifest]:
    name = names.of_roles(subject)
    kind = "Role" if namespace else "ClusterRole"
    role = _object(_API_VERSION, kind, subject, name, namespace)
    binding = _object(_API_VERSION, f"{kind}Binding", subject, name, namespace)
    account = {"kind": "ServiceAccount", "name": names.of_account(subject), "namespace": names.namespace}
    return [
        role | {"rules": rules(rights, names)},
        binding | {"roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name}, "subjects": [account]},
    ]


def _object(api_version: str, kind: str, subject: Subject, name: str, namespace: str) -> Manifest:
    labels = {"app.kubernetes.io/name": "loopwatch", "app.kubernetes.io/component": subject.value}
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **where, "labels": labels}}
