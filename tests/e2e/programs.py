"""loopwatch as operators run it: a process with flags, a log and a /metrics page."""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

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

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of one GET; OSError when it does not answer."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=SCRAPE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def scrape(self) -> Page:
        """The /metrics page now."""
        status, text = self.get("/metrics")
        assert status == http.client.OK, f"/metrics answered {status}: {text[:200]}"
        return Page(text)

    def wait_until_ready(self, within_seconds: float = START_SECONDS) -> None:
        """Until /readyz says 200: the first lists are done."""
        self.wait_until("ready", self._ready, within_seconds)

    def _ready(self) -> bool:
        try:
            return self.get("/readyz")[0] == http.client.OK
        except OSError:
            return False
