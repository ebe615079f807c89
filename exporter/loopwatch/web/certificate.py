"""The certificate that the listen address shows (`--tls-cert-file`, `--tls-key-file`), kept as its files say.

A pair that can't be used at the start is the user's to mend. Later the old pair stays in use until the files hold a whole new one: they
are replaced one after the other, so for a moment they don't belong together. TLS 1.2 is the least that is spoken. It refuses to ask
for a key's password, and to hand OpenSSL anything but the very bytes that were tried before.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final, NoReturn

from loopwatch.clock import Clock
from loopwatch.kube.memory import client_pair_as_files
from loopwatch.kube.sayings import Sayings
from loopwatch.log import get_logger

LOOK_SECONDS: Final = 5.0
"""How often the files are read: some kilobytes, and no file system has to tell of changes."""


class CertificateError(Exception):
    """The pair can't be used; the text says which file, why, and how to mend it."""


class ServingCertificate:
    """One pair of PEM files; `context` serves what they held when they were last a pair."""

    def __init__(self, certificate: Path, key: Path, clock: Clock) -> None:
        """Reads both. Raises CertificateError."""
        self._certificate, self._key = certificate, key
        self._clock = clock
        self._sayings = Sayings(clock)
        self._pair = self._read()
        self.context = self._context(self._pair)

    async def keep_fresh(self) -> NoReturn:
        """Take over what the files say, for ever; a pair that can't be used is said once a minute."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Read the files now."""
        try:
            pair = self._read()
            if pair != self._pair:
                self._context(pair)
                _load(self.context, pair)
                self._pair = pair
                get_logger().info("the certificate of the listen address was replaced", file=str(self._certificate))
        except CertificateError as error:
            if self._sayings.due("pair"):
                get_logger().warning("the new certificate of the listen address can't be used; the old one stays", problem=str(error))
        else:
            self._sayings.forget()

    def _read(self) -> tuple[bytes, bytes]:
        certificate, key = _content(self._certificate, "--tls-cert-file"), _content(self._key, "--tls-key-file")
        if b"-----BEGIN CERTIFICATE-----" not in certificate:
            raise CertificateError(
                f"--tls-cert-file {self._certificate} holds no PEM certificate; give the certificate, with its chain below"
            )
        if b"PRIVATE KEY-----" not in key:
            raise CertificateError(f"--tls-key-file {self._key} holds no PEM private key; give the certificate's own key")
        if b"ENCRYPTED" in key:
            raise CertificateError(f"--tls-key-file {self._key} is locked by a password; give a key without one")
        return certificate, key

    def _context(self, pair: tuple[bytes, bytes]) -> ssl.SSLContext:
        """A context of its own with this pair. Raises CertificateError."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            _load(context, pair)
        except (ssl.SSLError, ValueError) as error:
            mismatch = isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH"
            why = "the key is not the certificate's" if mismatch else f"one of them is damaged ({error})"
            raise CertificateError(
                f"--tls-cert-file {self._certificate} and --tls-key-file {self._key} can't be used together: {why}; "
                "give a certificate and its own key, both whole"
            ) from error
        return context


def _load(context: ssl.SSLContext, pair: tuple[bytes, bytes]) -> None:
    with client_pair_as_files(*pair) as (certificate, key):
        # Without a password OpenSSL would ask for one on the terminal and wait for ever.
        context.load_cert_chain(certificate, key, password="")


def _content(path: Path, flag: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{flag} {path} can't be read: {error.strerror or error}; correct the path, or write the file") from error
    if not content.strip():
        raise CertificateError(f"{flag} {path} is empty; write the PEM file")
    return content
