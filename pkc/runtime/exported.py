"""Kernels that `pkc compile --emit artifact` wrote: one file with machine code, and all that a launch needs.

    kernel = LoadedKernel(load("gemm_rs.pkx"), mesh)
    kernel({"A": a, "B": b, "C": c})

That needs no compiler. The file has the kernel's symbol and target, its parameters as C++ lays them out, its arrays and
scratch memory by dimensions, its counters, what copy engines do, and the cubin. It fits the version that wrote it.
"""

from __future__ import annotations

from pathlib import Path

from pkc import cache
from pkc.codegen import stored
from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError, to_write
from pkc.location import NOWHERE
from pkc.runtime.errors import NotExported
from pkc.version import VERSION

_MAGIC = f"pkc artifact of {VERSION}\n".encode()
_DIGEST = 64


def pack(artifact: Artifact) -> bytes:
    """The content of a file that `load` reads."""
    content = stored.pack(artifact)
    return _MAGIC + cache.key(content).encode() + content


def load(path: str | Path) -> Artifact:
    """The kernel in a file. Raises `PkcError` if it was not written by this version, or is damaged."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise _refused(path, getattr(error, "strerror", None) or str(error)) from None
    if not data.startswith(_MAGIC):
        other = data.startswith(_MAGIC.split(VERSION.encode())[0])
        problem = f"it is not of version {VERSION}" if other else "it was not written by `pkc compile --emit artifact`"
        raise _refused(path, problem)
    start = len(_MAGIC) + _DIGEST
    content = data[start:]
    if cache.key(content).encode() != data[len(_MAGIC) : start]:
        raise _refused(path, "it is damaged")
    return stored.unpack(content)


def _refused(path: str | Path, problem: str) -> PkcError:
    return PkcError(NotExported(NOWHERE, str(path), problem, str(to_write(path, ".pkx"))))
