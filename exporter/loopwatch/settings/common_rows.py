"""The settings that the sidecar and the controller share: the cluster, the listen address, the log."""

from __future__ import annotations

from loopwatch.settings.kinds import Kind
from loopwatch.settings.model import Command, MetricsAuth
from loopwatch.settings.setting import BOTH, Setting, Topic, not_below_zero

COMMON_ROWS = (
    Setting(
        name="kubeconfig",
        kind=Kind.PATH,
        commands=(*BOTH, Command.CHECK),
        topic=Topic.KUBERNETES,
        help="The kubeconfig of the pools' cluster. Unset: $KUBECONFIG, then this pod's ServiceAccount, then ~/.kube/config.",
        upstream="machinepoollet and ironcore-controller-manager",
    ),
    Setting(
        name="context",
        kind=Kind.TEXT,
        commands=(*BOTH, Command.CHECK),
        topic=Topic.KUBERNETES,
        help="The context of the kubeconfig to use. Unset: its current-context.",
    ),
    Setting(
        name="listen-address",
        kind=Kind.ADDRESS,
        commands=BOTH,
        topic=Topic.LISTEN,
        default=":9808",
        range="host:port, [IPv6 address]:port, or :port for every address; port 0 takes a free one",
        fields=lambda address: {"listen_host": address.host, "listen_port": address.port},
        help="Where /metrics, /healthz and /readyz are served.",
    ),
    Setting(
        name="metrics-auth",
        kind=Kind.CHOICE,
        commands=(*BOTH, Command.RBAC, Command.CHECK),
        topic=Topic.LISTEN,
        default="none",
        choices=tuple(auth.value for auth in MetricsAuth),
        fields=lambda text: {"metrics_auth": MetricsAuth(text)},
        help="kubernetes answers only bearer tokens whose user the API server allows to get the path; /healthz and /readyz stay open.",
    ),
    Setting(
        name="metrics-auth-outage",
        kind=Kind.DURATION,
        commands=BOTH,
        topic=Topic.LISTEN,
        default="15m",
        range=">= 0",
        check=not_below_zero,
        help="How long an allowed token stays so while the API server can't be asked, so that an outage does not hide itself.",
    ),
    Setting(
        name="tls-cert-file",
        kind=Kind.PATH,
        commands=BOTH,
        topic=Topic.LISTEN,
        help="The PEM certificate, with its chain, to serve HTTPS with; read again when it changes. Unset: plain HTTP.",
    ),
    Setting(
        name="tls-key-file",
        kind=Kind.PATH,
        commands=BOTH,
        topic=Topic.LISTEN,
        help="The certificate's PEM key, without a password; read again when it changes.",
    ),
    Setting(
        name="log-level",
        kind=Kind.CHOICE,
        commands=BOTH,
        topic=Topic.PROCESS,
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="The least that is logged to stderr.",
    ),
    Setting(
        name="log-format",
        kind=Kind.CHOICE,
        commands=BOTH,
        topic=Topic.PROCESS,
        default="auto",
        choices=("auto", "json", "text"),
        help="json is an object a line, text is key=value; auto is text on a terminal, json elsewhere.",
    ),
)
