"""loopwatch.iri.messages: the bytes on the wire are IronCore's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.iri import messages
from loopwatch.iri.messages import UndecodableAnswer


def test_the_paths_are_those_of_the_machine_runtime() -> None:
    assert messages.STATUS_PATH == "/machine.v1alpha1.MachineRuntime/Status"
    assert messages.VERSION_PATH == "/machine.v1alpha1.MachineRuntime/Version"


def test_a_status_request_is_empty() -> None:
    assert messages.encode_status_request() == b""


# Written by hand from the field numbers: StatusResponse{1 [MachineClassStatus{1 {1 name, 2 capabilities{1 map}}, 2 quantity}]}.
SMALL_FOUR = b"\x0a\x0b\x0a\x07\x0a\x05small\x10\x04"
WITH_CAPABILITIES = (
    b"\x0a\x1d"  # status, 29 bytes
    b"\x0a\x19\x0a\x05large"  # its class, 25 bytes: name
    b"\x12\x10\x0a\x0e\x0a\x06memory\x10\x80\x80\x80\x80"  # capabilities, 16 bytes: one map entry, whose varint goes on:
    b"\x40"
    b"\x10\x02"  # quantity
)


def test_a_status_answer_is_read_by_field_number() -> None:
    assert messages.decode_status_response(SMALL_FOUR) == (("small", 4),)
    assert messages.encode_status_response([("small", 4)]) == SMALL_FOUR


def test_capabilities_are_read_past() -> None:
    assert messages.decode_status_response(WITH_CAPABILITIES) == (("large", 2),)


def test_fields_of_a_later_interface_are_read_past() -> None:
    assert messages.decode_status_response(SMALL_FOUR + b"\x7a\x03new") == (("small", 4),)


def test_an_answer_without_classes_is_a_good_answer() -> None:
    assert messages.decode_status_response(b"") == ()


def test_the_last_entry_of_a_name_wins_and_names_are_sorted() -> None:
    answer = messages.encode_status_response([("b", 1), ("a", 2), ("b", 3)])
    assert messages.decode_status_response(answer) == (("a", 2), ("b", 3))


def test_an_entry_without_a_name_is_left_out() -> None:
    assert messages.decode_status_response(messages.encode_status_response([("", 9), ("a", 1)])) == (("a", 1),)


def test_a_quantity_may_be_anything_that_64_bits_hold() -> None:
    extremes = (("least", -(2**63)), ("most", 2**63 - 1))
    assert messages.decode_status_response(messages.encode_status_response(extremes)) == extremes


@pytest.mark.parametrize("answer", [b"\xff\xff\xff", SMALL_FOUR[:-1], b"HTTP/1.1 200 OK", b"\x0a\x02\x0a\xff"])
def test_bytes_that_are_no_answer_are_an_error_of_ours_that_shows_none_of_them(answer: bytes) -> None:
    with pytest.raises(UndecodableAnswer, match=f"^{len(answer)} bytes are no StatusResponse$"):
        messages.decode_status_response(answer)


def test_a_name_that_is_no_utf8_is_undecodable() -> None:
    with pytest.raises(UndecodableAnswer):
        messages.decode_status_response(b"\x0a\x06\x0a\x04\x0a\x02\xff\xfe")


def test_a_version_answer_holds_name_and_version() -> None:
    answer = b"\x0a\x07libvirt\x12\x050.1.2"
    assert messages.encode_version_response("libvirt", "0.1.2") == answer
    assert messages.decode_version_response(answer) == ("libvirt", "0.1.2")
    with pytest.raises(UndecodableAnswer, match="no VersionResponse"):
        messages.decode_version_response(b"\xff")


def test_a_version_request_carries_the_version_in_field_1() -> None:
    assert messages.encode_version_request("0.1.0") == b"\x0a\x050.1.0"


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(-(2**63), 2**63 - 1)))
def test_what_is_encoded_is_decoded(machine_classes: dict[str, int]) -> None:
    answer = messages.encode_status_response(machine_classes.items())
    assert dict(messages.decode_status_response(answer)) == machine_classes


@given(st.binary(max_size=64))
def test_any_bytes_are_classes_or_undecodable(answer: bytes) -> None:
    try:
        machine_classes = messages.decode_status_response(answer)
    except UndecodableAnswer:
        return
    assert list(machine_classes) == sorted(machine_classes)
