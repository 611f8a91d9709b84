"""Colours that pictures share."""

WORKS, WAITS, USED = "#1f6f4a", "#e9d8b4", "#3f6fb0"
"""Of roles that work and that wait, and of what a rank uses."""
