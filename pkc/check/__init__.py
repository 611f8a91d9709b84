"""Checks of a protocol before it runs: static, and by simulation."""
