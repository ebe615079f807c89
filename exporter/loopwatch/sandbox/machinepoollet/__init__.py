"""A stand-in for IronCore's machinepoollet v0.5.0, faults included: what loopwatch must live beside.

It is a foreign program. It shares no decision, constant or condition with the rooms, writes as upstream does (no resourceVersion, a whole
conditions list out of its own cache, a lease taken from whoever holds it), and knows nothing of loopwatch. It runs no machines: of the
poollet only the pool, the lease, the Ready condition and healthz are here.

`process` is the program, `heartbeat` its lease and probe, `pool_status` the writer of the pool's status, `cache` its copy of the API.
"""

from loopwatch.sandbox.machinepoollet.heartbeat import HeartbeatTimes
from loopwatch.sandbox.machinepoollet.process import Machinepoollet, MachinepoolletExited, MachinepoolletSettings, VersionedRuntime

__all__ = ["HeartbeatTimes", "Machinepoollet", "MachinepoolletExited", "MachinepoolletSettings", "VersionedRuntime"]
