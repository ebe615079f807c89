"""What the observations of pools mean. Pure: no I/O, no clock, no client, no metrics library (import-linter keeps it so)."""
