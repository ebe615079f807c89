"""`loopwatch check`: what stands in the way, asked before installing and after, with the command that mends each thing.

`table` lists every finding there can be, `facts` holds what was seen, `probes` looks (the only part that asks anybody), `judge` says what
it means, `show` prints it. It changes nothing, and needs no right beyond those of `loopwatch rbac reader`.
"""

from loopwatch.check.command import run

__all__ = ["run"]
