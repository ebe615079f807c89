"""`loopwatch demo`: the main job on a cluster in memory, to be looked at.

Real sidecars and a real controller, on the sandbox's API server over HTTP, with real gRPC runtimes behind unix sockets; only the cluster is
pretended, and time runs faster (`world.Times`). `--once` plays the story once and judges what /metrics showed of it.
"""

from loopwatch.demo.run import run

__all__ = ["run"]
