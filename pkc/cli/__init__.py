"""The `pkc` command."""
