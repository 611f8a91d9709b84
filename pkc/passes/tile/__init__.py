"""Passes on the program as it means."""
