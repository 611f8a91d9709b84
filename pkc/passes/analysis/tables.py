"""Which operations only make numbers of rows for accesses."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import ByTable, GatherOp, tables_of
from pkc.dialect.counters import WaitOp
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, ClipOp, FullOp, PositionsOp, SplatOp, tile_type
from pkc.dialect.types import Layout, PGLType, TileType, i1, i32

_MAKES = (LoadOp, GatherOp, ClipOp, FullOp, SplatOp, PositionsOp, BroadcastOp, CompareOp, *OPERATIONS)


def is_table(op: Operation) -> bool:
    """Whether an operation only makes numbers of rows for accesses: these evaluate it where they need an element."""
    if not isinstance(op, _MAKES) or isinstance(op, RowReduction) or len(op.results) != 1:
        return False
    if isinstance(op, GatherOp) and isinstance(op.array.type, PGLType) and op.array.type.layout is not Layout.Replicate:
        return False
    kind = op.results[0].type
    if not isinstance(kind, TileType) or kind.element_type not in (i32, i1) or kind.rank < 1:
        return False
    uses = list(op.results[0].uses)
    return bool(uses) and all(_is_of_table(use) for use in uses)


def _is_of_table(use: Use) -> bool:
    op = use.operation
    if isinstance(op, ByTable):
        return op.operands[use.index] in tables_of(op)
    if isinstance(op, WaitOp):
        return op.operands[use.index] is op.rows
    return is_table(op)


def is_evaluated(op: Operation) -> bool:
    """Whether accesses evaluate an operation for single elements, some of whose operands consumers pass on: not what
    follows from floats, nor what rows give."""
    if not isinstance(op, _MAKES) or isinstance(op, RowReduction):
        return False
    return all(map(_is_integer, op.results)) and all(
        _is_integer(operand) and (tile_type(operand).element_type == i32 or _is_made(operand))
        for operand in op.operands
        if isinstance(operand.type, TileType)
    )


def _is_integer(value: SSAValue) -> bool:
    return isinstance(value.type, TileType) and value.type.element_type in (i32, i1)


def _is_made(condition: SSAValue) -> bool:
    return isinstance(condition.owner, Operation) and is_evaluated(condition.owner)
