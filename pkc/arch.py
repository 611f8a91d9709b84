"""What each GPU has: one frozen record for each target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arch:
    """The resources of one GPU, as the CUDA C++ Programming Guide lists them by compute capability."""

    name: str
    sms: int
    threads: int
    """The most that one CTA can have."""
    shared_memory: int
    """Bytes that one CTA can have, beside what the system reserves."""
    register_bytes: int
    registers: int
    """32-bit registers of one SM, which one resident CTA may have for itself."""
    thread_registers: int
    """The most that one thread can address."""
    most_registers: int
    """The most that `setmaxnreg` is asked for: a multiple of 8 that leaves the compiler some."""
    named_barriers: int
    """Barriers of one CTA, 0 being that of `__syncthreads`."""
    mbarrier_bytes: int
    warp: int
    """Threads in a warp."""
    warpgroup: int
    """Warps in a warpgroup, which multiplies and changes its registers together."""
    mma_rows: int
    """Rows of an accumulator that one warpgroup instruction has."""


SM_90A = Arch(
    name="sm_90a",
    sms=132,
    threads=1024,
    shared_memory=232448,
    register_bytes=4,
    registers=65536,
    thread_registers=255,
    most_registers=240,
    named_barriers=16,
    mbarrier_bytes=8,
    warp=32,
    warpgroup=4,
    mma_rows=64,
)
"""H100 and H200 (SXM)."""
