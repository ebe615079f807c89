"""A real Kubernetes API: one etcd and one kube-apiserver on loopback, with RBAC, for as long as the tests last.

It holds IronCore's resources as CustomResourceDefinitions and the namespace of the heartbeat Leases. There is no controller manager, no
scheduler and no kubelet. All state is thrown away: nothing is synced to disk, and stopping is a SIGKILL.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.real_servers.audit import POLICY, AuditLog
from tests.real_servers.building import TARGETS
from tests.real_servers.client import Client
from tests.real_servers.kubeconfig import write_kubeconfig, write_token_kubeconfig
from tests.real_servers.paths import BINARIES, CRDS
from tests.real_servers.pki import Authority, KeyPair, signing_key
from tests.real_servers.processes import Process, ProcessFailed

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
PORT_TRIES = 3
LEASE_NAMESPACE = "ironcore-machinepool-lease"
CRD_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def free_port() -> int:
    """A TCP port of loopback that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


class ApiServer:
    """etcd and kube-apiserver with all their files in `state`; `start` it, or use it in a `with`.

    `kubeconfig` is an administrator's. `client` is one as well, for the test itself. With `audit`, `audit_log` tells what was asked.
    """

    def __init__(self, state: Path, *, audit: bool = True, binaries: Path = BINARIES) -> None:
        missing = [target.name for target in TARGETS if not (binaries / target.name).exists()]
        if missing:
            raise FileNotFoundError(
                f"{', '.join(missing)} not built in {binaries}: run `make e2e`, or `python -m tests.real_servers build`"
            )
        self.state = state
        self._binaries = binaries
        self._audited = audit
        self._authority = Authority.create("loopwatch-tests")
        self._administrator = self._authority.client("loopwatch-tests-admin", ["system:masters"])
        self._etcd: Process | None = None
        self._apiserver: Process | None = None
        self._etcd_port = self.port = 0
        self.audit_log = AuditLog(state / "audit.log")
        self.kubeconfig = state / "admin.kubeconfig"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it listens; stays the same over a restart."""
        return f"https://{LOOPBACK}:{self.port}"

    @property
    def etcd_url(self) -> str:
        """Where its etcd listens for clients, without TLS."""
        return f"http://{LOOPBACK}:{self._etcd_port}"

    @property
    def process(self) -> Process:
        """The kube-apiserver that runs, or ran last."""
        if self._apiserver is None:
            raise ProcessFailed("the kube-apiserver was not started")
        return self._apiserver

    def start(self) -> None:
        """Start both and wait until the resources of the tests are served; ProcessFailed with the log's end otherwise."""
        self._write_files()
        try:
            self._start_etcd()
            self._start_apiserver()
            self._install_resources()
            self._wait_until_served()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End both at once. Files stay in `state`."""
        for process in (self._apiserver, self._etcd):
            if process is not None:
                process.discard()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing is answered."""
        self.process.pause()

    def resume(self) -> None:
        """SIGCONT: it answers again, also what was asked meanwhile."""
        self.process.resume()

    def kill(self) -> None:
        """SIGKILL to the kube-apiserver: connections are reset, new ones refused."""
        self.process.kill()

    def restart(self) -> None:
        """A new kube-apiserver on the same port and data, which serves everything when this returns; ends the old one first."""
        self.process.discard()
        self._launch_apiserver()
        self._wait_until_ready()
        self._wait_until_served()

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig by which the server knows `user`, a member of `groups`. What they may do is for RBAC to say."""
        path = self.state / f"{user.replace('/', '_').replace(':', '_')}.kubeconfig"
        return write_kubeconfig(path, self.url, self._authority.certificate, user, self._authority.client(user, groups))

    def kubeconfig_with(self, token_file: Path, user: str) -> Path:
        """A kubeconfig by which the server knows whoever's token is in the file; `user` is its name within the kubeconfig."""
        path = token_file.with_suffix(".kubeconfig")
        return write_token_kubeconfig(path, self.url, self._authority.certificate, user, token_file)

    @property
    def client(self) -> Client:
        """An administrator's client."""
        return self._client(self._administrator)

    def client_for(self, user: str, groups: Sequence[str] = ()) -> Client:
        """A client of `user`, a member of `groups`."""
        return self._client(self._authority.client(user, groups))

    def client_with(self, token: str) -> Client:
        """A client of whoever's token this is."""
        context = ssl.create_default_context(cadata=self._authority.certificate.decode())
        return Client(LOOPBACK, self.port, context, headers={"Authorization": f"Bearer {token}"})

    def _client(self, credentials: KeyPair) -> Client:
        context = ssl.create_default_context(cadata=self._authority.certificate.decode())
        with tempfile.TemporaryDirectory() as folder:  # ssl reads certificates from files only
            _write_pair(Path(folder), "client", credentials)
            context.load_cert_chain(Path(folder) / "client.crt", Path(folder) / "client.key")
        return Client(LOOPBACK, self.port, context)

    def _write_files(self) -> None:
        pki = self.state / "pki"
        pki.mkdir(parents=True)
        server = self._authority.server("kube-apiserver", [LOOPBACK, "localhost", "kubernetes.default.svc", "10.96.0.1"])
        (pki / "ca.crt").write_bytes(self._authority.certificate)
        _write_pair(pki, "apiserver", server)
        private, public = signing_key()
        (pki / "service-accounts.key").write_bytes(private)
        (pki / "service-accounts.pub").write_bytes(public)
        (self.state / "audit-policy.json").write_text(json.dumps(POLICY))

    def _start_etcd(self) -> None:
        for attempt in range(PORT_TRIES):
            self._etcd_port, peer_port = free_port(), free_port()
            client_url, peer_url = self.etcd_url, f"http://{LOOPBACK}:{peer_port}"
            command = [str(self._binaries / "etcd"), f"--data-dir={self.state / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn"]
            command += [f"--listen-client-urls={client_url}", f"--advertise-client-urls={client_url}"]
            command += [
                f"--listen-peer-urls={peer_url}",
                f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=default={peer_url}",
            ]
            etcd = self._etcd = Process("etcd", command, self.state / "etcd.log")
            try:
                etcd.wait_until("healthy", self._etcd_answers, START_SECONDS)
            except ProcessFailed:
                etcd.discard()
                if attempt + 1 == PORT_TRIES or "address already in use" not in etcd.text():
                    raise
            else:
                return

    def _etcd_answers(self) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, self._etcd_port, timeout=2)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _start_apiserver(self) -> None:
        for attempt in range(PORT_TRIES):
            self.port = free_port()
            self._launch_apiserver()
            try:
                self._wait_until_ready()
            except ProcessFailed:
                self.process.discard()
                if attempt + 1 == PORT_TRIES or "address already in use" not in self.process.text():
                    raise
            else:
                break
        write_kubeconfig(self.kubeconfig, self.url, self._authority.certificate, "admin", self._administrator)

    def _launch_apiserver(self) -> None:
        pki = self.state / "pki"
        command = [
            str(self._binaries / "kube-apiserver"),
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.port}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
            "--profiling=false",
        ]
        if self._audited:
            command += [f"--audit-policy-file={self.state / 'audit-policy.json'}", f"--audit-log-path={self.audit_log.path}"]
        self._apiserver = Process("kube-apiserver", command, self.state / "kube-apiserver.log")

    def _wait_until_ready(self) -> None:
        client = self.client
        self.process.wait_until("ready", partial(_answers, client, "/readyz"), START_SECONDS)

    def _install_resources(self) -> None:
        client = self.client
        for manifest in _crds():
            client.create(CRD_COLLECTION, manifest)
        client.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE_NAMESPACE}})

    def _wait_until_served(self) -> None:
        # A 200 comes a moment later than Established, and after a restart later than /readyz: till then it is a 404.
        client = self.client
        for manifest in _crds():
            spec = manifest["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            self.process.wait_until(f"serving {path}", partial(_answers, client, path), START_SECONDS)


def _crds() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(CRDS.read_text()))


def _answers(client: Client, path: str) -> bool:
    try:
        return client.request("GET", path, timeout_seconds=5.0).status == http.client.OK
    except OSError:
        return False


def _write_pair(folder: Path, name: str, pair: KeyPair) -> None:
    (folder / f"{name}.crt").write_bytes(pair.certificate)
    key = folder / f"{name}.key"
    key.touch(mode=0o600)
    key.write_bytes(pair.key)
