"""Whether another lifecycle controller than ours is at work: seen from the name on a write of Unknown.

Two of them are harmless to each other, but the other one's marks know neither sight nor confirmation. What is asked is who turned Ready to
Unknown in a change that this process saw; who owns the list of a pool that was Unknown before may have added a condition of its own since.
"""

from __future__ import annotations

from loopwatch.pools.model import LIFECYCLE_MANAGER, MachinePool, UnknownMachinePool, is_lifecycle_unknown


def marked_by_another(before: MachinePool | None, after: MachinePool) -> bool:
    """True where Ready turned to a lifecycle's Unknown between these two sights of one pool, by a write that is not ours."""
    if before is None or before.metadata.uid != after.metadata.uid or is_lifecycle_unknown(before.ready):
        return False
    writers = after.condition_writers if isinstance(after, UnknownMachinePool) else ()
    return bool(writers) and LIFECYCLE_MANAGER not in writers
