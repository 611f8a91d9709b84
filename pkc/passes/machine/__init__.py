"""Passes that lower the roles level to instructions of the target."""
