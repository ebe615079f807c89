"""The API server under test: the sandbox over HTTP, or the real one of LOOPWATCH_REAL_KUBECONFIG."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import yaml

from loopwatch.clock import SystemClock
from loopwatch.sandbox.apiserver import ApiServer
from loopwatch.sandbox.apiserver.served import crd_documents
from loopwatch.sandbox.server import serve
from tests.contract.cluster import Cluster, HttpCluster, SandboxCluster

KUBECONFIG_VARIABLE = "LOOPWATCH_REAL_KUBECONFIG"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_READINESS_TRIES = 500


@pytest.fixture
async def cluster() -> AsyncGenerator[Cluster]:
    """An API server that serves the five resources."""
    kubeconfig = os.environ.get(KUBECONFIG_VARIABLE)
    if kubeconfig:
        real = _real(Path(kubeconfig))
        try:
            await _apply_crds(real)
            yield real
        finally:
            await real.close()
        return
    api = ApiServer(SystemClock())
    async with serve(api) as address:
        sandbox = SandboxCluster(address, api)
        try:
            yield sandbox
        finally:
            await sandbox.close()


def _real(kubeconfig: Path) -> HttpCluster:
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    context = next(entry["context"] for entry in config["contexts"] if entry["name"] == config["current-context"])
    server = next(entry["cluster"] for entry in config["clusters"] if entry["name"] == context["cluster"])
    user = next(entry["user"] for entry in config["users"] if entry["name"] == context["user"])
    authority = _material(server, "certificate-authority").decode()
    tls = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as pair:  # the ssl module reads certificates from files alone
        pair.write(_material(user, "client-certificate") + b"\n" + _material(user, "client-key"))
        pair.flush()
        tls.load_cert_chain(pair.name)
    return HttpCluster("real", str(server["server"]), tls, ssl.create_default_context(cadata=authority))


def _material(entry: dict[str, Any], name: str) -> bytes:
    if f"{name}-data" in entry:
        return base64.b64decode(entry[f"{name}-data"])
    if name in entry:
        return Path(entry[name]).read_bytes()
    pytest.fail(f"the kubeconfig of {KUBECONFIG_VARIABLE} has no {name}: the contract suite wants a client certificate")


async def _apply_crds(real: HttpCluster) -> None:
    """Make the CRDs where they are absent, and wait until each resource answers."""
    for document in crd_documents():
        name, spec = document["metadata"]["name"], document["spec"]
        if (await real.send("GET", f"{_CRDS}/{name}")).status == 404:
            made = await real.send("POST", _CRDS, document)
            assert made.status in {201, 409}, made.body  # 409: another process of the same run was faster
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        for _ in range(_READINESS_TRIES):  # a new CRD answers 404, then 429 while its cache fills; each try takes milliseconds
            if (await real.send("GET", path, query={"resourceVersion": "0"})).status == 200:
                break
        else:
            pytest.fail(f"{path} does not answer with 200")
