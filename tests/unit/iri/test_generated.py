"""tools/generate_iri.py: the committed messages are what api.proto says, on every protobuf that pyproject.toml allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import generate_iri


def test_the_committed_files_are_what_the_generator_writes() -> None:
    assert generate_iri.write(check=True) == []


def test_a_file_that_drifted_is_named_and_only_written_when_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = {Path("kept.py"): "kept\n", Path("drifted.py"): "new\n", Path("absent.pyi"): "new\n"}
    (tmp_path / "exporter").mkdir()
    (tmp_path / "exporter/kept.py").write_text("kept\n")
    (tmp_path / "exporter/drifted.py").write_text("old\n")
    monkeypatch.setattr(generate_iri, "ROOT", tmp_path)
    monkeypatch.setattr(generate_iri, "SOURCE_ROOT", tmp_path / "exporter")
    monkeypatch.setattr(generate_iri, "generate", lambda: texts)

    assert generate_iri.write(check=True) == ["exporter/drifted.py", "exporter/absent.pyi"]
    assert (tmp_path / "exporter/drifted.py").read_text() == "old\n"
    assert generate_iri.write(check=False) == ["exporter/drifted.py", "exporter/absent.pyi"]
    assert (tmp_path / "exporter/drifted.py").read_text() == "new\n"
    assert generate_iri.write(check=True) == []


def test_no_guard_ties_the_messages_to_one_version_of_protobuf() -> None:
    text = (generate_iri.SOURCE_ROOT / "loopwatch/iri/api_pb2.py").read_text()
    assert "ValidateProtobufRuntimeVersion" not in text
    assert "Protobuf Python Version" not in text


def test_a_protoc_that_writes_its_guard_in_another_way_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times, expected once"):
        generate_iri.without_version_guard("DESCRIPTOR = 1\n")
