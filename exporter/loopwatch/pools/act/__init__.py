"""The only place of loopwatch that writes to the API: Leases and Ready for the sidecar, Unknown for the controller."""
