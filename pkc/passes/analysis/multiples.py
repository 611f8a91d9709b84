"""What an integer is a multiple of, for all sizes and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, StoreOp
from pkc.dialect.coordinates import BlockOp, BlockPositionOp, DimOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import BlockType


def multiple_of(value: SSAValue, of_size: Callable[[str], int] = lambda _: 1) -> int:
    """A number that divides `value` whenever it runs; 0 divides 0 alone, and 1 everything. `of_size` says it of the
    sizes of dimensions."""
    known = constant_of(value)
    if known is not None:
        return abs(known)
    op = value.owner
    if not isinstance(op, Operation):
        return 1
    match op:
        case arith.AddiOp() | arith.SubiOp() | arith.MinSIOp() | arith.MaxSIOp():
            return math.gcd(multiple_of(op.lhs, of_size), multiple_of(op.rhs, of_size))
        case arith.MuliOp():
            return multiple_of(op.lhs, of_size) * multiple_of(op.rhs, of_size)
        case arith.FloorDivSIOp() | arith.DivSIOp() if (by := constant_of(op.rhs)) is not None and by > 0:
            divisor = multiple_of(op.lhs, of_size)
            return divisor // by if divisor % by == 0 else 1
        case BlockPositionOp() if isinstance(op.block.owner, BlockOp):
            return position_multiple(op.block.owner, of_size)
        case DimOp():
            return of_size(op.dim.data)
        case _:
            return 1


def ends_with_whole_block(block: BlockOp) -> bool:
    """Whether each block of a list is whole, or ends where its dimension does."""
    if block.stop is None:
        return True
    begins = multiple_of(block.start) if block.start is not None else 0
    return math.gcd(multiple_of(block.stop), begins) % block_type(block.result).extent == 0


def is_always_whole(block: SSAValue) -> bool:
    """Whether a block is one of those that a dimension of constant length has without rest."""
    op, kind = block.owner, block_type(block)
    if not isinstance(op, BlockOp) or not isinstance(kind.of, int):
        return False
    return kind.of % kind.extent == 0 and op.start is None and op.stop is None and not op.in_shard


def cut_blocks(op: LoadOp | StoreOp | AddToArrayOp, but: Sequence[int] = ()) -> list[BlockOp]:
    """The blocks of an access that may end inside of its array; those of the axes `but` of its tile left out."""
    blocks = [index.owner for index in op.indices if isinstance(index.type, BlockType)]
    kept = [block for axis, block in enumerate(blocks) if axis not in but]
    return [block for block in kept if isinstance(block, BlockOp) and not ends_with_whole_block(block)]


def position_multiple(block: BlockOp, of_size: Callable[[str], int] = lambda _: 1) -> int:
    """A number that divides the position of a block that counts from the beginning of its dimension or of its list."""
    if block.in_shard:
        return 1
    begins = multiple_of(block.start, of_size) if block.start is not None else 0
    return math.gcd(block_type(block.result).extent * multiple_of(block.index, of_size), begins)
