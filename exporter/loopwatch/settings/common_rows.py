"""The settings that the sidecar and the controller share: the cluster, the listen address, the log."""

from __future__ import annotations

from loopwatch.settings.kinds import Kind
from loopwatch.settings.setting import BOTH, Setting, Topic

COMMON_ROWS = (
    Setting(
        name="kubeconfig",
        kind=Kind.PATH,
        commands=BOTH,
        topic=Topic.KUBERNETES,
        help="The kubeconfig of the pools' cluster. Unset: $KUBECONFIG, then this pod's ServiceAccount, then ~/.kube/config.",
        upstream="machinepoollet and ironcore-controller-manager",
    ),
    Setting(
        name="context",
        kind=Kind.TEXT,
        commands=BOTH,
        topic=Topic.KUBERNETES,
        help="The context of the kubeconfig to use. Unset: its current-context.",
    ),
    Setting(
        name="listen-address",
        kind=Kind.ADDRESS,
        commands=BOTH,
        topic=Topic.PROCESS,
        default=":9808",
        range="host:port, [IPv6 address]:port, or :port for every address; port 0 takes a free one",
        fields=lambda address: {"listen_host": address.host, "listen_port": address.port},
        help="Where /metrics, /healthz and /readyz are served.",
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
)
