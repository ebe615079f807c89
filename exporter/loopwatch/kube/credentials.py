"""The credentials in force: read again when their files change, once a minute in any case, and at once after a 401.

A file that is missing, empty or half written keeps what was read before, is counted, and is said once a minute: a rotation must never cost
a request. An exec plugin's credential is asked for anew in the background when it nears its end; only the first one is waited for. It
refuses to go on without: a plugin that fails is a CredentialsError, never an anonymous request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from loopwatch.clock import Clock
from loopwatch.kube import exec_plugin
from loopwatch.kube.errors import ConfigError
from loopwatch.kube.exec_plugin import ExecCredential
from loopwatch.kube.login import Login, Source, check_tls
from loopwatch.kube.sayings import Sayings
from loopwatch.kube.transport import CredentialsError

LOOK_SECONDS: Final = 1.0
"""How often, at most, the files are looked at (a stat each)."""
READ_SECONDS: Final = 60.0
"""How often they are read in any case: not every file system tells of every change."""
PLUGIN_PAUSE_SECONDS: Final = 1.0
"""A plugin is not started again sooner, however many requests were refused."""
_NEAR_SHARE: Final = 0.2
_NEAR_SECONDS: Final = 60.0
"""A credential is near its end in the last fifth of its life, at most the last minute."""

log: Any = structlog.get_logger("loopwatch.kube")
_Fingerprint = tuple[tuple[int, int, int] | None, ...]


@dataclass(slots=True)
class CredentialsStats:
    """Numbers of one connection's credentials, written by it alone."""

    changes_total: int = 0
    failures_total: int = 0
    last_failure: str = ""
    """Why the files can't be read, or the plugin gives nothing, at present; empty when neither hinders."""


