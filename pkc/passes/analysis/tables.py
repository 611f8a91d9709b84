"""Which operations only make numbers of rows for accesses."""

from __future__ import annotations

from xdsl.ir import Operation, Use

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import ByTable, GatherOp, tables_of
from pkc.dialect.counters import WaitOp
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, ClipOp, FullOp, PositionsOp, SplatOp
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
