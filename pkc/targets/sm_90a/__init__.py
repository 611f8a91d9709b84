"""NVIDIA GPUs of compute capability 9.0: H100 and H200 (SXM)."""

from __future__ import annotations

from pkc.dialect.transfers import ASYNC, REGISTER, TMA
from pkc.targets import BUILT_IN
from pkc.targets.sm_90a.arch import ARCH, H200, REGISTERS, THREADS, TUNING
from pkc.targets.sm_90a.instructions import computing, instruction
from pkc.targets.sm_90a.layout import ALIGNMENT, around_layout, flat_layout, shared_layout
from pkc.targets.sm_90a.machine_code import MACHINE_CODE
from pkc.targets.sm_90a.throughput import per_element
from pkc.targets.target import Mma, Operands, Target, Tiles

TARGET = Target(
    name="sm_90a",
    code=BUILT_IN["sm_90a"],
    arch=ARCH,
    rates=H200,
    tuning=TUNING,
    threads=THREADS,
    registers=REGISTERS,
    # 26: what ptxas wants beside the 128 registers of 64 x 256 of f32, whatever `setmaxnreg` adds (its error C7602).
    # 7: as wgmma.wait_group of the instruction table.
    mma=Mma(Operands.SHARED, rows=64, columns=256, depth=32, spare=26, in_flight=7),
    tiles=Tiles(
        (2, 4, 8, 16, 32, 64, 128, 256),
        (32, 64, 128, 256),
        (64, 128),
        most=128 * 256,
        deep=(256,),
        shallow=32,
        small=64 * 32,
        # Of 69 measured on one H200 at 25 shapes of two kernels, one of these is within 3 per cent of the best.
        pointwise=((8, 128), (32, 128), (4, 1024), (32, 256), (16, 512)),
        chained_rows=(64, 128, 192),
        chained=tuple(range(64, 257, 16)),
    ),
    transfers=frozenset({TMA, ASYNC, REGISTER}),
    alignment=ALIGNMENT,
    shared_layout=shared_layout,
    instruction=instruction,
    computing=computing,
    machine_code=MACHINE_CODE,
    per_element=per_element,
    flat_layout=flat_layout,
    around_layout=around_layout,
)
