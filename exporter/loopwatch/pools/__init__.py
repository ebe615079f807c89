"""The room of the pools: is a MachinePool alive, and does its Ready condition say so?

`observe` keeps what was seen and when, `derive` says what it means, `families` turns it into samples, `act` writes. `heartbeat` (the
sidecar's loops) and `lifecycle` (the controller's) tie them together. https://github.com/ironcore-dev/ironcore IEP-15, v0.5.0.
"""
