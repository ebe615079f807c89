"""The table: every right that a process of loopwatch has, and why.

A right that no row lists is given to nobody. A row is here only where something breaks without it, which its `without` says and an
end-to-end test shows; a name stands wherever Kubernetes lets a rule hold one: it can't for `create`, and can for `list` and `watch` of
one object by its name (a field selector). Nobody deletes, and nobody writes to a MachinePool's spec.
"""

from __future__ import annotations

from typing import Final

from loopwatch.rbac.controller_rights import CONTROLLER
from loopwatch.rbac.model import Right
from loopwatch.rbac.reader_rights import READER
from loopwatch.rbac.sidecar_rights import SIDECAR

RIGHTS: Final[tuple[Right, ...]] = (*SIDECAR, *CONTROLLER, *READER)
