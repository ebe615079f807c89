"""A machine runtime to try things on: it can be slow, hung, wrong, gone and back.

`Runtime` is a real gRPC server on a unix socket, `MemoryRuntime` the same behaviours in memory and in the clock's time (for stepped
tests), and `python -m loopwatch.sandbox.runtime` a process of its own. `behaviours` names what each can be told to do.
"""

from loopwatch.sandbox.runtime.memory import MemoryRuntime
from loopwatch.sandbox.runtime.server import Runtime, SocketTaken

__all__ = ["MemoryRuntime", "Runtime", "SocketTaken"]
