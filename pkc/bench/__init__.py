"""Measurements on GPUs: kernels of the GEMM families beside what would be run instead, and the machine's limit."""
