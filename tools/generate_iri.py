"""Writes exporter/loopwatch/iri/api_pb2.py and api_pb2.pyi from api.proto, or says whether they have drifted from it.

protoc (grpcio-tools) does the work. One thing is taken out of its output: the guard by which generated code refuses every protobuf
older than the protoc that wrote it and warns on every newer major one. What we use of it is the same from 6.30 to 7.x, and pyproject.toml
keeps that floor. No service stubs are generated: they carry the same guard against grpcio, and two method paths need none
(loopwatch/iri/messages.py).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ROOT = ROOT / "exporter"
PROTO = Path("loopwatch/iri/api.proto")
GENERATED = (Path("loopwatch/iri/api_pb2.py"), Path("loopwatch/iri/api_pb2.pyi"))

STUB_HEADER = "# mypy: disable-error-code=type-arg\n"  # protoc writes a bare Mapping
VERSION_GUARD = (
    re.compile(r"^# Protobuf Python Version: .*\n", re.MULTILINE),
    re.compile(r"^from google\.protobuf import runtime_version as _runtime_version\n", re.MULTILINE),
    re.compile(r"^_runtime_version\.ValidateProtobufRuntimeVersion\(\n(?:    .*\n)+\)\n", re.MULTILINE),
)


def without_version_guard(text: str) -> str:
    """The Python that protoc wrote, without its guard; ValueError where protoc no longer writes it as we know it."""
    for part in VERSION_GUARD:
        text, count = part.subn("", text)
        if count != 1:
            raise ValueError(f"protoc's output holds {part.pattern!r} {count} times, expected once: look at what it writes now")
    return text


def generate() -> dict[Path, str]:
    """What the generated files should hold, by their path under exporter/; RuntimeError with protoc's words where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{SOURCE_ROOT}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            str(PROTO),
        ]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - all parts are ours
        if outcome.returncode:
            raise RuntimeError(f"protoc refused {PROTO} (exit {outcome.returncode}):\n{outcome.stderr}")
        texts = {path: (Path(folder) / path).read_text(encoding="utf-8") for path in GENERATED}
    return {path: without_version_guard(text) if path.suffix == ".py" else STUB_HEADER + text for path, text in texts.items()}


def write(check: bool) -> list[str]:  # noqa: FBT001 - tools/generate.py calls each generator so
    """Write what differs, or with `check` only look; the paths that differed, from the top of the repository."""
    drifted = []
    for path, text in generate().items():
        target = SOURCE_ROOT / path
        if target.is_file() and target.read_text(encoding="utf-8") == text:
            continue
        drifted.append(target.relative_to(ROOT).as_posix())
        if not check:
            target.write_text(text, encoding="utf-8")
    return drifted


def main() -> int:
    """The command: 0, or 1 where `--check` found drift."""
    parser = argparse.ArgumentParser(description="Write the generated messages of the machine runtime interface.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs from what would be written")
    check: bool = parser.parse_args().check
    drifted = write(check)
    for path in drifted:
        print(f"{path} {'has drifted: run make gen' if check else 'written'}")
    return 1 if check and drifted else 0


if __name__ == "__main__":
    sys.exit(main())
