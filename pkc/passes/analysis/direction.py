"""Whether an integer grows or falls with another one."""

from __future__ import annotations

from enum import Enum

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.coordinates import (
    BlockCountOp,
    BlockOp,
    BlockPositionOp,
    FirstVisitedOp,
    ShardedCountOp,
    VisitedOp,
    ZigzagCountOp,
    ZigzagPositionOp,
)
from pkc.dialect.scalars import constant_of
from pkc.passes.analysis.dependence import sources


class Direction(Enum):
    """How an integer changes when another one grows: not at all, upwards or downwards (or not), or in no known way."""

    SAME = 0
    UP = 1
    DOWN = -1
    UNKNOWN = None

    def __add__(self, other: Direction) -> Direction:
        """Of a sum, a smaller or a larger of two integers."""
        if Direction.SAME in (self, other):
            return other if self is Direction.SAME else self
        return self if self is other else Direction.UNKNOWN

    def __neg__(self) -> Direction:
        return {Direction.UP: Direction.DOWN, Direction.DOWN: Direction.UP}.get(self, self)


def direction(value: SSAValue, index: SSAValue) -> Direction:
    """How `value` changes with `index`; a block changes as its positions do."""
    if value is index:
        return Direction.UP
    if index not in sources([value]):
        return Direction.SAME
    op = value.owner
    if isinstance(value, BlockArgument) or not isinstance(op, Operation):
        return Direction.UNKNOWN
    match op:
        case arith.AddiOp() | arith.MinSIOp() | arith.MaxSIOp():
            return direction(op.lhs, index) + direction(op.rhs, index)
        case arith.SubiOp():
            return direction(op.lhs, index) + -direction(op.rhs, index)
        case arith.MuliOp() | arith.DivSIOp() | arith.FloorDivSIOp() | arith.CeilDivSIOp():
            factor = constant_of(op.rhs)
            return direction(op.lhs, index) if factor is not None and factor > 0 else Direction.UNKNOWN
        case BlockPositionOp():
            return direction(op.block, index)
        case ZigzagPositionOp() if isinstance(op.block.owner, BlockOp) and op.block.owner.shard is not None:
            return direction(op.block, index)
        case ShardedCountOp():
            return direction(op.limit, index)
        case ZigzagCountOp() if direction(op.shard, index) is Direction.SAME:
            return direction(op.limit, index)
        case VisitedOp():
            return direction(op.needed, index) + direction(op.count, index)
        case FirstVisitedOp():
            return direction(op.needed, index) + direction(op.first, index)
        case BlockOp() | BlockCountOp():
            return _of_blocks(op, index)
        case _:
            return Direction.UNKNOWN


def _of_blocks(op: BlockOp | BlockCountOp, index: SSAValue) -> Direction:
    """Of the positions of a block, or of the number of blocks, of a list that may begin and end anywhere."""
    if op.shard is not None and direction(op.shard, index) is not Direction.SAME:
        return Direction.UNKNOWN
    start, stop = (direction(bound, index) if bound is not None else Direction.SAME for bound in (op.start, op.stop))
    if isinstance(op, BlockOp):
        return direction(op.index, index) + start
    return stop + -start
