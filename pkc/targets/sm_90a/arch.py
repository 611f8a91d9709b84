"""What H100 and H200 (SXM) have, and how fast H200 is."""

from __future__ import annotations

from pkc.targets.arch import Arch, Rates, Registers

ARCH = Arch(
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
    consumers=2,
)
"""CUDA C++ Programming Guide, technical specifications; SMs of the SXM boards."""

REGISTERS = Registers(moving=40, dimension=8, adding=80, holding=112, idle=24, reserve=24)
"""As many as ptxas needs without spills; CUTLASS gives its producers 40 as well."""

H200 = Rates(
    clock=1.5,
    mma_flops=4096,
    shared_bytes=128,
    load_bytes=85,
    load_row=1.0,
    outside_row=4.3,
    load_latency=1000,
    memory_bytes=4300,
    link_bytes=311,
    iteration=15,
    task=500,
    add_bytes=60,
    copy=1700,
    announce=2000,
    signal=900,
    launch=6000,
    engine_copy=4500,
    enqueue=3000,
    while_fetching=0.13,
)
"""Measured on H200 SXM (docs/performance.md)."""
