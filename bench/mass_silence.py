"""Mass silence on a real kube-apiserver: how long after its own deadline each of many pools is Unknown.

Prints a table and one JSON line a story, beside what IronCore's own controller (v0.5.0, one worker) took elsewhere. Needs the real servers
that `make e2e` builds. `POOLS=10000 .venv/bin/python bench/mass_silence.py` tries another size.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.e2e import mass_silence
from tests.e2e.programs import Loopwatch
from tests.e2e.watching import LEASES, POOLS
from tests.real_servers.apiserver import ApiServer

ELSEWHERE = (
    "recorded elsewhere, IronCore's controller: the last of 2,000 pools 12.9 s after its deadline, of 10,000 65 s; aim 10 s and 50 s"
)


def main() -> None:
    """Play the stories, one server for all."""
    pools = int(os.environ.get("POOLS", "2000"))
    with tempfile.TemporaryDirectory(prefix="loopwatch-bench-") as folder, ApiServer(Path(folder) / "server") as server:
        print(mass_silence.HEADER)
        for story in ("aligned", "phases", "return"):

            def start(*flags: str, story: str = story) -> Loopwatch:
                return Loopwatch("controller", [*flags, f"--kubeconfig={server.kubeconfig}"], Path(folder) / f"{story}.log", {})

            figures = asyncio.run(mass_silence.play(story, server, start, pools))
            print(figures)
            print(json.dumps(dataclasses.asdict(figures)))
            for collection in (POOLS, LEASES):
                server.client.delete(collection)
    print(ELSEWHERE)


if __name__ == "__main__":
    main()
