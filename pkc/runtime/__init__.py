"""The runtime: GPUs, memory that all of them share, and launches."""
