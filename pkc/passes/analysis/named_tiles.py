"""Tiles in the words of a program: the array that one comes from, the dimension that an axis goes through."""

from __future__ import annotations

from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.roles import CommitOp, ConsumeOp
from pkc.dialect.tile import (
    AnyMmaOp,
    BroadcastOp,
    CastOp,
    ClipOp,
    EnlargeOp,
    MmaWaitOp,
    PositionsOp,
    RepeatOp,
    TransposeOp,
    tile_type,
)
from pkc.dialect.types import BlockType, TileType, dtype_bytes, dtype_name
from pkc.dialect.windows import WindowOp


def committed(value: SSAValue) -> SSAValue:
    """What a role commits to a channel for a tile that another one consumes; any other tile is itself."""
    op = value.owner
    if not isinstance(op, ConsumeOp):
        return value
    commits = (use.operation for use in op.channel.uses)
    found = next((other for other in commits if isinstance(other, CommitOp)), None)
    return value if found is None else found.tiles[op.tiles.index(value)]


def dimension(tile: SSAValue, axis: int) -> BlockType | None:
    """The block that an axis of a tile goes through, seen through channels and loops; None if nothing tells."""
    return _dimension(tile, axis, set())


def _dimension(tile: SSAValue, axis: int, seen: set[SSAValue]) -> BlockType | None:
    if tile in seen or not isinstance(tile.type, TileType):
        return None
    seen.add(tile)
    op = tile.owner
    if isinstance(op, Block):
        loop = op.parent_op()
        assert isinstance(tile, BlockArgument)
        return _dimension(loop.iter_args[tile.index - 1], axis, seen) if isinstance(loop, scf.ForOp) else None
    if isinstance(op, LoadOp):
        return _blocks(op)[axis]
    if isinstance(op, GatherOp):
        place, along = next(one for one in zip(op.places, op.axes_of_places, strict=True) if axis in one[1])
        return place.type if isinstance(place.type, BlockType) else _dimension(place, along.index(axis), seen)
    if isinstance(op, PositionsOp):
        return op.block.type if isinstance(op.block.type, BlockType) else None
    behind = _behind(tile, axis)
    return next((found for other, along in behind if (found := _dimension(other, along, seen)) is not None), None)


def _behind(tile: SSAValue, axis: int) -> list[tuple[SSAValue, int]]:
    """The tiles of which some axis is that of a tile."""
    op = tile.owner
    if isinstance(op, ConsumeOp):
        return [(committed(tile), axis)]
    if isinstance(op, AnyMmaOp):
        return [(op.b if axis else op.a, axis)]
    if isinstance(op, MmaWaitOp):
        return [(op.issued, axis)]
    if isinstance(op, RowReduction):
        return [(op.tile, axis)]
    if isinstance(op, TransposeOp):
        return [(op.tile, 1 - axis)]
    if isinstance(op, BroadcastOp):
        return [(op.tile, op.positions.index(axis))] if axis in op.positions else []
    if isinstance(op, scf.ForOp):
        number = op.results.index(tile)
        last = op.body.block.last_op
        return [(op.iter_args[number], axis), *([(last.operands[number], axis)] if last is not None else [])]
    if isinstance(op, PickOp | ZipOp):
        return [(op.operands[0], axis)] if axis < tile_type(tile).rank - 1 else []
    if isinstance(op, WindowOp):
        return [(op.tile, op.axes[axis])]
    if isinstance(op, Block) or op.regions or isinstance(op, FoldOp | RepeatOp | EnlargeOp):
        return []
    shape = tile_type(tile).shape
    return [(value, axis) for value in op.operands if isinstance(value.type, TileType) and value.type.shape == shape]


def _blocks(op: LoadOp | GatherOp) -> list[BlockType]:
    return [index.type for index in op.indices if isinstance(index.type, BlockType)]


def array_name(tile: SSAValue, kernel: KernelOp) -> str:
    """The array that a tile is loaded from, in backquotes; nothing if it is computed."""
    op = committed(tile).owner
    if isinstance(op, CastOp | ClipOp | TransposeOp):
        return array_name(op.tile, kernel)
    if isinstance(op, LoadOp | GatherOp) and isinstance(op.array, BlockArgument):
        return f"`{kernel.argument_name(op.array)}`"
    return ""


def shape_text(kind: TileType) -> str:
    """The shape and the type of a tile."""
    return f"{' x '.join(map(str, kind.shape))} {dtype_name(kind.element_type)}"


def size_text(kind: TileType) -> str:
    """The shape, the type and the bytes of a tile."""
    return f"{shape_text(kind)}, {prod(kind.shape) * dtype_bytes(kind.element_type)} bytes"
