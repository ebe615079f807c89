"""The families of the pools room, as tables: `pool` (the object), `heartbeat` (the sidecar's loops), `lifecycle` (the controller's)."""
