"""The pass `pk-repeat-tables`: who accesses memory by a table computes it, whoever else needs it too."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect.by_table import ByTable, tables_of
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, ClipOp, FullOp, PositionsOp, SplatOp
from pkc.dialect.types import TileType, i1, i32
from pkc.passes.dce import drop_dead
from pkc.passes.kernel_pass import KernelPass

_COMPUTED = (ClipOp, FullOp, SplatOp, PositionsOp, BroadcastOp, CompareOp, *OPERATIONS)


class RepeatTables(KernelPass):
    """Give each access its own copy of the integers from which its tables are computed, where something else uses them
    too: a consumer that computed them for the loader would wait for what the loader loads by them.

    Before:

        %at = pk.add %first, %positions : !pk.tile<64xi32>
        %k = pk.gather %K rows %at[%d : ...] : ...
        %seen = pk.compare lt, %at, %length : !pk.tile<64xi32> -> !pk.tile<64xi1>

    After:

        %at = pk.add %first, %positions : !pk.tile<64xi32>
        %at_1 = pk.add %first, %positions : !pk.tile<64xi32>
        %k = pk.gather %K rows %at_1[%d : ...] : ...
        %seen = pk.compare lt, %at, %length : !pk.tile<64xi32> -> !pk.tile<64xi1>
    """

    name = "pk-repeat-tables"

    def run(self, kernel: KernelOp) -> None:
        known: dict[SSAValue, SSAValue] = {}
        for op in list(kernel.walk()):
            for table in tables_of(op):
                if _is_shared(table):
                    own = _repeat(table, known)
                    for number, operand in enumerate(op.operands):
                        if operand is table:
                            op.operands[number] = own
        if known:
            drop_dead(kernel.body)  # what nobody needs now would be the consumer's, and so what it is computed from


def _is_computed(value: SSAValue) -> bool:
    op, kind = value.owner, value.type
    made = isinstance(op, _COMPUTED) and not isinstance(op, RowReduction)
    return made and isinstance(kind, TileType) and kind.element_type in (i32, i1)


def _is_shared(table: SSAValue) -> bool:
    """Whether something else than tables of accesses is computed from a table, or from what it is computed from."""
    if not _is_computed(table) or not isinstance(table.owner, Operation):
        return False
    return not all(map(_is_of_table, table.uses)) or any(map(_is_shared, table.owner.operands))


def _is_of_table(use: Use) -> bool:
    op = use.operation
    if isinstance(op, ByTable):
        return op.operands[use.index] in op.tables
    return len(op.results) == 1 and _is_computed(op.results[0]) and all(map(_is_of_table, op.results[0].uses))


def _repeat(table: SSAValue, known: dict[SSAValue, SSAValue]) -> SSAValue:
    """A copy of what computes a table, for accesses alone."""
    op = table.owner
    if not _is_computed(table) or not isinstance(op, Operation):
        return table
    if table not in known:
        copy = op.clone({operand: _repeat(operand, known) for operand in op.operands})
        assert op.parent is not None
        op.parent.insert_op_after(copy, op)
        known[table] = copy.results[0]
    return known[table]
