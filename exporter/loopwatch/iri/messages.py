"""The two calls of the machine runtime interface as bytes in and plain values out.

The generated protobuf classes stay behind this module: everything else sees method paths, bytes, strings and numbers, so that mypy can
judge it, and so that an answer that can't be decoded is an error of ours and no log line of gRPC's.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from loopwatch.iri import api_pb2

SERVICE = "machine.v1alpha1.MachineRuntime"
STATUS_PATH = f"/{SERVICE}/Status"
VERSION_PATH = f"/{SERVICE}/Version"

MachineClasses = tuple[tuple[str, int], ...]
"""Pairs of a machine class's name and how many such machines the runtime could hold, sorted by name."""


class UndecodableAnswer(ValueError):
    """Bytes that are no message of the interface."""


def encode_status_request() -> bytes:
    """A StatusRequest: it has no fields."""
    return api_pb2.StatusRequest().SerializeToString()


def encode_version_request(version: str) -> bytes:
    """A VersionRequest; `version` is the interface's version as the caller knows it."""
    return api_pb2.VersionRequest(version=version).SerializeToString()


def encode_status_response(machine_classes: Iterable[tuple[str, int]]) -> bytes:
    """A StatusResponse with these classes in this order, doubles included."""
    return api_pb2.StatusResponse(
        machine_class_status=[
            api_pb2.MachineClassStatus(machine_class=api_pb2.MachineClass(name=name), quantity=quantity)
            for name, quantity in machine_classes
        ]
    ).SerializeToString()


def encode_version_response(runtime_name: str, runtime_version: str) -> bytes:
    """A VersionResponse."""
    return api_pb2.VersionResponse(runtime_name=runtime_name, runtime_version=runtime_version).SerializeToString()


def decode_status_response(answer: bytes) -> MachineClasses:
    """The classes of a StatusResponse: the last entry of a name wins, one without a name is left out. UndecodableAnswer otherwise."""
    try:
        response = api_pb2.StatusResponse.FromString(answer)
    except DecodeError as error:
        raise UndecodableAnswer(f"{len(answer)} bytes are no StatusResponse") from error
    quantities = {status.machine_class.name: status.quantity for status in response.machine_class_status}
    return tuple(sorted((name, quantity) for name, quantity in quantities.items() if name))


def decode_version_response(answer: bytes) -> tuple[str, str]:
    """Name and version of the runtime. UndecodableAnswer where the bytes are no VersionResponse."""
    try:
        response = api_pb2.VersionResponse.FromString(answer)
    except DecodeError as error:
        raise UndecodableAnswer(f"{len(answer)} bytes are no VersionResponse") from error
    return response.runtime_name, response.runtime_version
