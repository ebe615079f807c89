"""Where the sandbox and a real kube-apiserver (1.36, without kube-controller-manager) may differ, and why.

Every row is read by a test, which expects the value of the server it runs on; what is not in this table must be equal on both.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.contract.cluster import Cluster


class Difference(NamedTuple):
    """One row: what each of the two does, and the reason."""

    claim: str
    sandbox: int
    real: int
    why: str


DIFFERENCES: Final = {
    "protobuf": Difference(
        "HTTP status of a list of Leases for a client that takes protobuf alone", 406, 200, "the sandbox speaks JSON; so does loopwatch"
    ),
    "yaml-answer": Difference("HTTP status of a list for a client that takes YAML alone", 406, 200, "as protobuf"),
    "yaml-body": Difference("HTTP status of a POST whose body is YAML", 415, 201, "as protobuf"),
    "table": Difference("HTTP status of a list for a client that takes a table alone", 406, 200, "kubectl's columns are not needed"),
    "server-side-apply": Difference(
        "HTTP status of a server-side apply", 415, 201, "loopwatch writes by merge patch: CRDs and aggregated APIs both take it"
    ),
    "delete-collection": Difference(
        "HTTP status of a DELETE of a whole collection", 405, 200, "nothing of loopwatch holds the right to it"
    ),
    "namespace-after-delete": Difference(
        "HTTP status of a GET of a namespace after its DELETE",
        404,
        200,
        "the sandbox acts as a cluster with a namespace controller; the real server stands alone, and its namespaces stay Terminating",
    ),
    "immutable-causes": Difference(
        "number of causes in a 422 for a changed uid", 1, 2, "the real server validates metadata twice; the message is the same"
    ),
    "warning-on-refusal": Difference(
        "number of Warning headers on a refused write with an unknown field", 0, 1, "the sandbox warns of unknown fields where it writes"
    ),
    "finalizer-ownership": Difference(
        "number of paths that managedFields name for one finalizer", 0, 2, "the sandbox owns lists whole; the real server by item"
    ),
}


def expected(name: str, cluster: Cluster) -> int:
    """What a row says of the server under test."""
    row = DIFFERENCES[name]
    return row.real if cluster.kind == "real" else row.sandbox
