"""A certificate authority for one throw-away API server. Keys are elliptic (made in a millisecond) and live for a week."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=7)
SLACK = datetime.timedelta(hours=1)  # a clock that is set back during the tests must not make a certificate one of the future


class KeyPair(NamedTuple):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates; `certificate` is what its clients trust."""

    certificate: bytes
    _parsed: x509.Certificate
    _key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, name: str) -> Authority:
        """A new self-signed authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name, ())
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(subject, subject, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
        return cls(certificate.public_bytes(serialization.Encoding.PEM), certificate, key)

    def server(self, name: str, hosts: Sequence[str]) -> KeyPair:
        """A certificate for a server that is reached by these names and addresses."""
        return self._issue(
            _subject(name, ()), ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        )

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A certificate by which an API server knows `user`, a member of `groups`."""
        return self._issue(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._parsed.subject, key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as Go's crypto/tls reads it."""
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


def signing_key() -> tuple[bytes, bytes]:
    """A key for service-account tokens: (private PEM, public PEM)."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private_pem(key), public


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SLACK)
        .not_valid_after(now + LIFETIME)
    )


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
