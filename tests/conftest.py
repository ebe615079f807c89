"""What every run of pytest says first."""

from __future__ import annotations

import pytest


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name what a plain run leaves out, and how to run it."""
    if config.pluginmanager.has_plugin("tests.real_servers.plugin"):
        return []
    return ["real servers: none (contract and acceptance tests play on the sandbox, tests/e2e is left out); `make e2e` runs all on them"]
