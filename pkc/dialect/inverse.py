"""Sums of rows that tables name, in a defined order: the inverse of a table, and the sum of the rows that it lists."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, traits_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.access import INDEX
from pkc.dialect.arrays import ARRAY, array_type, is_pgl
from pkc.dialect.effects import UpdatesArray
from pkc.dialect.program import verify_indices
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS, BlockType, Layout, PGLType, PrivateType, i32

PARTS = 4
"""Parts of a table that may be counted by themselves."""

BOUNDS = 2 + 2 * PARTS
"""Numbers that are kept of each row: where its entries begin and end, and what its parts were counted to have."""


@irdl_op_definition
class InvertOp(IRDLOperation):
    """Lists the entries of a table that name the rows of a block, row after row, each row's in ascending order.

    `table` is i32 [ranks, ...]: for each entry of each rank a row of `array`, negative for none. An entry has the
    number that it has in memory. `order`, of the same shape and of this rank alone, gets the numbers of the entries
    that name rows of this rank, by row and number; `bounds` [rows, BOUNDS] first where those of each row begin and end
    in it. What a block gets there depends on the table alone: blocks are independent of each other.

    pk.invert %named of %O[%t] to %bounds, %order : <types>
    """

    name = "pk.invert"
    table = operand_def(PGLType)
    array = operand_def(PGLType)
    rows = operand_def(BlockType)
    bounds = operand_def(ARRAY)
    order = operand_def(PrivateType)
    traits = traits_def(UpdatesArray())
    assembly_format = (
        "$table `of` $array `[` $rows `]` `to` $bounds `,` $order attr-dict"
        " `:` type($table) `,` type($array) `,` type($rows) `,` type($bounds) `,` type($order)"
    )

    def __init__(self, table: SSAValue, array: SSAValue, rows: SSAValue, bounds: SSAValue, order: SSAValue) -> None:
        super().__init__(operands=[table, array, rows, bounds, order])

    @property
    def written(self) -> tuple[SSAValue, ...]:
        """The arrays that get something."""
        return self.bounds, self.order

    def verify_(self) -> None:
        table = array_type(self.table)
        if not is_pgl(self.table, Layout.Replicate) or table.element_type != i32 or table.dimensions[0] != RANKS:
            raise VerifyException(f"expected a table of all ranks, i32 [ranks, ...] replicated, got {table}")
        rows = array_type(self.array).dimensions[0]
        if block_type(self.rows).of != rows:
            raise VerifyException(f"expected a block of {rows}, got {self.rows.type}")
        _verify_lists(self.array, self.bounds, self.order)
        if array_type(self.order).dimensions != table.dimensions:
            raise VerifyException("`order` has a place for each entry of the table")


@irdl_op_definition
class SumRowsOp(IRDLOperation):
    """Stores sums of rows: row t of the block gets the sum of the rows of `slots` that `order` lists for it.

    Entry (r, ...) of the table that `pk.invert` has inverted stands for row (...) of rank r's `slots`, a symmetric
    array of the table's dimensions, without the ranks, and the columns of `array`. Rows are added in f32, in the order
    of the list, and rounded once; a row without entries is zero. A replicated array gets them in all copies.

    pk.sum_rows %slots by %bounds, %order to %O[%t, %n] : <types>
    """

    name = "pk.sum_rows"
    slots = operand_def(PGLType)
    bounds = operand_def(ARRAY)
    order = operand_def(PrivateType)
    array = operand_def(PGLType)
    indices = var_operand_def(INDEX)
    traits = traits_def(UpdatesArray())
    assembly_format = (
        "$slots `by` $bounds `,` $order `to` $array `[` $indices `:` type($indices) `]` attr-dict"
        " `:` type($slots) `,` type($bounds) `,` type($order) `,` type($array)"
    )

    def __init__(
        self, slots: SSAValue, bounds: SSAValue, order: SSAValue, array: SSAValue, indices: Sequence[SSAValue]
    ) -> None:
        super().__init__(operands=[slots, bounds, order, array, indices])

    @property
    def written(self) -> tuple[SSAValue, ...]:
        """The arrays that get something."""
        return (self.array,)

    @property
    def rank(self) -> None:
        """The rank whose copy is written: the owner, or all."""
        return None

    def verify_(self) -> None:
        array, slots, order = array_type(self.array), array_type(self.slots), array_type(self.order)
        verify_indices(array, self.indices)
        _verify_lists(self.array, self.bounds, self.order)
        if isinstance(self.indices[0].type, IndexType):
            raise VerifyException("the rows that are summed are those of a block")
        shape = (*order.dimensions[1:], *array.dimensions[1:])
        alike = slots.dimensions == shape and slots.element_type == array.element_type
        if not alike or not is_pgl(self.slots, Layout.Symmetric):
            dims = ", ".join(map(str, shape))
            raise VerifyException(f"expected a symmetric array of [{dims}] of {array.element_type}, got {slots}")


def _verify_lists(array: SSAValue, bounds: SSAValue, order: SSAValue) -> None:
    kind, listed = array_type(bounds), array_type(order)
    if kind.element_type != i32 or kind.dimensions != (array_type(array).dimensions[0], BOUNDS):
        raise VerifyException(f"expected i32 bounds of each row of the array, got {kind}")
    if listed.element_type != i32 or listed.dimensions[0] != RANKS:
        raise VerifyException(f"expected the numbers of entries, i32 [ranks, ...], got {listed}")
