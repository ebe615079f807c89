"""Authorities, server and client certificates for the TLS tests, made by the `openssl` command when they are needed first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

_NEW = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650")


class Pair(NamedTuple):
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Certificates:
    """Makes and remembers them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if shutil.which("openssl") is None:
            raise RuntimeError("the tests of TLS make their certificates with the openssl command, which is not installed")

    def authority(self, name: str) -> Pair:
        """A self-signed authority."""
        return self._made(name, "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def server(self, name: str, authority: str) -> Pair:
        """A certificate for 127.0.0.1."""
        return self._signed(name, authority, "-addext", "subjectAltName=IP:127.0.0.1,DNS:kubernetes.default.svc")

    def client(self, name: str, authority: str) -> Pair:
        """A certificate whose common name is `name`."""
        return self._signed(name, authority, "-addext", "extendedKeyUsage=clientAuth")

    def _signed(self, name: str, authority: str, *arguments: str) -> Pair:
        signer = self.authority(authority)
        return self._made(name, "-CA", str(signer.certificate), "-CAkey", str(signer.key), *arguments)

    def _made(self, name: str, *arguments: str) -> Pair:
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        if not pair.certificate.exists():
            subprocess.run(  # noqa: S603
                [*_NEW, "-subj", f"/CN={name}", "-keyout", str(pair.key), "-out", str(pair.certificate), *arguments],
                check=True,
                capture_output=True,
            )
        return pair
