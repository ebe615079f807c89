"""Where the real servers live: everything below `.cache/real-servers`, which git ignores and `make clean` removes."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / ".cache" / "real-servers"
BINARIES = CACHE / "bin"
RUNS = CACHE / "run"
CRDS = ROOT / "exporter" / "loopwatch" / "sandbox" / "apiserver" / "ironcore-crds.yaml"
"""The sandbox's own: both servers hold the same resources."""
