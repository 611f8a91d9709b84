"""A C++ program that launches gemm_rs on two GPUs: `python -m tests.gpu.native_program`.

Needs g++. Writes the kernel into a file, as `pkc compile --emit artifact` does, builds the program and runs it.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from pkc.codegen.build import build_kernel
from pkc.driver.compiler import load
from pkc.runtime.exported import pack
from tests.examples.test_examples import EXAMPLES
from tests.gpu import present
from tests.native import build_program

LIMIT = 60
SOURCE = Path(__file__).parent / "native" / "gemm_rs.cpp"


def main() -> int:
    """The program's exit status: 1 if it found something wrong."""
    present.gpus(2)
    with tempfile.TemporaryDirectory() as folder:
        program, kernel = Path(folder) / "gemm_rs", Path(folder) / "gemm_rs.pkx"
        kernel.write_bytes(pack(build_kernel(load(EXAMPLES / "gemm_rs.pk", level="roles").kernel).artifact))
        build_program([SOURCE], program, "-l:libcuda.so.1")
        return subprocess.run([program, kernel], check=False, timeout=LIMIT).returncode


if __name__ == "__main__":
    raise SystemExit(main())
