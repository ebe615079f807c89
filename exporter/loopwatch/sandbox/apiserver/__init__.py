"""An API server in memory that behaves as kube-apiserver does for the resources that loopwatch uses.

`api.ApiServer` is the door; `router` turns calls into answers, `store` keeps objects and history, `writes`, `listing` and `watching` are
the verbs, `served` the resources. What it may differ in from the real server is written in tests/contract/differences.py.
"""

from loopwatch.sandbox.apiserver.api import AnswerLost, ApiServer
from loopwatch.sandbox.apiserver.calls import Identity
from loopwatch.sandbox.apiserver.router import Answer
from loopwatch.sandbox.apiserver.watching import StreamCut

__all__ = ["Answer", "AnswerLost", "ApiServer", "Identity", "StreamCut"]
