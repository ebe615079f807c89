"""Which of several replicas may write: leader election over one Lease, ours because the client library's can't be used.

kubernetes.aio.leaderelection 37.0.2 can't create a Lease, compares wall clocks, goes on leading through a stall and never releases. Here
leadership is a deadline, never a flag: whoever asks, asks "is it before the deadline now?", so that a process that stood still has
stopped leading before it can know. `derive` decides and is pure, `record` is the Lease as election reads it, `act` writes it, `elector`
is the loop, `failures` says what an error means, `families` what is exposed; `settings.election_checks` what its times must hold against
each other. It belongs to no room and knows none.
"""
