"""loopwatch watches the control loops of a cluster, says what each sees and decides, and closes the one that IronCore left open.

The rooms (`pools`, …) hold what the product is about; `kube`, `metrics`, `iri` and `web` serve them; `sandbox` is the world they are
tried in. `docs/architecture.md` draws how they hang together.
"""

__version__ = "0.1.0.dev0"
