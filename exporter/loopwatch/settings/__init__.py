"""What a user may set: one table, from which the command line, the validation and docs/settings.md are made.

`table` holds the rows, `kinds` how a text becomes a value, `checks` what values must hold against each other, `read` puts flags,
environment and defaults together, `model` is what the rest of loopwatch receives. It knows neither typer nor any other way to ask.
"""
