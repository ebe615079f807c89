"""What settings must hold against each other, in IronCore v0.5.0's own words where it checks the same.

https://github.com/ironcore-dev/ironcore (cmd/machinepoollet); the texts are what an operator searches for. A check runs only where
every value that it needs was read and is fine by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loopwatch.durations import render


@dataclass(frozen=True, slots=True)
class Check:
    """One relation: the names of the settings that it needs, and what is wrong with their values, empty where nothing is."""

    needs: tuple[str, ...]
    problem: Callable[[Mapping[str, Any]], str]


def _lease_outlives_interval(values: Mapping[str, Any]) -> str:
    lease, interval = values["heartbeat-lease-duration"], values["heartbeat-interval"]
    if lease > interval:
        return ""
    return f"--heartbeat-lease-duration ({render(lease)}) must be greater than --heartbeat-interval ({render(interval)})"


def _probe_ends_before_next(values: Mapping[str, Any]) -> str:
    timeout, interval = values["heartbeat-status-timeout"], values["heartbeat-interval"]
    if 0 < timeout < interval:
        return ""
    return f"--heartbeat-status-timeout ({render(timeout)}) must be > 0 and less than --heartbeat-interval ({render(interval)})"


CHECKS = (
    Check(("heartbeat-lease-duration", "heartbeat-interval"), _lease_outlives_interval),
    Check(("heartbeat-status-timeout", "heartbeat-interval"), _probe_ends_before_next),
)
