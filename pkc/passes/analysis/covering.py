"""Whether the tiles of an access are all that an array has."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import BlockArgument, SSAValue

from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import BlockType, Dim
from pkc.passes.analysis.dependence import task_count


def block_of(index: SSAValue) -> SSAValue:
    """The block of one position that an integer index comes from; any other index as it is."""
    return index.owner.block if isinstance(index.owner, BlockPositionOp) else index


def is_only(kind: BlockType) -> bool:
    """Whether a list has one block, with all of a constant dimension."""
    return isinstance(kind.of, int) and kind.of <= kind.extent


def covers(index: SSAValue, dim: Dim, count_of: Callable[[SSAValue], SSAValue | None] = task_count) -> bool:
    """Whether an index takes every value that its dimension has, one for each task, or whatever else is counted."""
    made = block_of(index).owner
    if dim == 1 and constant_of(index) == 0:
        return True
    if not isinstance(made, BlockOp):
        return isinstance(index, BlockArgument) and _is_extent(count_of(index), dim)
    if any(bound is not None for bound in (made.shard, made.start, made.stop)):
        return False
    kind = block_type(made.result)
    if is_only(kind):
        return True
    counted = count_of(made.index)
    count = None if counted is None else counted.owner
    if not isinstance(count, BlockCountOp) or count.block != kind:
        return False
    return not any(bound is not None for bound in (count.shard, count.start, count.stop))


def _is_extent(count: SSAValue | None, dim: Dim) -> bool:
    if count is None:
        return False
    return count.owner.dim.data == dim if isinstance(count.owner, DimOp) else constant_of(count) == dim
