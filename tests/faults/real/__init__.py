"""The fault suite on a real kube-apiserver, in real time: grace 5 s, heartbeat 1 s, lease 4 s.

Each process of the product is a thread with an event loop, its own connection (kubernetes.aio, over HTTP) and its own clock; between all of
them and the API server stands a proxy that knows what each request is about, and does to it what the sandbox's faults do. A process that
stands still is a thread that sleeps within its loop; one that is killed is a loop that never turns again, and connections that are closed.

What such a proxy can't make, and what stands for it here:

    stale reads        of a watch only: it is held at the moment when the fault began; nobody of ours reads with a resourceVersion
    compaction         the proxy ends watches with 410 Expired; etcd keeps its history
    a stalled server   the proxy holds every request and every line; those that gave up meanwhile are not carried out late
    refused            connections are accepted and reset, where a dead server's kernel would refuse them
    broken objects     are left out: the API server's schema lets none in
    the network's      speed is that of loopback: plans have weather on the sandbox only
    to the moment      accepted writes are known from a watch, some milliseconds late, and judged a third of a second later
"""
