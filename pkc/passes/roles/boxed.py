"""Whether the rows of a gather move in the boxes in which they lie."""

from __future__ import annotations

from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.machine import MAP_DIMENSIONS
from pkc.dialect.program import WRITTEN, kernel_of
from pkc.dialect.roles import CommitOp
from pkc.dialect.tile import block_type, tile_type
from pkc.dialect.transfers import unread_axes
from pkc.dialect.types import PGLType, dtype_bytes
from pkc.passes.analysis.boxed_rows import Boxes
from pkc.passes.analysis.dependence import role_around
from pkc.passes.analysis.multiples import ends_with_whole_block, multiple_of, position_multiple
from pkc.passes.analysis.row_lengths import between_rows
from pkc.targets.layout import CHUNK
from pkc.targets.target import target_of


def why_no_boxes(op: GatherOp, found: Boxes) -> str:
    """Why TMA does not bring the rows of a gather in boxes, though they lie so; empty if it does."""
    role, kernel = role_around(op), kernel_of(op)
    if role is None or role.role.data is not Role.Loader or kernel is None or WRITTEN in kernel.attributes:
        return "its role does more than load"
    if not all(isinstance(use.operation, CommitOp) for use in op.result.uses):
        return "they are used where they are loaded"
    if _ends_within_box(op, found):
        return f"a list may end within {found.rows} rows, and what is read of the others is zero"
    return _no_box(op)


def _ends_within_box(op: GatherOp, found: Boxes) -> bool:
    """Whether something may read what a box brings past the end of what the tables name."""
    if found.block is None or 0 in unread_axes(op):
        return False
    block, length = found.block.owner, block_type(found.block).of
    if not isinstance(block, BlockOp) or block.in_shard:
        return True
    if block.stop is not None and multiple_of(block.stop) % found.rows != 0:
        return True
    return not isinstance(length, int) or length % found.rows != 0  # whatever its `stop` is, a list ends there


def _no_box(op: GatherOp) -> str:
    """What a tensor map cannot say of the rows."""
    array, kind, columns = array_type(op.array), tile_type(op.result), op.places[-1].owner
    size = dtype_bytes(array.element_type)
    assert isinstance(columns, BlockOp)
    row, begins = kind.shape[-1] * size, position_multiple(columns) * size
    if row % CHUNK or begins % CHUNK or between_rows(op) % CHUNK:
        return f"rows, or their parts, may begin where no multiple of {CHUNK} bytes is, which TMA needs"
    if columns.in_shard or not ends_with_whole_block(columns):
        return "the last block of columns may end inside of the array, where TMA does not stop"
    if target_of(op).shared_layout(kind).spare:
        return "beside rows that begin anywhere they lie in their stage as these do"
    dims = array.rank + isinstance(array, PGLType)
    return f"{dims} dimensions: a tensor map has {MAP_DIMENSIONS}" if dims > MAP_DIMENSIONS else ""
