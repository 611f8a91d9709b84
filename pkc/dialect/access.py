"""Operations that touch memory at places that the program names: loads, stores, sums over ranks.

Signals: `counters.py`; places that tables name: `by_table.py`.

An array is addressed by one index for each of its dimensions: a block (an axis of the tile) or an `index` (a single
position). On a symmetric layout `at %r` names the rank; without it the access is to this rank's copy.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.arrays import (
    ARRAY,
    SIZED,
    array_type,
    verify_local,
    verify_one_copy,
    verify_rank,
    verify_summed,
    verify_symmetric,
)
from pkc.dialect.by_table import INDEX, AddByTableOp, ByTable, GatherOp, ScatterStoreAddOp, ScatterStoreOp
from pkc.dialect.effects import ReadsArray, UpdatesArray, WritesArray
from pkc.dialect.elementwise import AddOp, Binary, MaxOp, MinOp
from pkc.dialect.program import index_shape, verify_indices, verify_tile
from pkc.dialect.types import PGLType, TileType, f32, i32


def _picked(array: SSAValue, indices: Sequence[SSAValue]) -> TileType:
    return TileType(index_shape([i.type for i in indices]), array_type(array).element_type)


# Reading


@irdl_op_definition
class ReadOp(IRDLOperation):
    """One element of an i32 array, as an `index`."""

    name = "pk.read"
    array = operand_def(ARRAY)
    rank = opt_operand_def(IndexType())
    indices = var_operand_def(IndexType())
    result = result_def(IndexType())
    traits = traits_def(ReadsArray())
    irdl_options = SIZED
    assembly_format = "$array (`at` $rank^)? `[` $indices `]` attr-dict `:` type($array)"

    def __init__(self, array: SSAValue, indices: Sequence[SSAValue], rank: SSAValue | None = None) -> None:
        super().__init__(operands=[array, rank, indices], result_types=[IndexType()])

    def verify_(self) -> None:
        verify_indices(array_type(self.array), self.indices)
        verify_rank(self.array, self.rank)
        if array_type(self.array).element_type != i32:
            raise VerifyException(f"expected an array of i32, got {self.array.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """One tile of an array, from whichever rank has it; zero past the end of each block.

    `local` is a sharded array of the same shape: a tile of this rank's shard is read from there instead.
    """

    name = "pk.load"
    array = operand_def(ARRAY)
    rank = opt_operand_def(IndexType())
    local = opt_operand_def(PGLType)
    indices = var_operand_def(INDEX)
    result = result_def(TileType)
    traits = traits_def(ReadsArray())
    irdl_options = SIZED
    assembly_format = (
        "$array (`at` $rank^)? (`local` $local^ `:` type($local))? `[` $indices `:` type($indices) `]` attr-dict"
        " `:` type($array) `->` type($result)"
    )

    def __init__(
        self,
        array: SSAValue,
        indices: Sequence[SSAValue],
        rank: SSAValue | None = None,
        *,
        local: SSAValue | None = None,
    ) -> None:
        super().__init__(operands=[array, rank, local, indices], result_types=[_picked(array, indices)])

    def verify_(self) -> None:
        array = array_type(self.array)
        verify_indices(array, self.indices)
        verify_rank(self.array, self.rank)
        if self.local is not None:
            verify_local(array, array_type(self.local))
        verify_tile(self.result.type, index_shape([i.type for i in self.indices]), array.element_type, "a tile")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """The f32 sum, in rank order, of all ranks' copies of one tile of a symmetric array; with `by`, the greatest or the
    smallest element of all copies."""

    name = "pk.reduce"
    array = operand_def(PGLType)
    indices = var_operand_def(INDEX)
    by = opt_prop_def(StringAttr)
    result = result_def(TileType)
    traits = traits_def(ReadsArray())
    assembly_format = (
        "(`by` $by^)? $array `[` $indices `:` type($indices) `]` attr-dict `:` type($array) `->` type($result)"
    )

    def __init__(self, array: SSAValue, indices: Sequence[SSAValue], by: str | None = None) -> None:
        result = TileType(_picked(array, indices).shape, f32)
        super().__init__(operands=[array, indices], properties=_by(by), result_types=[result])

    @property
    def combine(self) -> type[Binary]:
        """What makes one of the elements of two copies."""
        return COMBINED[None if self.by is None else self.by.data]

    def verify_(self) -> None:
        _verify_combined(self.by)
        verify_indices(array_type(self.array), self.indices)
        verify_symmetric(self.array)
        verify_tile(self.result.type, index_shape([i.type for i in self.indices]), f32, "a tile")


# Writing


class _Write(IRDLOperation, ABC):
    """Writes a tile, of the element type of the array, to the place that the indices name."""

    tile = operand_def(TileType)
    array = operand_def(ARRAY)
    rank = opt_operand_def(IndexType())
    indices = var_operand_def(INDEX)
    irdl_options = SIZED
    assembly_format = (
        "$tile `,` $array (`at` $rank^)? `[` $indices `:` type($indices) `]` attr-dict `:` type($tile) `,` type($array)"
    )

    def __init__(
        self, tile: SSAValue, array: SSAValue, indices: Sequence[SSAValue], rank: SSAValue | None = None
    ) -> None:
        super().__init__(operands=[tile, array, rank, indices])

    def verify_(self) -> None:
        array = array_type(self.array)
        verify_indices(array, self.indices)
        verify_rank(self.array, self.rank)
        verify_tile(self.tile.type, index_shape([i.type for i in self.indices]), array.element_type, "a tile")


@irdl_op_definition
class StoreOp(_Write):
    """Writes to this rank's copy (or `at`), to the owner in a sharded array, to every copy of a replicated one."""

    name = "pk.store"
    traits = traits_def(WritesArray())


