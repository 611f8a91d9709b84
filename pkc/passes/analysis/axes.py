"""Which block each axis of a tile goes through: types say how long an axis is, not of what it is."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import OpResult, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import written_type
from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.tile import AnyMmaOp, BroadcastOp, EnlargeOp, PositionsOp, RepeatOp, TransposeOp, tile_type
from pkc.dialect.types import BlockType, TileType
from pkc.dialect.windows import WindowOp


def block_of_axis(tile: SSAValue, axis: int) -> SSAValue | None:
    """The block that an axis of a tile goes through; None if that is not known from how the tile is made."""
    if not isinstance(tile, OpResult):
        return None
    op = tile.op
    if isinstance(op, AnyMmaOp):
        return block_of_axis(op.b if axis else op.a, axis)
    if isinstance(op, LoadOp):
        return _blocks(op.indices)[axis]
    if isinstance(op, GatherOp):
        place, along = next(one for one in zip(op.places, op.axes_of_places, strict=True) if axis in one[1])
        return place if isinstance(place.type, BlockType) else block_of_axis(place, along.index(axis))
    if isinstance(op, PositionsOp):
        return op.block
    if isinstance(op, RowReduction):
        return block_of_axis(op.tile, axis)
    if isinstance(op, TransposeOp):
        return block_of_axis(op.tile, 1 - axis)
    if isinstance(op, BroadcastOp):
        return block_of_axis(op.tile, op.positions.index(axis)) if axis in op.positions else None
    if isinstance(op, PickOp | ZipOp):
        return block_of_axis(op.operands[0], axis) if axis < tile_type(tile).rank - 1 else None
    if op.regions or isinstance(op, FoldOp | RepeatOp | EnlargeOp | WindowOp):
        return None
    shape = tile_type(tile).shape
    alike = (value for value in op.operands if isinstance(value.type, TileType) and value.type.shape == shape)
    return next((found for value in alike if (found := block_of_axis(value, axis)) is not None), None)


def written_axis(tile: SSAValue, axis: int) -> BlockType | None:
    """The dimension and the size of the blocks that an axis goes through, as the program says them."""
    block = block_of_axis(tile, axis)
    return None if block is None else written_type(block)


def _blocks(indices: Sequence[SSAValue]) -> list[SSAValue]:
    return [index for index in indices if isinstance(index.type, BlockType)]
