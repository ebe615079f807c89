"""The certificate of the listen address: what is refused at the start, and how it is replaced while connections come and go."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from loopwatch.clock import SystemClock
from loopwatch.web.certificate import LOOK_SECONDS, CertificateError, ServingCertificate
from tests.real_servers.pki import Authority, KeyPair
from tests.support.logs import Lines
from tests.support.stepped import SteppedClock, stepped

AUTHORITY = Authority.create("tests")
FIRST, SECOND = (AUTHORITY.server("localhost", ["127.0.0.1"]) for _ in range(2))


class Files:
    """A pair on disk."""

    def __init__(self, folder: Path, pair: KeyPair = FIRST) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.write(pair)

    def write(self, pair: KeyPair) -> None:
        """Replace both."""
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)

    def served(self) -> ServingCertificate:
        """Read them."""
        return ServingCertificate(self.certificate, self.key, SteppedClock())


def serial(pair: KeyPair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate).serial_number


@asynccontextmanager
async def serving(certificate: ServingCertificate) -> AsyncIterator[int]:
    """Accept connections on a free port of loopback; each hears one byte."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"!")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=certificate.context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def shown(port: int, highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> int:
    """The serial number of the certificate that a new connection is shown; ssl.SSLError where none can be made."""
    context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    context.maximum_version = highest
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        assert await reader.read(1) == b"!"
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der).serial_number
    finally:
        writer.close()


def locked(key: bytes) -> bytes:
    """The key behind a password."""
    parsed = serialization.load_pem_private_key(key, None)
    return parsed.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"password")
    )


BAD_PAIRS = {
    "not a certificate": (
        KeyPair(b"nonsense", FIRST.key),
        "--tls-cert-file {crt} holds no PEM certificate; give the certificate, with its chain below",
    ),
    "not a key": (KeyPair(FIRST.certificate, b"nonsense"), "--tls-key-file {key} holds no PEM private key; give the certificate's own key"),
    "swapped": (
        KeyPair(FIRST.key, FIRST.certificate),
        "--tls-cert-file {crt} holds no PEM certificate; give the certificate, with its chain below",
    ),
    "empty": (KeyPair(FIRST.certificate, b"\n"), "--tls-key-file {key} is empty; write the PEM file"),
    "locked": (KeyPair(FIRST.certificate, locked(FIRST.key)), "--tls-key-file {key} is locked by a password; give a key without one"),
    "mismatched": (
        KeyPair(FIRST.certificate, SECOND.key),
        "--tls-cert-file {crt} and --tls-key-file {key} can't be used together: the key is not the certificate's; give",
    ),
    "half a certificate": (
        KeyPair(FIRST.certificate[:200], FIRST.key),
        "--tls-cert-file {crt} and --tls-key-file {key} can't be used together: one of them is damaged",
    ),
    "half a key": (
        KeyPair(FIRST.certificate, FIRST.key[:60]),
        "--tls-cert-file {crt} and --tls-key-file {key} can't be used together: one of them is damaged",
    ),
}


@pytest.mark.parametrize(("pair", "sentence"), BAD_PAIRS.values(), ids=BAD_PAIRS)
@stepped
async def test_a_pair_that_can_not_be_used_is_refused_with_what_would_help(pair: KeyPair, sentence: str, tmp_path: Path) -> None:
    files = Files(tmp_path, pair)
    with pytest.raises(CertificateError) as caught:
        files.served()
    assert str(caught.value).startswith(sentence.format(crt=files.certificate, key=files.key))
    assert b"PRIVATE KEY" not in str(caught.value).encode()


@stepped
async def test_a_file_that_can_not_be_read_is_named_with_its_flag(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.key.unlink()
    with pytest.raises(CertificateError) as caught:
        files.served()
    assert str(caught.value) == f"--tls-key-file {files.key} can't be read: No such file or directory; correct the path, or write the file"
    with pytest.raises(CertificateError, match=r"--tls-cert-file .* can't be read: Is a directory"):
        ServingCertificate(tmp_path, files.key, SteppedClock())


async def test_nothing_older_than_tls_1_2_is_spoken(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with serving(ServingCertificate(files.certificate, files.key, SystemClock())) as port:
        assert await shown(port, ssl.TLSVersion.TLSv1_2) == serial(FIRST)
        with pytest.warns(DeprecationWarning, match="TLSv1_1"), pytest.raises(ssl.SSLError):
            await shown(port, ssl.TLSVersion.TLSv1_1)


async def test_a_new_pair_is_shown_to_the_next_connection(tmp_path: Path) -> None:
    files = Files(tmp_path)
    certificate = ServingCertificate(files.certificate, files.key, SystemClock())
    async with serving(certificate) as port:
        assert await shown(port) == serial(FIRST)
        files.write(SECOND)
        certificate.look()
        assert await shown(port) == serial(SECOND)
        certificate.look()
        assert await shown(port) == serial(SECOND)


async def test_between_the_two_files_of_a_replacement_the_old_pair_is_shown(tmp_path: Path) -> None:
    files = Files(tmp_path)
    certificate = ServingCertificate(files.certificate, files.key, SystemClock())
    async with serving(certificate) as port:
        for half in (
            KeyPair(SECOND.certificate, FIRST.key),
            KeyPair(SECOND.certificate, b""),
            KeyPair(SECOND.certificate, SECOND.key[:50]),
        ):
            files.write(half)
            certificate.look()
            assert await shown(port) == serial(FIRST)
        files.key.unlink()
        certificate.look()
        assert await shown(port) == serial(FIRST)
        files.write(SECOND)
        certificate.look()
        assert await shown(port) == serial(SECOND)


@stepped
async def test_files_are_looked_at_every_few_seconds_and_a_bad_pair_is_said_once_a_minute(tmp_path: Path) -> None:
    clock, lines, files = SteppedClock(), Lines(), Files(tmp_path)
    certificate = files.served()
    with lines.caught():
        async with asyncio.TaskGroup() as tasks:
            fresh = tasks.create_task(certificate.keep_fresh())
            await clock.sleep(10 * LOOK_SECONDS)
            assert lines.texts() == []
            files.write(KeyPair(SECOND.certificate, FIRST.key))
            await clock.sleep(119.0)
            assert len(lines.texts("warning")) == 2
            assert "the old one stays problem=--tls-cert-file" in lines.texts("warning")[0]
            files.write(SECOND)
            await clock.sleep(LOOK_SECONDS)
            assert len(lines.texts("info")) == 1
            files.write(KeyPair(FIRST.certificate, SECOND.key))
            await clock.sleep(LOOK_SECONDS)
            assert len(lines.texts("warning")) == 3, "a new trouble is said at once"
            fresh.cancel()
    assert not any("PRIVATE KEY" in line for line in lines.texts())
