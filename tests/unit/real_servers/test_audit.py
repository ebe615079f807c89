"""Reading a kube-apiserver's audit log."""

import json
from pathlib import Path
from typing import Any

from tests.real_servers.audit import AuditLog


def line(identity: str, *, stage: str = "ResponseComplete", second: int = 0, **changes: Any) -> str:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": identity,
        "stage": stage,
        "requestURI": "/apis/compute.ironcore.dev/v1alpha1/machinepools/a/status",
        "verb": "patch",
        "user": {"username": "sidecar"},
        "userAgent": "loopwatch/0.1 (sidecar)",
        "objectRef": {"resource": "machinepools", "name": "a", "apiGroup": "compute.ironcore.dev", "subresource": "status"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": f"2026-05-01T13:18:{second:02}.065888Z",
        "stageTimestamp": f"2026-05-01T13:18:{second:02}.071234Z",
    }
    return json.dumps({**event, **changes}) + "\n"


def test_a_subresource_is_part_of_the_resource(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(line("1"))
    (request,) = log.requests()
    assert (request.verb, request.resource, request.name, request.namespace, request.code) == ("patch", "machinepools/status", "a", "", 200)
    assert request.finished is not None
    assert (request.finished - request.received).total_seconds() == 0.005346


def test_a_path_that_is_no_resource_counts_too(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(line("1", objectRef={}, requestURI="/version", verb="get"))
    (request,) = log.requests()
    assert (request.resource, request.path) == ("", "/version")


def test_a_watch_with_two_lines_is_one_request(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(line("1", stage="ResponseStarted", verb="watch"))
    assert [request.finished for request in log.requests()] == [None]
    with log.path.open("a") as file:
        file.write(line("1", verb="watch"))
    (request,) = log.requests()
    assert request.finished is not None


def test_requests_come_in_the_order_they_were_received(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(line("1", second=2) + line("2", second=1))
    assert [request.received.second for request in log.requests()] == [1, 2]


def test_only_what_came_later_and_from_whom_it_is_asked_is_given(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    assert log.position() == 0
    assert log.requests() == []
    log.path.write_text(line("1"))
    position = log.position()
    with log.path.open("a") as file:
        file.write(line("2", userAgent="loopwatch/0.1 (controller)") + line("3", second=5))
    assert [request.received.second for request in log.requests(since=position, user_agent="(sidecar)")] == [5]


def test_half_a_line_is_left_for_the_next_look(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(line("1") + line("2")[:40])
    assert len(log.requests()) == 1
