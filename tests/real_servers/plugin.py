"""pytest plugin of `make e2e`: one real API server for each process that runs tests.

Loaded by `-p tests.real_servers.plugin`. Before any conftest is read it sets LOOPWATCH_REAL_KUBECONFIG and LOOPWATCH_REAL_ETCD, so that
tests/contract and tests/acceptance, which else play on the sandbox, run on the real server; tests/e2e uses the server itself. Its files are
thrown away when all tests passed, else kept, and the end of a dead server's log is shown with the test that failed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped] # it ships no types

from tests.real_servers.apiserver import ApiServer
from tests.real_servers.paths import RUNS

VARIABLE = "LOOPWATCH_REAL_KUBECONFIG"
ETCD_VARIABLE = "LOOPWATCH_REAL_ETCD"
KEPT_SECONDS = 24 * 3600.0
SHARING = ("test_rights_sidecar.py", "test_rights_controller.py")

SERVER = pytest.StashKey[ApiServer]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start the server, but not in the process that only hands tests out to others."""
    if VARIABLE in os.environ:
        raise pytest.UsageError(f"{VARIABLE} is set, but `make e2e` starts its own servers: unset it, or leave this plugin out")
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if early_config.known_args_namespace.numprocesses and worker is None:
        return
    server = ApiServer(_new_run(worker or "main"))
    early_config.add_cleanup(server.stop)
    server.start()
    early_config.stash[SERVER] = server
    os.environ[VARIABLE] = str(server.kubeconfig)
    os.environ[ETCD_VARIABLE] = server.etcd_url


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure that the server is gone, and its last words."""
    report = yield
    server = item.config.stash.get(SERVER, None)
    if report.failed and server is not None and server.process.exit_code is not None:
        title = f"kube-apiserver ended with {server.process.exit_code}, the end of {server.process.log}"
        report.sections.append((title, server.process.tail()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests measured (record_property), also of those that passed."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind) if report.when == "call"]
    measured = [(report.nodeid.split("::")[-1], report.user_properties) for report in reports if report.user_properties]
    if measured:
        terminalreporter.section("measured")
    for name, properties in measured:
        terminalreporter.write_line(name)
        for key, value in properties:
            terminalreporter.write_line(f"    {key}: {value}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadGroupScheduling:
    """Hand tests out one by one, but those of SHARING modules to one process: they share a dozen processes of loopwatch."""
    return _Scheduling(config, log)


class _Scheduling(LoadGroupScheduling):  # type: ignore[misc] # for the same reason
    """By the names of files: xdist 3.8's own marks of groups get lost with pytest 9.2, which no longer reads `_nodeid`."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if module.endswith(SHARING) else nodeid


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Throw the server's files away when all went well."""
    server = session.config.stash.get(SERVER, None)
    if server is not None and exitstatus == pytest.ExitCode.OK:
        server.stop()
        shutil.rmtree(server.state)


def _new_run(worker: str) -> Path:
    """A folder for this run; those that failed runs left are removed a day later."""
    RUNS.mkdir(parents=True, exist_ok=True)
    for old in RUNS.iterdir():
        if time.time() - old.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(old)
    return RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{worker}"
