"""One thread for numpy's matmuls: tiles are too small to gain from more, and threads that wait for each other lose a
factor of 20 on a machine that is busy with something else."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

_PREFIX, _SUFFIX = "scipy_openblas_", "_num_threads64_"


@contextmanager
def one_thread() -> Generator[None]:
    """Let the OpenBLAS that comes with numpy use one thread; with another BLAS, nothing happens."""
    library = _openblas()
    if library is None:
        yield
        return
    before = library[f"{_PREFIX}get{_SUFFIX}"]()
    library[f"{_PREFIX}set{_SUFFIX}"](1)
    try:
        yield
    finally:
        library[f"{_PREFIX}set{_SUFFIX}"](before)


@functools.cache
def _openblas() -> ctypes.CDLL | None:
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if hasattr(library, f"{_PREFIX}set{_SUFFIX}"):
            return library
    return None
