"""What settings must hold against each other, in IronCore v0.5.0's own words where it checks the same.

https://github.com/ironcore-dev/ironcore (cmd/machinepoollet); the texts are what an operator searches for. A check runs only where
every value that it needs was read and is fine by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loopwatch.durations import render
from loopwatch.settings import election_checks


@dataclass(frozen=True, slots=True)
class Check:
    """One relation: the names of the settings that it needs, and what is wrong with their values, empty where nothing is.

    With `unset_too` it also judges where some of them are not set (None).
    """

    needs: tuple[str, ...]
    problem: Callable[[Mapping[str, Any]], str]
    unset_too: bool = False

    def applies(self, values: Mapping[str, Any]) -> bool:
        """Whether what it needs was read; a value that could not be read is not there."""
        return all(name in values and (self.unset_too or values[name] is not None) for name in self.needs)


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


def _tls_pair_is_whole(values: Mapping[str, Any]) -> str:
    certificate, key = values["tls-cert-file"], values["tls-key-file"]
    if (certificate is None) == (key is None):
        return ""
    given, missing = ("--tls-cert-file", "--tls-key-file") if key is None else ("--tls-key-file", "--tls-cert-file")
    return f"{given} is set without {missing}: HTTPS needs both, plain HTTP neither"


def _lease_outlives_deadline(values: Mapping[str, Any]) -> str:
    return election_checks.lease_outlives_deadline_problem(values["leader-elect-lease-duration"], values["leader-elect-renew-deadline"])


def _deadline_outlives_retry(values: Mapping[str, Any]) -> str:
    return election_checks.deadline_outlives_retry_problem(values["leader-elect-renew-deadline"], values["leader-elect-retry-period"])


CHECKS = (
    Check(("heartbeat-lease-duration", "heartbeat-interval"), _lease_outlives_interval),
    Check(("heartbeat-status-timeout", "heartbeat-interval"), _probe_ends_before_next),
    Check(("leader-elect-lease-duration",), lambda values: election_checks.lease_duration_problem(values["leader-elect-lease-duration"])),
    Check(("leader-elect-renew-deadline",), lambda values: election_checks.renew_deadline_problem(values["leader-elect-renew-deadline"])),
    Check(("leader-elect-retry-period",), lambda values: election_checks.retry_period_problem(values["leader-elect-retry-period"])),
    Check(("leader-elect-lease-duration", "leader-elect-renew-deadline"), _lease_outlives_deadline),
    Check(("leader-elect-renew-deadline", "leader-elect-retry-period"), _deadline_outlives_retry),
    Check(("tls-cert-file", "tls-key-file"), _tls_pair_is_whole, unset_too=True),
)