class Credentials:
    """What one Source says now. `generation` rises with each change."""

    def __init__(self, source: Source, clock: Clock, environ: Mapping[str, str], plugin_timeout_seconds: float) -> None:
        """Reads for the first time. Raises ConfigError."""
        self.generation = 0
        self.stats = CredentialsStats()
        self._source = source
        self._clock = clock
        self._environ = environ
        self._plugin_timeout_seconds = plugin_timeout_seconds
        self._sayings = Sayings(clock)
        self._said, self._files = source.read()
        check_tls(self._said, source.name)
        self._login = self._said
        self._fingerprint = _fingerprint(self._files)
        self._file_failure = ""
        self._looked_at = self._read_at = clock.monotonic()
        self._credential: ExecCredential | None = None
        self._refresh_at: float | None = None
        self._plugin_task: asyncio.Task[None] | None = None
        self._plugin_failure = ""
        self._plugin_ended_at: float | None = None

    async def ready(self, within_seconds: float) -> Login:
        """The Login to use now. Raises CredentialsError where a plugin has not given one `within_seconds`."""
        self._look()
        if self._said.plugin is not None:
            if self._credential is None:
                await self._ask_plugin(within_seconds)
            elif self._refresh_at is not None and self._clock.monotonic() >= self._refresh_at:
                self._start_plugin()
        return self._login

    async def renew(self, refused_generation: int) -> bool:
        """Read again at once; True where what is in force now is not what was refused."""
        if self.generation > refused_generation:
            return True
        self._read()
        if self._said.plugin is not None:
            await self._ask_plugin(self._plugin_timeout_seconds)
        return self.generation > refused_generation

    async def close(self) -> None:
        """End a plugin that is still running."""
        if self._plugin_task is not None:
            self._plugin_task.cancel()
            await asyncio.gather(self._plugin_task, return_exceptions=True)

    def _look(self) -> None:
        now = self._clock.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        if now - self._read_at >= READ_SECONDS or self._file_failure or _fingerprint(self._files) != self._fingerprint:
            self._read()

    def _read(self) -> None:
        self._read_at = self._clock.monotonic()
        fingerprint = _fingerprint(self._files)  # before reading, so that a change meanwhile is seen at the next look
        try:
            said, files = self._source.read()
            if said != self._said:
                check_tls(said, self._source.name)
        except ConfigError as error:
            self._file_failure = str(error)
            self._failed(self._file_failure)
            return
        if files != self._files:
            fingerprint = _fingerprint(files)
        self._files, self._fingerprint = files, fingerprint
        self._file_failure = ""
        self._mended()
        if said == self._said:
            return
        if said.plugin != self._said.plugin:
            self._credential, self._refresh_at = None, None
        self._said = said
        self._take(said if self._credential is None else said.with_credential(self._credential))

    def _take(self, login: Login) -> None:
        if login == self._login:
            return
        self._login = login
        self.generation += 1
        self.stats.changes_total += 1
        log.info("credentials changed", source=self._source.name)

    def _mended(self) -> None:
        self.stats.last_failure = self._file_failure or self._plugin_failure
        if not self.stats.last_failure and self._sayings.forget():
            log.info("credentials can be read again", source=self._source.name)

    def _failed(self, why: str) -> None:
        self.stats.failures_total += 1
        self.stats.last_failure = why
        if self._sayings.due("failure"):
            without = self._said.plugin is not None and self._credential is None
            in_use = "none: no request is sent" if without else "the old ones"
            log.warning("credentials can't be read or made", source=self._source.name, why=why, in_use=in_use)

    async def _ask_plugin(self, within_seconds: float) -> None:
        """Wait for a run of the plugin: the one under way, else a new one, unless one has only just failed."""
        self._start_plugin()
        task = self._plugin_task
        if task is not None:
            await asyncio.wait({task}, timeout=within_seconds)  # it goes on when this request is given up: the next one needs it too
            if not task.done():
                raise CredentialsError(f"{self._source.name}: the exec plugin has not answered within {within_seconds:g} s yet")
            if task.cancelled():
                raise CredentialsError(f"{self._source.name}: the connection was closed while the exec plugin ran")
        if self._plugin_failure:
            raise CredentialsError(f"{self._source.name}: {self._plugin_failure}")

    def _start_plugin(self) -> None:
        now = self._clock.monotonic()
        resting = self._plugin_ended_at is not None and now - self._plugin_ended_at < PLUGIN_PAUSE_SECONDS
        if self._plugin_task is None and not resting:
            self._plugin_task = asyncio.create_task(self._run_plugin(), name="exec plugin")

    async def _run_plugin(self) -> None:
        plugin = self._said.plugin
        try:
            if plugin is None:
                return
            credential = await exec_plugin.run(plugin, self._environ, self._plugin_timeout_seconds)
            login = self._said.with_credential(credential)
            check_tls(login, self._source.name)
        except (CredentialsError, ConfigError) as error:
            self._plugin_failure = str(error)
            self._failed(self._plugin_failure)
            if self._refresh_at is not None:
                self._refresh_at = self._clock.monotonic() + READ_SECONDS / 6
        else:
            self._plugin_failure = ""
            self._mended()
            self._credential = credential
            self._refresh_at = self._end(credential)
            self._take(login)
        finally:
            self._plugin_ended_at = self._clock.monotonic()
            self._plugin_task = None

    def _end(self, credential: ExecCredential) -> float | None:
        """When to ask for a new one, by the monotonic clock; a wall clock that is wrong costs a run a minute, never a refusal."""
        if credential.expires_at is None:
            return None
        left_seconds = (credential.expires_at - self._clock.utcnow()).total_seconds()
        near_seconds = min(_NEAR_SECONDS, left_seconds * _NEAR_SHARE)
        return self._clock.monotonic() + (left_seconds - near_seconds if left_seconds > 0 else READ_SECONDS)


def _fingerprint(files: tuple[Path, ...]) -> _Fingerprint:
    """What a replaced file does not share with the old one; None for one that is not there."""
    return tuple(_identity(path) for path in files)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
