"""Sums into rows that one integer from memory names, or that a block has, written as sums into rows of a table."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import READING, AccumulateOp
from pkc.dialect.by_table import ScatterAccumulateOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import BroadcastOp, ClipOp, PositionsOp, SplatOp, tile_type
from pkc.dialect.types import BlockType, TileType, i32
from pkc.passes.analysis.dependence import sources
from pkc.passes.build import before, constant

_NOBODY = -1
"""The row of an entry that adds to none."""


def name_rows(kernel: KernelOp) -> None:
    """Give sums that have a table's order the table that they lack.

    `Y[b[t], n] += x` has one of a single entry. Where other statements add to rows that a table names, `Y[t, n] += x`
    has that of the positions of its block.
    """
    adding = [op for op in kernel.walk() if isinstance(op, AccumulateOp)]
    for op in [op for op in adding if _is_named(op)]:
        _replace(op, _one_entry(op), (1, *tile_type(op.tile).shape))
    scattered = {op.array for op in kernel.walk() if isinstance(op, ScatterAccumulateOp)}
    for op in adding:
        if op.parent is not None and op.array in scattered and _has_whole_list(op):
            _replace(op, _positions(op), tile_type(op.tile).shape)


def _is_named(op: AccumulateOp) -> bool:
    """Whether memory says which row of an array a tile is added to; of tiles of several axes threads have others."""
    row = op.indices[0] if op.indices else None
    if row is None or not isinstance(row.type, IndexType) or tile_type(op.tile).rank > 1:
        return False
    return any(isinstance(value.owner, READING) for value in sources([row]))


def _has_whole_list(op: AccumulateOp) -> bool:
    """Whether the rows that a tile is added to are a block of a list that does not follow shards."""
    made = op.indices[0].owner if op.indices else None
    return isinstance(made, BlockOp) and made.shard is None and made.sharded is None


def _one_entry(op: AccumulateOp) -> list[Operation]:
    kind = TileType((1,), i32)
    zero = constant(0)
    block = BlockOp(zero.result, BlockType(1, 1))
    first, row = PositionsOp(block), SplatOp(op.indices[0], kind)
    return [zero, block, first, row, AddOp(first, row)]


def _positions(op: AccumulateOp) -> list[Operation]:
    positions = PositionsOp(op.indices[0])
    return [positions, ClipOp(positions, op.indices[0], 0, _NOBODY)]


def _replace(op: AccumulateOp, rows: list[Operation], shape: tuple[int, ...]) -> None:
    tile: SSAValue = op.tile
    made = list(rows)
    source = tile_type(tile)
    if source.shape != shape:
        made.append(BroadcastOp(tile, tuple(range(1, len(shape))), TileType(shape, source.element_type)))
        tile = made[-1].results[0]
    before(op, [*made, ScatterAccumulateOp(tile, op.array, [rows[-1].results[0], *op.indices[1:]])])
    op.detach()
    op.erase()
