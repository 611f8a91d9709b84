"""What a kernel takes of its GPU and of symmetric memory, as lines of text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pkc.dialect import blocks
from pkc.dialect.attributes import number_on
from pkc.dialect.counters import BarrierOp, RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import COMM_SMS, REGISTERS, KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp
from pkc.dialect.types import RANKS, BlockType, Layout, PGLType, PrivateType, SignalType, dtype_bytes
from pkc.passes.roles.budgets import barriers, shared_memory, warps_of
from pkc.targets.target import target_of

_COUNTER_BYTES = 4


def resources(kernel: KernelOp, sizes: Mapping[str, int]) -> Iterator[str]:
    """The resources of a kernel at the roles level; `sizes` are those of its dimensions, with `ranks`."""
    roles = kernel.roles
    channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
    name = kernel.sym_name.data
    yield f"{name}: {', '.join(map(_role, roles)) or 'no roles'}"
    if not roles:
        return
    comm, target = number_on(kernel, COMM_SMS) or 0, target_of(kernel)
    yield f"SMs: {target.arch.sms - comm} compute, {comm} only communicate; {barriers(roles, target)} named barriers"
    stages = ", ".join(f"{op.depth} of {op.label.data}" for op in channels)
    yield f"shared memory: {shared_memory(kernel)} of {target.stage_memory} bytes" + (stages and f"; stages: {stages}")
    yield _memory(kernel, sizes)
    ops = list(kernel.walk())
    signals = sum(isinstance(op, SignalOp | SignalAllOp | RaiseOp | BarrierOp) for op in ops)
    waits = sum(isinstance(op, WaitOp | BarrierOp) for op in ops)
    yield f"signals: {signals}, waits: {waits}"


def _role(role: RoleOp) -> str:
    warps = warps_of(role)
    return f"{role.role.data} ({warps} warp{'s' if warps > 1 else ''}, {number_on(role, REGISTERS) or 0} registers)"


def _memory(kernel: KernelOp, sizes: Mapping[str, int]) -> str:
    """Bytes that a rank has of each kind: of the largest shard where a dimension is not divisible."""
    arrays = scratch = private = signals = 0
    for argument in kernel.body.block.args:
        match argument.type:
            case PGLType() as kind if kernel.is_scratch(argument):
                scratch += _bytes(kind, sizes) * (2 if kernel.has_packets(argument) else 1)
            case PGLType() as kind:
                arrays += _bytes(kind, sizes)
            case PrivateType() as kind if kernel.is_scratch(argument):
                private += _bytes(kind, sizes)
            case SignalType() as kind:
                signals += _COUNTER_BYTES * math.prod(_extent(extent, sizes) for extent in kind.extents)
            case _:
                pass
    total = arrays + scratch + signals
    return (
        f"symmetric memory: {total} bytes a rank: arrays {arrays}, scratch {scratch}, signals {signals};"
        f" private scratch {private}"
    )


def _bytes(kind: PGLType | PrivateType, sizes: Mapping[str, int]) -> int:
    extents = [dim if isinstance(dim, int) else sizes[dim] for dim in kind.dimensions]
    if isinstance(kind, PGLType) and kind.layout is Layout.Shard and kind.shard_dim is not None:
        extents[kind.shard_dim] = blocks.shard_length(extents[kind.shard_dim], sizes[RANKS])
    if isinstance(kind, PrivateType) and kind.padded:
        extents[-1] = blocks.padded_length(extents[-1], dtype_bytes(kind.element_type))
    return math.prod(extents) * dtype_bytes(kind.element_type)


def _extent(extent: str | int | BlockType, sizes: Mapping[str, int]) -> int:
    if isinstance(extent, BlockType):
        of = extent.of if isinstance(extent.of, int) else sizes[extent.of]
        return blocks.numbers(of, sizes[RANKS], extent.extent)
    return extent if isinstance(extent, int) else sizes[extent]
