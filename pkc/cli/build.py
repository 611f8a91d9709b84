"""Generates what is below the levels of IR: CUDA C++, PTX, machine code."""

from __future__ import annotations

from pkc import console
from pkc.codegen.build import build_kernel, machine_level, resources
from pkc.codegen.cuda import print_kernel
from pkc.dialect.program import KernelOp
from pkc.runtime.exported import pack

BELOW_IR = ("cuda", "ptx", "cubin", "artifact")


def emit(kernel: KernelOp, what: str, *, explain: bool) -> str | bytes:
    """The text or machine code of a kernel at the machine level; the compiler's remarks go to stderr."""
    if what == "cuda":
        return print_kernel(machine_level(kernel))
    built = build_kernel(kernel)
    console.diagnostics(built.warnings)
    if explain:
        console.lines([resources(built)])
        console.remarks(built.remarks)
    if what == "artifact":
        return pack(built.artifact)
    return built.compiled.ptx if what == "ptx" else built.artifact.cubin
