"""The fault suite on a real kube-apiserver: fewer misfortunes than on the sandbox (tests/faults), but real time, TLS and sockets.

Controllers and sidecars run with their insides in this process, each behind a proxy of its own that freezes, cuts, refuses and delays.
Grace 5 s, heartbeat 1 s, lease 4 s. What a proxy of bytes can't make, and so only the sandbox does: answers of the API server's own (429,
5xx, 401, 403, 404 of a resource), a single lost answer, a watch that breaks within a line, garbage in it, missing bookmarks, stale reads,
compaction; a process that stands still while the others run; clocks that jump.
"""
