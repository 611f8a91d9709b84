"""A module without a kernel."""
