"""Lists of blocks, and whether results depend on where the blocks of a list end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue, Use

from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, IsWholeOp
from pkc.dialect.elementwise import Binary, CompareOp, SelectOp, Unary
from pkc.dialect.program import TasksOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import AnyMmaOp, BroadcastOp, CastOp, ClipOp, PositionsOp, TransposeOp, block_type, tile_type
from pkc.dialect.types import BlockType

Axis = tuple[SSAValue, int]
"""A tile, and the number of one of its axes."""

_ALIKE = (Binary, Unary, CompareOp, SelectOp, CastOp, ClipOp)
"""Each element of the result is made of the elements at its place."""


@dataclass(frozen=True)
class BlockList:
    """All blocks of a dimension: the number of each is a task index, or the variable of a loop.

    `owner.operands[place]` is how many blocks there are.
    """

    number: BlockArgument
    owner: TasksOp | scf.ForOp
    place: int
    blocks: tuple[BlockOp, ...]

    @property
    def kind(self) -> BlockType:
        return block_type(self.blocks[0].result)


def block_lists(root: Operation, dim: str) -> Iterator[BlockList]:
    """The lists of all blocks of a dimension."""
    for op in root.walk():
        if isinstance(op, TasksOp):
            numbers = [(index, index.index) for index in op.body.block.args]
        elif isinstance(op, scf.ForOp) and constant_of(op.lb) == 0 and constant_of(op.step) == 1:
            numbers = [(op.body.block.args[0], 1)]
        else:
            continue
        for number, place in numbers:
            blocks = tuple(use.operation for use in number.uses if isinstance(use.operation, BlockOp))
            count = op.operands[place].owner
            if not blocks or not isinstance(count, BlockCountOp) or count.block.of != dim:
                continue
            if not any(map(_bounded, (count, *blocks))) and {count.block} == set(map(block_type, blocks)):
                yield BlockList(number, op, place, blocks)


def _bounded(op: BlockCountOp | BlockOp) -> bool:
    return any(bound is not None for bound in (op.shard, op.start, op.stop))


def divides_freely(blocks: BlockList) -> bool:
    """Whether every element of every result is the same wherever the blocks of a list end.

    It may not be if something reduces a block or multiplies along it, if a loop over the list carries what it makes of
    one block to the next, if a number of a block is used, or if an operation may move elements to other places.
    """
    if blocks.kind.extent == 1:
        return True
    if any(use.operation not in blocks.blocks for use in blocks.number.uses):
        return False
    axes: set[Axis] = set()
    todo = [_of_block(use, block) for block in blocks.blocks for use in block.result.uses]
    while todo:
        reached = todo.pop()
        if reached is None:
            return False
        for tile, axis in set(reached) - axes:
            axes.add((tile, axis))
            todo += [_of_tile(use, axis, blocks) for use in tile.uses]
    return True


def _of_block(use: Use, block: BlockOp) -> list[Axis] | None:
    """The axes that go through a block where it is used; None if its length or number may be seen."""
    op = use.operation
    if isinstance(op, LoadOp):
        places = [index for index in op.indices if isinstance(index.type, BlockType)]
        return [(op.result, at) for at, index in enumerate(places) if index is block.result]
    if isinstance(op, GatherOp):
        return _of_gather(op, block.result, 0)
    if isinstance(op, PositionsOp):
        return None if op.zigzag else [(op.result, 0)]
    return [] if isinstance(op, StoreOp | AccumulateOp | ClipOp | IsWholeOp) else None


def _of_gather(op: GatherOp, used: SSAValue, axis: int) -> list[Axis]:
    """The axes of what is gathered that go along an axis of what names places in a dimension."""
    named = zip(op.places, op.axes_of_places, strict=True)
    return [(op.result, axes[axis]) for place, axes in named if place is used]


def _of_tile(use: Use, axis: int, blocks: BlockList) -> list[Axis] | None:
    """Where an axis of a tile goes in an operation that uses it; None if elements along it meet, or move."""
    op = use.operation
    if isinstance(op, _ALIKE):
        return [(op.results[0], axis)]
    if isinstance(op, BroadcastOp):
        return [(op.result, op.positions[axis])]
    if isinstance(op, TransposeOp):
        return [(op.result, 1 - axis)]
    if isinstance(op, RowReduction | FoldOp):
        return [(op.result, axis)] if axis < tile_type(op.tile).rank - 1 else None
    if isinstance(op, AnyMmaOp):
        contracted = use.index < 2 and axis != use.index
        return None if contracted else [(op.result, axis)]
    if isinstance(op, GatherOp):
        return None if op.of_rows and tile_type(op.rows).rank > 1 else _of_gather(op, op.operands[use.index], axis)
    if isinstance(op, StoreOp | AccumulateOp):
        places = [index for index in op.indices if isinstance(index.type, BlockType)]
        return [] if places[axis] in [block.result for block in blocks.blocks] else None
    if isinstance(op, scf.ForOp):
        return [(op.body.block.args[use.index - 2], axis), (op.results[use.index - 3], axis)]
    parent = op.parent_op()
    if isinstance(op, scf.YieldOp) and isinstance(parent, scf.IfOp):
        return [(parent.results[use.index], axis)]
    if isinstance(op, scf.YieldOp) and isinstance(parent, scf.ForOp) and parent is not blocks.owner:
        return [(parent.body.block.args[use.index + 1], axis), (parent.results[use.index], axis)]
    return None
