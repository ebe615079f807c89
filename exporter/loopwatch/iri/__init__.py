"""The client side of IronCore's machine runtime interface (IRI): where the runtime listens, and whether it answers.

`endpoint` reads what the operator wrote, `probe` says what a probe is and brings back, `grpc_probe` is the one that calls. Only
`grpc_probe` imports gRPC (30 MiB), so that a process without a runtime never pays for it.
"""

import os

# gRPC's core logs to stderr by itself, past every logger, each time a runtime goes away. Who debugs it sets the variable.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
