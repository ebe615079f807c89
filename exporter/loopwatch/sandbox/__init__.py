"""A small world to run in without a cluster: an API server in memory, a machine runtime, a machinepoollet stand-in.

It ships with loopwatch, since `loopwatch demo` runs on it, and tests run on it too. It refuses to be a cluster: nothing is stored
beyond the process, and it listens on loopback alone.
"""
