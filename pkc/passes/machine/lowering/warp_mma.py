"""MMA instructions of a warp, which read registers (PTX ISA: mma.sync.m16n8)."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.machine import SubviewOp
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.dialect.types import dtype_bytes, dtype_name
from pkc.passes.machine.lowering import fragments, stages
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.fragments import PACKED, RegisterTile
from pkc.passes.machine.lowering.missing import CannotLowerError


def multiply(role: WarpRole, op: AnyMmaOp, acc: RegisterTile) -> None:
    """acc + a @ b, in the registers of acc. For each step along k and each column of instructions, the right operand is
    read once for all rows of the warp."""
    emit, mma = role.emit, role.emit.target.mma
    k, n = tile_type(op.b).shape
    kind = tile_type(op.a).element_type
    step = mma.depth // dtype_bytes(kind)
    right = role.tiles[op.b]
    if dtype_bytes(kind) != 2:
        raise CannotLowerError(op, f"an MMA of {dtype_name(kind)}", "operands of 16 bits: `cast(x, bf16)`")
    if k % step:
        raise CannotLowerError(op, f"an MMA over {k} elements", f"blocks of a multiple of {step}")
    if not isinstance(right, Staged):
        raise CannotLowerError(op, "an MMA whose right operand is computed", "compute the left one")
    left = fragments.materialize(role, op.a)
    name = f"mma_n{mma.columns}_{dtype_name(kind)}"
    for first in range(0, k, step):
        for column in range(0, n, mma.columns):
            b = [_pair(role, right, first + half, column) for half in (0, step // 2)]
            for repeat in range(acc.fragment.repeats):
                subview = SubviewOp(acc.registers, (repeat * n + column) // 2, mma.columns // 2)
                emit.add(subview)
                start = repeat * k // 4 + first // 4
                a = [emit.get(left.registers, start + i) for i in range(4)]
                emit.do(name, subview.result, *a, *b)


def _pair(role: WarpRole, tile: Staged, k: int, column: int) -> SSAValue:
    """Two elements of the right operand, one below the other: thread l has rows k + 2 (l mod 4) and the next, of column
    `column` + l / 4."""
    emit, lane = role.emit, role.threads.lane
    rows = emit.plus(emit.times(emit.bit_and(lane, 3), 2), k)
    columns = emit.plus(emit.right(lane, 2), column)
    if tile.transposed:  # as it lies, one beside the other
        at = stages.shared_address(emit, tile.address, tile.layout, 2, (columns, rows))
        return emit.value("load_shared_b32", at)
    low, high = (fragments.read_shared(emit, tile, emit.plus(rows, i), columns) for i in range(2))
    return emit.value(f"pack_{PACKED[tile.type.element_type]}", low, high)
