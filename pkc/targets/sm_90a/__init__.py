"""NVIDIA GPUs of compute capability 9.0."""
