"""Who may do what on the API: one table, from which docs/rbac.md, `loopwatch rbac` and the chart are made.

`model` says what a row holds, `rights` has the rows, `manifests` turns the rows of one process into Roles and bindings, `text` prints
them, `command` is `loopwatch rbac`. All but the last are pure: nothing here asks an API, and no process reads its own rights from it.
"""

from loopwatch.rbac.command import run

__all__ = ["run"]
