"""What a kernel takes of its GPU, against what there is: SMs, shared memory, registers, named barriers."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr

from pkc.diagnostics import Diagnostic
from pkc.dialect.attributes import Role, number_on
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, REGISTERS, KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp
from pkc.dialect.tile import MmaOp, tile_type
from pkc.location import span_of
from pkc.passes import budget_errors as errors
from pkc.passes import plan_errors
from pkc.passes.dependence import ancestors
from pkc.passes.live_tiles import peak
from pkc.passes.plan_warps import COMPUTE, launched_registers
from pkc.targets.arch import SM_90A
from pkc.targets.layout import ALIGNMENT, shared_layout

SHARED_MEMORY = SM_90A.shared_memory - ALIGNMENT
"""Bytes for channels: their start is aligned."""

RESERVE = 24
"""Registers of a thread beside those of tiles: addresses, descriptors, counters of loops."""

_PRODUCT = 26
"""Registers of a thread beside those of its accumulator that ptxas wants for one product, of what a CTA is launched
with, whatever `setmaxnreg` adds: 128 and 26 for 64 x 256 of f32 (its error C7602)."""


def budgets(kernel: KernelOp) -> Iterator[Diagnostic]:
    """What exceeds a budget. Parts without planned warps are looked at no further."""
    name, span = kernel.sym_name.data, span_of(kernel.location)
    shared = shared_memory(kernel)
    if shared > SHARED_MEMORY:
        yield plan_errors.SharedMemory(span, name, shared, SHARED_MEMORY)
    parts = [op for op in kernel.body.block.ops if isinstance(op, RoleOp) and GROUP in op.attributes]
    yield from _sms(kernel, parts)
    needed = barriers(parts)
    if needed > SM_90A.named_barriers:
        yield errors.TooManyBarriers(span, name, needed, SM_90A.named_barriers)
    threads = 0
    for group in dict.fromkeys(map(group_of, parts)):
        total, warpgroups = _register_file([part for part in parts if group_of(part) == group])
        available = launched_registers(warpgroups * SM_90A.warpgroup * SM_90A.warp)
        threads = max(threads, warpgroups * SM_90A.warpgroup * SM_90A.warp)
        if total > available:
            yield errors.RegisterFile(span, group, total, available)
    for part in parts:
        if part.role.data is Role.Consumer:
            yield from _tiles(part)
            yield from _products(part, threads)


def shared_memory(kernel: KernelOp) -> int:
    """Bytes of shared memory that a CTA needs, barriers included: of the group that needs most."""
    taken: dict[str, int] = {}
    for op in kernel.body.block.ops:
        if isinstance(op, ChannelOp):
            group = channel_group(op)
            taken[group] = taken.get(group, 0) + op.shared_bytes
    taken[COMPUTE] = taken.get(COMPUTE, 0) + read_behind(kernel)
    return max(taken.values())


def read_behind(kernel: KernelOp) -> int:
    """Bytes of shared memory behind all stages that products may read: of fewer rows than a warpgroup multiplies, the
    left operand is read on into whatever lies behind it; what comes of that is in no tile."""
    lefts = [tile_type(op.a) for op in kernel.walk() if isinstance(op, MmaOp) and tile_type(op.a).rank]
    missing = (max(0, SM_90A.mma_rows - kind.shape[0]) * shared_layout(kind).width for kind in lefts)
    return max(missing, default=0)


def barriers(parts: list[RoleOp]) -> int:
    """Named barriers of a CTA: its own, one to gather the warps of a part, one for each of several warpgroups."""
    several = [warps for warps in map(warps_of, parts) if warps > 1]
    groups = [warps // SM_90A.warpgroup for warps in several if warps > SM_90A.warpgroup]
    return 1 + len(several) + sum(groups)


def warps_of(part: RoleOp) -> int:
    """The planned warps of a part."""
    return part.warps.value.data if part.warps is not None else 1


def group_of(part: RoleOp) -> str:
    """The SMs that run a part."""
    group = part.attributes.get(GROUP)
    return group.data if isinstance(group, StringAttr) else COMPUTE


def channel_group(channel: ChannelOp) -> str:
    """The SMs that a channel is in: those of the parts that it joins."""
    users = (use.operation for use in channel.result.uses)
    parts = (around for user in users for around in ancestors(user) if isinstance(around, RoleOp))
    return next(map(group_of, parts), COMPUTE)


def _sms(kernel: KernelOp, parts: list[RoleOp]) -> Iterator[Diagnostic]:
    sms = number_on(kernel, COMM_SMS) or 0
    most = SM_90A.sms - any(group_of(part) == COMPUTE for part in parts)
    if sms > most:
        yield errors.NoSmsLeft(span_of(kernel.location), sms, SM_90A.sms, most)


def _register_file(parts: list[RoleOp]) -> tuple[int, int]:
    """Registers of all warpgroups of a CTA, each with those of the parts that share it; how many warpgroups."""
    each: dict[int, int] = {}
    for part in parts:
        first = number_on(part, FIRST_WARP) or 0
        for warp in range(first, first + warps_of(part)):
            group = warp // SM_90A.warpgroup
            each[group] = max(each.get(group, 0), (number_on(part, REGISTERS) or 0))
    return sum(each.values()) * SM_90A.warpgroup * SM_90A.warp, len(each)


def _tiles(part: RoleOp) -> Iterator[Diagnostic]:
    """Piece by piece goes only what is not multiplied: a consumer has its accumulators and what it computes with."""
    found = peak(part)
    threads, registers = warps_of(part) * SM_90A.warp, (number_on(part, REGISTERS) or 0)
    each = -(-found.registers // threads)
    if found.op is not None and each > min(registers, SM_90A.thread_registers) - RESERVE:
        where = (str(part.role.data), found.registers, each, threads, registers, RESERVE)
        yield errors.TooManyRegisters(span_of(found.op.location), *where)


def _products(part: RoleOp, threads: int) -> Iterator[Diagnostic]:
    """A product that no warpgroup of a CTA of so many threads can carry out."""
    available = launched_registers(threads) // threads
    products = [op for op in part.walk() if isinstance(op, MmaOp)]
    widest = max(products, key=_columns, default=None)
    if widest is None:
        return
    columns = min(_columns(widest), SM_90A.mma_columns)
    needed = columns * SM_90A.mma_rows // (SM_90A.warpgroup * SM_90A.warp) + _PRODUCT
    if needed > available:
        yield errors.TooWideProduct(span_of(widest.location), columns, needed, threads, available)


def _columns(product: MmaOp) -> int:
    return tile_type(product.result).shape[-1]
