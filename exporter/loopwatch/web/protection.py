"""What protects a process's listen address, made from its settings: who judges requests, and the certificate."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwatch.clock import Clock
from loopwatch.kube.review import Reviewer
from loopwatch.kube.transport import Transport
from loopwatch.settings.model import CommonSettings, MetricsAuth
from loopwatch.web.auth import REVIEW_SECONDS, Judges, KubernetesAuth
from loopwatch.web.certificate import ServingCertificate


@dataclass(frozen=True, slots=True)
class Protection:
    """None: open to the network, like every exporter; plain HTTP."""

    judge: Judges | None = None
    certificate: ServingCertificate | None = None

    def work(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """What the process runs beside its loops."""
        return () if self.certificate is None else (self.certificate.keep_fresh(),)


UNPROTECTED: Final = Protection()


def load_certificate(settings: CommonSettings, clock: Clock) -> ServingCertificate | None:
    """The certificate that the settings name. Raises CertificateError."""
    if settings.tls_cert_file is None or settings.tls_key_file is None:
        return None
    return ServingCertificate(Path(settings.tls_cert_file), Path(settings.tls_key_file), clock)


def judge_for(settings: CommonSettings, transport: Transport, clock: Clock) -> Judges | None:
    """Who judges; `transport` reaches the API server that issued the scrapers' tokens: that of the cluster which the process runs in."""
    if settings.metrics_auth is MetricsAuth.NONE:
        return None
    reviewer = Reviewer(transport, clock, timeout_seconds=REVIEW_SECONDS)
    return KubernetesAuth(reviewer, clock, outage_seconds=settings.metrics_auth_outage_seconds)