class AddToArrayOp(_Write):
    """Adds to what is there, in no order: atomic for each element, rounded at each addition."""

    traits = traits_def(UpdatesArray())


@irdl_op_definition
class StoreAddOp(AddToArrayOp):
    """What an author adds to the array of one rank: a private one of its own, or one of the copies that all have."""

    name = "pk.store_add"

    def verify_(self) -> None:
        super().verify_()
        verify_one_copy(self.array)


@irdl_op_definition
class AccumulateOp(_Write):
    """A contribution to a sum over ranks and tasks, complete at the end of the phase.

    The sum begins at zero, is taken in f32 in rank order, and rounded once.
    """

    name = "pk.accumulate"
    traits = traits_def(UpdatesArray())

    def verify_(self) -> None:
        super().verify_()
        verify_summed(self.array)


@irdl_op_definition
class AtomicAddOp(AddToArrayOp):
    """A contribution to a sum over ranks, added where the array lives, to every copy of a replicated one.

    `pk.accumulate` becomes this where zeros are stored first and `deterministic=False` allows any order.
    """

    name = "pk.atomic_add"

    def verify_(self) -> None:
        super().verify_()
        verify_summed(self.array)


Scatter = ScatterStoreOp | AddByTableOp
"""What goes to places that tables name where the operation stands."""

Store = StoreOp | ScatterStoreOp
StoreAdd = StoreAddOp | ScatterStoreAddOp


def places_of(op: ByTable | ReadOp | LoadOp | _Write) -> Sequence[SSAValue]:
    """What addresses each dimension of the array of an access."""
    return op.places if isinstance(op, ByTable) else op.indices


@irdl_op_definition
class AllReduceOp(IRDLOperation):
    """The result of `pk.reduce`, rounded, stored to every rank's copy of that tile."""

    name = "pk.all_reduce"
    array = operand_def(PGLType)
    indices = var_operand_def(INDEX)
    by = opt_prop_def(StringAttr)
    traits = traits_def(UpdatesArray())
    assembly_format = "(`by` $by^)? $array `[` $indices `:` type($indices) `]` attr-dict `:` type($array)"

    def __init__(self, array: SSAValue, indices: Sequence[SSAValue], by: str | None = None) -> None:
        super().__init__(operands=[array, indices], properties=_by(by))

    @property
    def combine(self) -> type[Binary]:
        """What makes one of the elements of two copies."""
        return COMBINED[None if self.by is None else self.by.data]

    def verify_(self) -> None:
        _verify_combined(self.by)
        verify_indices(array_type(self.array), self.indices)
        verify_symmetric(self.array)


COMBINED: dict[str | None, type[Binary]] = {None: AddOp, "max": MaxOp, "min": MinOp}
"""How copies of all ranks are combined, by the word for it; without one they are added."""


def _by(word: str | None) -> dict[str, StringAttr]:
    return {} if word is None else {"by": StringAttr(word)}


LOADS = (ReadOp, LoadOp, GatherOp)
"""Operations whose result is what an array has where it is read."""

READING = (*LOADS, ReduceOp)
"""Operations that read arrays, sums over ranks' copies among them, and change none."""


def _verify_combined(by: StringAttr | None) -> None:
    if by is not None and by.data not in COMBINED:
        raise VerifyException(f'copies are combined by "max" or "min", not by "{by.data}"')
