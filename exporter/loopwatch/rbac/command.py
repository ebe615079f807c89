"""`loopwatch rbac`: prints the least rights that work, as manifests."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from loopwatch.rbac.manifests import Manifest, manifests
from loopwatch.rbac.model import of_subject
from loopwatch.rbac.names import Names
from loopwatch.rbac.rights import RIGHTS
from loopwatch.rbac.text import to_yaml
from loopwatch.settings.model import RbacSettings, Subject


async def run(settings: RbacSettings) -> int:
    """Print, and be done. Raises NamesError."""
    sys.stdout.write(render(settings))
    return 0


def render(settings: RbacSettings) -> str:
    """What is printed: the same text for the same settings. Raises NamesError."""
    names, texts = names_of(settings), settings_as_texts(settings)
    subjects = list(Subject) if settings.process is None else [settings.process]
    made = [each for subject in subjects for each in manifests(of_subject(RIGHTS, subject, texts), subject, names)]
    documents = [each for index, each in enumerate(made) if _place(each) not in map(_place, made[:index])]
    return f"# The least rights that work; docs/rbac.md says what each is for.\n{to_yaml(documents)}"


def names_of(settings: RbacSettings) -> Names:
    """What the settings call things."""
    return Names(
        namespace=settings.namespace,
        prefix=settings.name_prefix,
        service_account=settings.service_account or "",
        pool=settings.machine_pool_name or "",
        election_lease=settings.leader_elect_resource_name,
        election_namespace=settings.leader_elect_resource_namespace or "",
    )


def settings_as_texts(settings: RbacSettings) -> Mapping[str, str]:
    """The settings that rights depend on, as a user writes them."""
    return {
        "mode": settings.mode.value,
        "no-act": _boolean(value=not settings.act),
        "metrics-auth": settings.metrics_auth.value,
        "leader-elect": _boolean(value=settings.leader_elect),
        "machines": _boolean(value=settings.machines),
        "events": _boolean(value=settings.events),
    }


def _place(manifest: Manifest) -> tuple[str, str, str]:
    """One object: all three may share a ServiceAccount."""
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _boolean(*, value: bool) -> str:
    return "true" if value else "false"
