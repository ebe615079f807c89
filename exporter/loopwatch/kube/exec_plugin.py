"""Credentials that a program prints: the `exec` of a kubeconfig's user (client.authentication.k8s.io).

kubernetes.aio runs such a plugin once, without a deadline, and goes on without credentials when it fails; a request would then be sent
anonymously and the answer would blame the wrong thing. Here a plugin that fails is a CredentialsError, it has a deadline, and what hangs is
killed with its children. It refuses to be asked interactively: no plugin gets this process's terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import msgspec

from loopwatch.kube.memory import memory_file
from loopwatch.kube.transport import CredentialsError
from loopwatch.microtime import parse_nanoseconds
from loopwatch.text import clean_message

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_OUTPUT_BYTES: Final = 2**20
_STDERR_BYTES: Final = 300


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """What to run. `cluster` is the cluster's part of KUBERNETES_EXEC_INFO as JSON, None unless provideClusterInfo asks for it."""

    command: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    api_version: str
    install_hint: str
    cluster: bytes | None


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What it gave: a token, or a client certificate with its key, or all three."""

    token: str = field(repr=False)
    certificate: bytes | None = field(repr=False)
    key: bytes | None = field(repr=False)
    expires_at: datetime.datetime | None


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


_decode_answer: Final = msgspec.json.Decoder(_Answer).decode


async def run(plugin: ExecPlugin, environ: Mapping[str, str], timeout_seconds: float) -> ExecCredential:
    """Run it once. Raises CredentialsError: can't be started, failed, too slow, or no credential in its answer."""
    environment = {**environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": _exec_info(plugin)}
    with memory_file() as out, memory_file() as err:
        process = await _started(plugin, environment, out, err)
        try:
            async with asyncio.timeout(timeout_seconds):
                await process.wait()
        except TimeoutError as error:
            raise CredentialsError(
                f"exec plugin {plugin.command!r} has not answered within {timeout_seconds:g} s and was killed"
            ) from error
        finally:
            await _kill(process)
        printed, said = _content(out), _content(err)
    if process.returncode != 0:
        why = clean_message(said.decode(errors="replace").strip(), _STDERR_BYTES) or "it said nothing"
        raise CredentialsError(f"exec plugin {plugin.command!r} ended with exit code {process.returncode}: {why}")
    return _credential(plugin, printed)


async def _started(plugin: ExecPlugin, environment: Mapping[str, str], out: BinaryIO, err: BinaryIO) -> Process:
    """The running plugin, in a session of its own so that it can be killed with its children.

    Its output goes to files: a pipe is at its end only when the last child that inherited it has ended, which may be a daemon.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except OSError as error:
        hint = f"; {clean_message(plugin.install_hint, 300)}" if plugin.install_hint else ""
        raise CredentialsError(f"exec plugin {plugin.command!r} can't be started: {error.strerror or error}{hint}") from error
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _kill(await starting)
        raise


async def _kill(process: Process) -> None:
    """End it with its children, if it still runs."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(_OUTPUT_BYTES)


def _exec_info(plugin: ExecPlugin) -> str:
    spec: dict[str, object] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = msgspec.Raw(plugin.cluster)
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _credential(plugin: ExecPlugin, out: bytes) -> ExecCredential:
    """The answer, which is never repeated in an error: it holds the secret."""
    try:
        answer = _decode_answer(out)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CredentialsError(f"exec plugin {plugin.command!r} printed no ExecCredential: {clean_message(str(error), 200)}") from error
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        was = clean_message(f"{answer.api_version} {answer.kind}", 200)
        raise CredentialsError(f"exec plugin {plugin.command!r} printed {was!r}; the kubeconfig says {plugin.api_version} ExecCredential")
    status = answer.status or _Status()
    pair = (status.client_certificate_data, status.client_key_data)
    if not status.token and not all(pair):
        raise CredentialsError(f"exec plugin {plugin.command!r} gave neither a token nor a client certificate with its key")
    token = (status.token or "").strip()
    if not all(0x21 <= ord(character) <= 0x7E for character in token):
        raise CredentialsError(f"exec plugin {plugin.command!r} gave a token with spaces or control characters in it")
    certificate, key = (part.encode() for part in pair if part) if all(pair) else (None, None)
    return ExecCredential(token, certificate, key, _expiry(plugin, status.expiration_timestamp))


def _expiry(plugin: ExecPlugin, text: str | None) -> datetime.datetime | None:
    if not text:
        return None
    try:
        return datetime.datetime.fromtimestamp(parse_nanoseconds(text) / 1e9, datetime.UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise CredentialsError(f"exec plugin {plugin.command!r}: expirationTimestamp {clean_message(text, 64)!r} is no time") from error
