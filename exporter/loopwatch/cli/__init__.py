"""The command `loopwatch`.

`commands` makes the command line out of the table of settings, `main` runs a command and turns what is the user's to mend into one line
on stderr. Start-up stays light: `--help` imports neither the Kubernetes client nor gRPC.
"""
