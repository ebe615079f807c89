"""Processes' identities on the real API server: what `loopwatch rbac` prints, applied, and a real token in a file, as in a pod."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loopwatch.rbac.command import names_of, render, settings_as_texts
from loopwatch.rbac.manifests import Manifest, manifests
from loopwatch.rbac.model import Right, of_subject
from loopwatch.rbac.rights import RIGHTS
from loopwatch.settings.model import RbacSettings, Subject
from loopwatch.settings.read import read
from tests.real_servers.apiserver import ApiServer
from tests.real_servers.client import Client

NAMESPACE = "loopwatch"
SEEN_SECONDS = 5.0
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Identity:
    """A ServiceAccount with the rights that were printed for `settings`, and a kubeconfig whose tokenFile holds its token."""

    server: ApiServer
    settings: RbacSettings
    rights: Sequence[Right]
    account: str
    token_file: Path
    kubeconfig: Path

    @property
    def user(self) -> str:
        """As the API server knows it."""
        return f"system:serviceaccount:{NAMESPACE}:{self.account}"

    def lose(self, lost: Right) -> None:
        """Take one verb out of its Role, and wait until the API server acts by it."""
        assert lost in self.rights, f"{self.account} has no right to {lost.key}"
        assert self.may(lost), f"{self.account} can't {lost.key} with the rights that are printed"
        subject, names = lost.subject, names_of(self.settings)
        left = {place(each): each for each in manifests([right for right in self.rights if right is not lost], subject, names)}
        for manifest in manifests(self.rights, subject, names):
            if "rules" in manifest:
                rules = left.get(place(manifest), {"rules": []})["rules"]
                self.server.client.apply(place(manifest), manifest | {"rules": rules})
        deadline = time.monotonic() + SEEN_SECONDS
        while self.may(lost):
            assert time.monotonic() < deadline, f"{self.account} can still {lost.key}"
            time.sleep(0.02)

    def may(self, right: Right) -> bool:
        """Whether the API server lets this identity do that."""
        names = names_of(self.settings)
        if right.resource is None:
            asked: dict[str, Any] = {"nonResourceAttributes": {"path": right.paths[0], "verb": right.verb}}
        else:
            where = {"namespace": names.of_namespace(right.scope), "name": names.of_object(right.named)}
            what = {"group": right.resource.group, "resource": right.resource.plural, "subresource": right.subresource}
            asked = {"resourceAttributes": {**what, **where, "verb": right.verb}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": self.user, **asked}}
        allowed: bool = self.server.client.request("POST", REVIEWS, review).expect(201)["status"]["allowed"]
        return allowed


def create(server: ApiServer, folder: Path, subject: Subject, **given: str) -> Identity:
    """Apply what `loopwatch rbac SUBJECT --flag value ...` prints, and make a kubeconfig of its account."""
    flags = {name.replace("_", "-"): text for name, text in given.items()}
    settings = read(RbacSettings, {"process": subject.value, "namespace": NAMESPACE, **flags}, {})
    client = server.client
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    client.request("POST", "/api/v1/namespaces", namespace).expect(201, 409)
    apply_text(client, render(settings))
    account = names_of(settings).of_account(subject)
    token_file = folder / f"{account}.token"
    token_file.write_text(issue(client, account))
    rights = of_subject(RIGHTS, subject, settings_as_texts(settings))
    return Identity(server, settings, rights, account, token_file, server.kubeconfig_with(token_file, account))


def apply_text(client: Client, text: str) -> None:
    """Apply YAML documents one by one, as they stand: the server reads them, by the library that kubectl reads them with."""
    for document in text.split("\n---\n")[1:]:
        client.apply_yaml(place(yaml.safe_load(document)), document)


def issue(client: Client, account: str, bound_to: Manifest | None = None) -> str:
    """An hour's token of the ServiceAccount; bound to an object, it dies with it."""
    spec = {"expirationSeconds": 3600} | ({"boundObjectRef": bound_to} if bound_to else {})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    token: str = client.create(path, request)["status"]["token"]
    return token


def place(manifest: Manifest) -> str:
    """The path of an object that `loopwatch rbac` prints."""
    root = "/api/v1" if manifest["apiVersion"] == "v1" else f"/apis/{manifest['apiVersion']}"
    namespace = manifest["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{manifest['kind'].lower()}s/{manifest['metadata']['name']}"
