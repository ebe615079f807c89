"""loopwatch as operators run it: a process with flags, a log and a /metrics page; and its neighbours in a pool's pod."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from tests.real_servers.apiserver import LOOPBACK, free_port
from tests.real_servers.processes import Process

SCRAPE_SECONDS = 5.0
START_SECONDS = 20.0
KEPT_VARIABLES = ("PATH", "HOME", "TMPDIR", "LANG")


class Page:
    """A scraped /metrics page."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def __iter__(self) -> Iterator[tuple[str, dict[str, str], float]]:
        return ((sample.name, sample.labels, sample.value) for sample in self._samples)

    def values(self, name: str, **labels: str) -> list[float]:
        """Every sample of this name that has these labels, whatever others it has."""
        return [value for found, has, value in self if found == name and labels.items() <= has.items()]

    def value(self, name: str, **labels: str) -> float:
        """The one sample of this name with these labels; AssertionError when there is none or more than one."""
        found = self.values(name, **labels)
        assert len(found) == 1, f"{name}{labels}: {len(found)} samples on the page"
        return found[0]


class Loopwatch(Process):
    """One `loopwatch COMMAND ARGUMENTS...` on a free port. The environment of whoever runs the tests (proxies, KUBECONFIG) is kept out."""

    def __init__(self, command: str, arguments: list[str], log: Path, variables: Mapping[str, str]) -> None:
        self.port = free_port()
        line = [sys.executable, "-m", "loopwatch", command, *arguments, f"--listen-address={LOOPBACK}:{self.port}"]
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        super().__init__(f"loopwatch {command}", line, log, {**kept, **variables})

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        """Status and body of one GET, with a bearer token where one is given; OSError when it does not answer."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=SCRAPE_SECONDS)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def scrape(self) -> Page:
        """The /metrics page now."""
        status, text = self.get("/metrics")
        assert status == http.client.OK, f"/metrics answered {status}: {text[:200]}"
        return Page(text)

    def counted(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name with these labels; 0 where there is none yet, or the page does not answer yet."""
        try:
            return sum(self.scrape().values(name, **labels))
        except ConnectionRefusedError:
            return 0.0

    def wait_until_ready(self, within_seconds: float = START_SECONDS) -> None:
        """Until /readyz says 200: the first lists are done."""
        self.wait_until("ready", self._ready, within_seconds)

    def _ready(self) -> bool:
        try:
            return self.get("/readyz")[0] == http.client.OK
        except OSError:
            return False


class MachineRuntime:
    """The sandbox's machine runtime on a unix socket of its own; `process` is the one that runs, or ran last."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "runtime.sock"
        self._folder = folder
        self._behaviour = folder / "behaviour.json"
        self.behave("ok", machine_classes={"small": 4})
        self.process = self._start()

    def start_again(self) -> None:
        """A new process on the same socket, after the old one was killed."""
        self.process = self._start()

    def _start(self) -> Process:
        command = [sys.executable, "-m", "loopwatch.sandbox.runtime", f"--socket={self.socket}", f"--behaviour-file={self._behaviour}"]
        process = Process("machine runtime", command, self._folder / "runtime.log")
        process.wait_until("listening", lambda: "listening" in process.text(), START_SECONDS)
        return process

    def behave(self, kind: str, **how: Any) -> None:
        """From the next call on, one of loopwatch.sandbox.runtime.behaviours by its `kind`: ok, hang, error, slow, ..."""
        whole = self._behaviour.with_suffix(".new")
        whole.write_text(json.dumps({"kind": kind, **how}))
        whole.replace(self._behaviour)


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(http.client.OK)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Nobody reads it."""


class Machinepoollet:
    """The machinepoollet, as far as it vouches: its /healthz answers. Use it in a `with`."""

    def __init__(self) -> None:
        self._server = http.server.ThreadingHTTPServer((LOOPBACK, 0), _Answer)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="healthz", daemon=True)

    @property
    def healthz(self) -> str:
        """What the sidecar is told to ask."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}/healthz"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
