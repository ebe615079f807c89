"""loopwatch.iri.probe: outcomes are told as operators of IronCore know them."""

from __future__ import annotations

import grpc
import pytest

from loopwatch.iri.probe import CODES, ProbeResult, deadline_exceeded, failed


def test_the_codes_stand_in_grpcs_order_with_gos_names() -> None:
    assert len(CODES) == len(grpc.StatusCode)
    for code in grpc.StatusCode:
        number, _ = code.value
        spelled = CODES[number].lower().replace("canceled", "cancelled")  # Go and gRPC spell this one differently
        assert spelled == code.name.replace("_", "").lower()


def test_a_failure_reads_as_grpc_go_writes_it() -> None:
    assert failed("Unavailable", "gone") == ProbeResult("Unavailable", "rpc error: code = Unavailable desc = gone")
    assert deadline_exceeded().message == "rpc error: code = DeadlineExceeded desc = context deadline exceeded"


def test_a_failures_message_is_cleaned_and_cut_to_one_kibibyte() -> None:
    message = failed("Internal", "a\nb\x00" + "ü" * 4000).message
    assert message.startswith("rpc error: code = Internal desc = a b ü")
    assert len(message.encode()) in {1023, 1024}


@pytest.mark.parametrize("code", ["OK", "UNAVAILABLE", "Cancelled", ""])
def test_a_failure_with_a_code_that_is_none_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match="is no code of a failed call; allowed are Canceled, Unknown"):
        failed(code, "gone")


def test_only_ok_is_a_success() -> None:
    assert ProbeResult("OK").succeeded
    assert not any(failed(code, "x").succeeded for code in CODES[1:])
