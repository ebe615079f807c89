"""Connects, looks, judges, prints."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import Final

from rich.console import Console

from loopwatch import leadership
from loopwatch.check.judge import judge
from loopwatch.check.probes import Clusters, Probes, Wanted
from loopwatch.check.show import as_json, fails, print_text
from loopwatch.check.table import Finding
from loopwatch.clock import Clock, SystemClock
from loopwatch.iri import endpoint
from loopwatch.iri.probe import RuntimeProbe
from loopwatch.kube import connection as connections
from loopwatch.kube.transport import Transport
from loopwatch.rbac.command import names_of, settings_as_texts
from loopwatch.rbac.model import of_subject
from loopwatch.rbac.rights import RIGHTS
from loopwatch.settings.model import CheckSettings, Output, RbacSettings, Subject
from loopwatch.settings.table import settings_of

_COMPONENT: Final = "check"


async def run(settings: CheckSettings, clock: Clock | None = None) -> int:
    """0 where nothing stands in the way, warnings aside; 1 otherwise. Raises ConfigError, EndpointError, NamesError: the user's to mend."""
    clock = clock or SystemClock()
    chosen = endpoint.choose(settings.machine_runtime_endpoint or "", environment="") or endpoint.first_socket(endpoint.WELL_KNOWN_SOCKETS)
    async with contextlib.AsyncExitStack() as stack:
        clusters = await _clusters(settings, stack, clock)
        probe: RuntimeProbe | None = None
        if chosen is not None:
            from loopwatch.iri.grpc_probe import GrpcRuntimeProbe  # 30 MiB of gRPC

            probe = GrpcRuntimeProbe(chosen, clock)
            stack.push_async_callback(probe.close)
        findings = await findings_of(settings, clusters, clock, probe)
    if settings.output is Output.JSON:
        sys.stdout.write(as_json(settings.subject.value, findings) + "\n")
    else:
        print_text(settings.subject.value, findings, Console(file=sys.stdout, highlight=False))
    return int(fails(findings))


async def findings_of(settings: CheckSettings, clusters: Clusters, clock: Clock, runtime: RuntimeProbe | None) -> list[Finding]:
    """Look and judge. Raises NamesError where a sidecar's pool was not named."""
    asked = granted(settings)
    names = names_of(asked)
    if settings.subject is Subject.SIDECAR:
        names.of_roles(Subject.SIDECAR)
    rights = of_subject(RIGHTS, settings.subject, settings_as_texts(asked))
    sidecar = settings.subject is Subject.SIDECAR
    pool = (settings.machine_pool_name or "") if sidecar else ""
    facts = await Probes(clusters, clock, Wanted(rights, names, pool, settings.watch_seconds, runtime, sidecar)).look()
    return judge(settings, facts, options(asked))


def granted(settings: CheckSettings) -> RbacSettings:
    """What `loopwatch rbac` would be told, to grant what is asked about."""
    shared = {each.name for each in fields(RbacSettings)} & {each.name for each in fields(CheckSettings)}
    return RbacSettings(process=settings.subject, **{name: getattr(settings, name) for name in shared})


def options(asked: RbacSettings) -> str:
    """The words behind `loopwatch rbac`: only what is not the default."""
    usual = RbacSettings()
    given = [asked.process.value] if asked.process else []
    for row in settings_of(RbacSettings.command):
        if not row.positional:
            name = next(iter(row.field_values(row.parse(row.default)))) if row.default else row.field
            value = getattr(asked, name)
            if value != getattr(usual, name):
                given.append(f"--{row.name}={shlex.quote(_as_text(value, negated=row.name.startswith('no-')))}")
    return " ".join(given)


def _as_text(value: object, *, negated: bool) -> str:
    if isinstance(value, bool):
        return "true" if value != negated else "false"
    return str(getattr(value, "value", value))


async def _clusters(settings: CheckSettings, stack: contextlib.AsyncExitStack, clock: Clock) -> Clusters:
    async def connect(wanted: connections.ConnectionSettings) -> Transport:
        transport = await connections.connect(wanted, clock)
        stack.push_async_callback(transport.close)
        return transport

    def of(kubeconfig: str | None, context: str = "") -> connections.ConnectionSettings:
        return connections.ConnectionSettings(_COMPONENT, kubeconfig=Path(kubeconfig) if kubeconfig else None, context=context)

    pools = await connect(of(settings.kubeconfig, settings.context or ""))
    leases = await connect(of(settings.lease_kubeconfig)) if settings.lease_kubeconfig else pools
    where = leadership.own_cluster(_COMPONENT)
    return Clusters(pools, leases, await connect(where) if where else pools)
