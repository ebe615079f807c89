"""The fault suite: whole clusters that a seed makes, everything that can go wrong in them, and an observer who knows all that happened.

Not shipped. `python -m tests.faults soak` plays many seeds on the sandbox; `make test` plays 20. What is promised is written down as
invariants (`invariants`), and each of them is shown to fail on a build that breaks it on purpose (`test_mutants.py`).
"""
