"""Code generation: from the machine level to CUDA C++ and machine code."""
