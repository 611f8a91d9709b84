"""Tasks get shorter blocks of a dimension, and so become more, where nothing they do depends on how long these are."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from pkc.dialect.access import LoadOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp
from pkc.dialect.program import TasksOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import AnyMmaOp, block_type, tile_type
from pkc.dialect.types import BlockType, TileType
from pkc.passes.analysis.same_axes import Axis, SameAxes, axes_of, goes_along
from pkc.passes.build import before, defined_in


def shorten(tasks: TasksOp, index: BlockArgument, length: int) -> bool:
    """Let the blocks that an index of tasks numbers have `length` elements, if that divides what they have; whether
    they do then.

    They stay as they are where the index stands for more than blocks of a whole dimension, where tiles are reduced, or
    an MMA multiplies, and where a loop would load again for each shorter block what has no elements of its own.
    """
    blocks = [use.operation for use in index.uses]
    count = tasks.counts[index.index].owner
    if not isinstance(count, BlockCountOp) or count.operands or count.sharded is not None:
        return False
    kind = count.block
    if kind.extent <= length or kind.extent % length or not all(_is_plain(op, kind) for op in blocks):
        return False
    axes = _along(tasks, [op.results[0] for op in blocks])
    if axes is None:
        return False
    shorter = BlockCountOp(BlockType(kind.of, length))
    before(tasks, [shorter])
    tasks.operands[index.index] = shorter.result
    for value, axis in axes:
        Rewriter.replace_value_with_new_type(value, _shorter(value, axis, length))
    return True


def _is_plain(op: Operation, kind: BlockType) -> bool:
    """Whether an operation makes a block of a list that goes through all of its dimension."""
    return isinstance(op, BlockOp) and len(op.operands) == 1 and op.sharded is None and block_type(op.result) == kind


def _shorter(value: SSAValue, axis: int, length: int) -> BlockType | TileType:
    if isinstance(value.type, BlockType):
        return BlockType(value.type.of, length)
    kind = tile_type(value)
    return TileType((*kind.shape[:axis], length, *kind.shape[axis + 1 :]), kind.element_type)


def _along(tasks: TasksOp, blocks: list[SSAValue]) -> list[Axis] | None:
    """All axes that have the elements of some blocks, with these; None if one has to stay as it is."""
    groups = SameAxes()
    ops = [op for op in tasks.walk() if op is not tasks]
    for op in ops:
        groups.add(op)
    for block in blocks[1:]:
        groups.join((blocks[0], 0), (block, 0))
    root = groups.root((blocks[0], 0))
    members = groups.members(dict.fromkeys(axis for op in ops for axis in axes_of(op)))[root]
    values = [value for value, _ in members]
    if len(set(values)) < len(values) or not all(defined_in(value, tasks) for value in values):
        return None
    if any(isinstance(value.type, BlockType) and value not in blocks for value in values):
        return None
    if any(axis in groups.fixed or any(goes_along(use, axis[1]) for use in axis[0].uses) for axis in members):
        return None
    return None if any(_depends(op, values) for op in ops) else members


def _depends(op: Operation, values: list[SSAValue]) -> bool:
    """Whether an operation would do something else, or as much again, for each shorter block."""
    if isinstance(op, LoadOp):
        return isinstance(op.parent_op(), scf.ForOp) and op.result not in values
    return isinstance(op, AnyMmaOp | CumSumOp)
