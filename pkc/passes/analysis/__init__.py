"""Analyses that passes share; none changes the IR."""
