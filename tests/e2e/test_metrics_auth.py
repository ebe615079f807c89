"""A protected /metrics on a real API server: who is let in, what an outage of the API server changes, and HTTPS."""

from __future__ import annotations

import http.client
import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509

from loopwatch.settings.model import Subject
from tests.e2e.conftest import StartLoopwatch
from tests.e2e.identities import create, issue
from tests.e2e.programs import START_SECONDS, Loopwatch
from tests.e2e.world import until
from tests.real_servers.apiserver import LOOPBACK, ApiServer
from tests.real_servers.pki import Authority, KeyPair

OUTAGE_SECONDS = 75.0
KEPT_SECONDS = 60.0
SCRAPE_SECONDS = 10.0
"""Prometheus' default scrape_timeout: an answer that takes longer is none."""
LOOK_SECONDS = 5.0


def scrape(controller: Loopwatch, token: str = "") -> int:
    """The status of a scrape."""
    return controller.get("/metrics", token)[0]


@pytest.mark.timeout(OUTAGE_SECONDS + 120)
def test_metrics_are_for_those_whom_the_api_server_allows_through_an_outage_too(
    api_server: ApiServer, start_loopwatch: StartLoopwatch, tmp_path: Path
) -> None:
    identity = create(api_server, tmp_path, Subject.CONTROLLER, metrics_auth="kubernetes", name_prefix="outage")
    reader = create(api_server, tmp_path, Subject.READER, metrics_auth="kubernetes", name_prefix="outage")
    scraper, newcomer = (issue(api_server.client, reader.account) for _ in range(2))
    controller = start_loopwatch(
        "controller",
        "--no-act",
        "--metrics-auth=kubernetes",
        f"--metrics-auth-outage={OUTAGE_SECONDS:g}s",
        kubeconfig=identity.kubeconfig,
    )
    controller.wait_until_ready()

    assert scrape(controller) == 401
    assert scrape(controller, "no-token-of-this-cluster") == 401
    assert scrape(controller, issue(api_server.client, identity.account)) == 403, "a user without the right"
    allowed_at = time.monotonic()
    assert scrape(controller, scraper) == 200
    assert "\nloopwatch_build_info" in controller.get("/metrics", scraper)[1]
    assert (controller.get("/healthz")[0], controller.get("/readyz")[0]) == (200, 200)

    api_server.pause()
    try:
        assert scrape(controller, scraper) == 200
        asked = time.monotonic()
        assert scrape(controller, newcomer) == 503, "nothing is known of this token"
        assert time.monotonic() - asked < SCRAPE_SECONDS / 2, "an API server that hangs does not make a scrape hang"
        assert (scrape(controller), controller.get("/healthz")[0]) == (401, 200)
        time.sleep(allowed_at + KEPT_SECONDS + 1.0 - time.monotonic())
        asked = time.monotonic()
        assert scrape(controller, scraper) == 200, "the verdict is a minute old, and nobody can be asked"
        assert time.monotonic() - asked < SCRAPE_SECONDS / 2
        api_server.kill()
        assert (scrape(controller, scraper), scrape(controller, newcomer)) == (200, 503)
        assert "no verdict on a scrape's token can be had" in controller.text()
        time.sleep(allowed_at + OUTAGE_SECONDS + 1.0 - time.monotonic())
        assert scrape(controller, scraper) == 503, "the outage time is over"
    finally:
        api_server.restart()
    until("let in again", lambda: scrape(controller, scraper) == 200, START_SECONDS)
    assert scrape(controller, newcomer) == 200
    assert not any(token in controller.text() for token in (scraper, newcomer))


@pytest.mark.timeout(60)
def test_a_reader_without_the_right_to_metrics_is_refused(api_server: ApiServer, start_loopwatch: StartLoopwatch, tmp_path: Path) -> None:
    identity = create(api_server, tmp_path, Subject.CONTROLLER, metrics_auth="kubernetes", name_prefix="reader")
    reader = create(api_server, tmp_path, Subject.READER, metrics_auth="kubernetes", name_prefix="reader")
    controller = start_loopwatch("controller", "--no-act", "--metrics-auth=kubernetes", kubeconfig=identity.kubeconfig)
    controller.wait_until_ready()
    assert scrape(controller, issue(api_server.client, reader.account)) == 200
    reader.lose(next(right for right in reader.rights if right.paths))
    assert scrape(controller, issue(api_server.client, reader.account)) == 403
    assert "grant the verb get on this nonResourceURL in a ClusterRole" in controller.text()
    assert f"system:serviceaccount:loopwatch:{reader.account}" in controller.text()


def serial(pair: KeyPair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate).serial_number


def shown(controller: Loopwatch, authority: Authority) -> int:
    """The serial number of the certificate by which /healthz is served now."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    connection = http.client.HTTPSConnection(LOOPBACK, controller.port, timeout=START_SECONDS, context=context)
    try:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        der = connection.sock.getpeercert(binary_form=True)
        assert isinstance(der, bytes)
        return x509.load_der_x509_certificate(der).serial_number
    finally:
        connection.close()


@pytest.mark.timeout(60)
def test_a_replaced_certificate_is_served_without_a_restart_and_half_a_replacement_never(
    api_server: ApiServer, start_loopwatch: StartLoopwatch, tmp_path: Path
) -> None:
    del api_server
    authority = Authority.create("tests")
    first, second = (authority.server("localhost", [LOOPBACK]) for _ in range(2))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(first.certificate)
    key.write_bytes(first.key)
    controller = start_loopwatch("controller", "--no-act", f"--tls-cert-file={certificate}", f"--tls-key-file={key}")
    controller.wait_until("it listens", lambda: "controller runs" in controller.text(), START_SECONDS)
    assert shown(controller, authority) == serial(first)
    certificate.write_bytes(second.certificate)
    controller.wait_until("half a pair is said", lambda: "the old one stays" in controller.text(), 2 * LOOK_SECONDS)
    assert shown(controller, authority) == serial(first)
    key.write_bytes(second.key)
    controller.wait_until("the new one is served", lambda: shown(controller, authority) == serial(second), 2 * LOOK_SECONDS)
    assert "PRIVATE KEY" not in controller.text()
