"""Certificates that TLS accepts for what they are meant for, and for nothing else."""

import ssl
from pathlib import Path

import pytest

from tests.real_servers.pki import Authority, KeyPair


def contexts(folder: Path, trusted: Authority, server: KeyPair, client: KeyPair) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    result = []
    for name, side, pair in (("server", ssl.PROTOCOL_TLS_SERVER, server), ("client", ssl.PROTOCOL_TLS_CLIENT, client)):
        (folder / f"{name}.crt").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
        context = ssl.SSLContext(side)
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
        context.load_verify_locations(cadata=trusted.certificate.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        result.append(context)
    return result[0], result[1]


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """A handshake in memory; the server's end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
    with pytest.raises(ssl.SSLWantReadError):
        ends[1].read(1)  # TLS 1.3: the server judges the client's certificate only now
    return ends[1]


@pytest.fixture
def authority() -> Authority:
    return Authority.create("tests")


def test_both_sides_accept_each_other_and_the_server_learns_user_and_groups(authority: Authority, tmp_path: Path) -> None:
    server, client = contexts(
        tmp_path, authority, authority.server("api", ["127.0.0.1", "localhost"]), authority.client("ann", ["ops", "dev"])
    )
    for host in ("127.0.0.1", "localhost"):
        peer = shake_hands(server, client, host).getpeercert()
        assert peer is not None
        assert peer["subject"] == ((("organizationName", "ops"),), (("organizationName", "dev"),), (("commonName", "ann"),))


def test_a_server_under_another_name_is_refused(authority: Authority, tmp_path: Path) -> None:
    server, client = contexts(tmp_path, authority, authority.server("api", ["127.0.0.1"]), authority.client("ann"))
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(server, client, "localhost")


def test_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    server, client = contexts(tmp_path, Authority.create("other"), authority.server("api", ["127.0.0.1"]), authority.client("ann"))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, client, "127.0.0.1")


def test_a_clients_certificate_makes_no_server(authority: Authority, tmp_path: Path) -> None:
    server, client = contexts(tmp_path, authority, authority.client("ann"), authority.client("ann"))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, client, "127.0.0.1")
