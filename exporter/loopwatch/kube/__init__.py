"""Talking to Kubernetes: credentials, requests, lists, watches, writes.

`transport` is the seam (tests and the sandbox put their own behind it), `read` and `write` are the two doors, `reflector` keeps a
copy of one resource. Only `loopwatch.pools.act` may import `write` (import-linter).
"""
