"""A second target, as small as it can be: warps multiply by themselves, from registers; no TMA, no `setmaxnreg`.

Registered as `tiny` when this module is imported. Its machine code runs on any GPU of compute capability 9.x.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

from pkc.dialect.transfers import REGISTER
from pkc.dialect.types import TileType, dtype_bytes
from pkc.targets import register, sm_90a
from pkc.targets.arch import Arch
from pkc.targets.instruction import Instruction
from pkc.targets.layout import SharedLayout
from pkc.targets.target import Mma, Operands, Target, Tiles

_LACKS = re.compile(r"(tma|wgmma|setmaxnreg|stmatrix|bulk|fence_async|prefetch)_.*|mbarrier_(expect|init_fence)")


def shared_layout(tile: TileType) -> SharedLayout:
    """Row by row, each at a multiple of 16 bytes."""
    columns = tile.shape[-1] if tile.rank else 1
    return SharedLayout(prod(tile.shape[:-1]), columns, 1, -(-columns * dtype_bytes(tile.element_type) // 16) * 16, 0)


def instruction(name: str) -> Instruction | None:
    """The table: one shape of `mma`, and what the other target has of everything else."""
    found = re.fullmatch(r"mma_n8_(bf16|f16)", name)
    if found:
        return _mma(name, found[1])
    if name == "shared_base":
        known = sm_90a.instruction(name)
        assert known is not None
        return replace(known, body=known.body.replace("1024", "16").replace("1023", "15"))
    return None if _LACKS.fullmatch(name) else sm_90a.instruction(name)


def _mma(name: str, dtype: str) -> Instruction:
    """PTX ISA: mma.m16n8k16, with four registers of A and two of B."""
    outputs = ", ".join(f'"+f"(a[{i}])' for i in range(4))
    inputs = ", ".join(f'"r"({operand})' for operand in "bcdefg")
    ptx = f"mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32 "
    ptx += "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    body = f'asm volatile("{ptx}" : {outputs} : {inputs});'
    return Instruction(name, ("registers<4 x f32>", *("b32",) * 6), None, body, "a += A[16, 16] @ B[16, 8]")


TINY = Target(
    name="tiny",
    code="sm_90",
    arch=Arch(
        sms=4,
        threads=512,
        shared_memory=48 * 1024,
        register_bytes=4,
        registers=32768,
        thread_registers=255,
        most_registers=0,
        named_barriers=16,
        mbarrier_bytes=8,
        warp=32,
        warpgroup=1,
        consumers=8,
    ),
    rates=replace(sm_90a.H200, mma_flops=512, load_bytes=20, memory_bytes=200),
    tuning=replace(sm_90a.TUNING, most_stages=6, awaited_tiles=4, awaited_bytes=16 * 1024, copied_bytes=4 * 1024),
    threads=sm_90a.THREADS,
    registers=sm_90a.REGISTERS,
    mma=Mma(Operands.REGISTERS, rows=16, columns=8, depth=32, spare=16, in_flight=0),
    tiles=Tiles((16, 32, 64), (16, 32, 64), (16, 32, 64), most=64 * 64),
    transfers=frozenset({REGISTER}),
    alignment=16,
    shared_layout=shared_layout,
    instruction=instruction,
    computing=sm_90a.computing,
)
register(TINY)
