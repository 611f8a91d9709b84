"""A loader of kernels in C++: `FOLDER` has its sources (docs/runtime.md)."""

from pathlib import Path

FOLDER = Path(__file__).parent
