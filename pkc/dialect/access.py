"""Operations that touch memory: loads, stores, sums over ranks. Signals: `counters.py`.

An array is addressed by one index for each of its dimensions: a block (an axis of the tile) or an `index` (a single
position). On a symmetric layout `at %r` names the rank; without it the access is to this rank's copy.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyOf,
    AttrSizedOperandSegments,
    BaseAttr,
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

from pkc.dialect.by_table import INDEX, PLACE, ByTable, by_tables
from pkc.dialect.effects import ReadsArray, UpdatesArray, WritesArray
from pkc.dialect.elementwise import AddOp, Binary, MaxOp, MinOp
from pkc.dialect.program import index_shape, verify_indices, verify_tile
from pkc.dialect.tile import tile_type
from pkc.dialect.types import Layout, PGLType, PrivateType, SignalType, TileType, f32, i32

ARRAY = AnyOf((BaseAttr(PrivateType), BaseAttr(PGLType)))
_SIZED = (AttrSizedOperandSegments(as_property=True),)

Array: TypeAlias = PrivateType | PGLType


def tables_of(op: Operation) -> tuple[SSAValue, ...]:
    """The tables by which an operation finds rows or elements."""
    return op.tables if isinstance(op, ByTable) else ()


def array_type(value: SSAValue) -> Array:
    """The type of a value that is known to be a private or parallel global array."""
    assert isinstance(value.type, PrivateType | PGLType)
    return value.type


def is_pgl(value: SSAValue, layout: Layout) -> bool:
    """Whether a value is a parallel global array of this layout."""
    return isinstance(value.type, PGLType) and value.type.layout is layout


def is_shared(array: SSAValue) -> bool:
    """Whether ranks share an array: the elements are the same for all."""
    return is_pgl(array, Layout.Shard) or is_pgl(array, Layout.Replicate)


def _verify_rank(array: SSAValue, rank: SSAValue | None) -> None:
    copies = is_pgl(array, Layout.Symmetric) or is_pgl(array, Layout.Replicate)
    if rank is not None and not (copies or isinstance(array.type, SignalType)):
        raise VerifyException("only an array of which each rank has a copy is addressed by rank")


def _verify_local(array: PrivateType | PGLType, local: PrivateType | PGLType) -> None:
    alike = local.dimensions == array.dimensions and local.element_type == array.element_type
    if not alike or not isinstance(local, PGLType) or local.layout is not Layout.Shard:
        raise VerifyException(f"`local` is a sharded array like {array}, not {local}")


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
    irdl_options = _SIZED
    assembly_format = "$array (`at` $rank^)? `[` $indices `]` attr-dict `:` type($array)"

    def __init__(self, array: SSAValue, indices: Sequence[SSAValue], rank: SSAValue | None = None) -> None:
        super().__init__(operands=[array, rank, indices], result_types=[IndexType()])

    def verify_(self) -> None:
        verify_indices(array_type(self.array), self.indices)
        _verify_rank(self.array, self.rank)
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
    irdl_options = _SIZED
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
        _verify_rank(self.array, self.rank)
        if self.local is not None:
            _verify_local(array, array_type(self.local))
        verify_tile(self.result.type, index_shape([i.type for i in self.indices]), array.element_type, "a tile")


@irdl_op_definition
class GatherOp(ByTable):
    """Elements of an array, at positions that a table names; zeros where one is negative.

    Whole rows: `rows` has one axis, positions of the array's first dimension; for a symmetric array two, of (rank,
    row). With `local`, this rank's rows are those of that array, which is sharded by rows.

    With `axes`, along any dimension of a private array or of this rank's copy: `rows` names positions of dimension
    `dim`, and among the indices of the others there may be more tables. `axes` has the axis of the result for each axis
    of what addresses each dimension in turn; some may go along one axis, element by element.
    """

    name = "pk.gather"
    array = operand_def(ARRAY)
    local = opt_operand_def(PGLType)
    rows = operand_def(TileType)
    indices = var_operand_def(PLACE)
    dim = opt_prop_def(IntegerAttr.constr(i64))
    axes = opt_prop_def(DenseArrayBase.constr(i64))
    result = result_def(TileType)
    traits = traits_def(ReadsArray())
    irdl_options = _SIZED
    assembly_format = (
        "$array (`local` $local^ `:` type($local))? `rows` $rows (`dim` $dim^ `axes` $axes)? `[` $indices `:`"
        " type($indices) `]` attr-dict `:` type($array) `,` type($rows) `->` type($result)"
    )

    def __init__(
        self, array: SSAValue, rows: SSAValue, indices: Sequence[SSAValue], *, local: SSAValue | None = None
    ) -> None:
        shape = (tile_type(rows).shape[0], *index_shape([i.type for i in indices]))
        result = TileType(shape, array_type(array).element_type)
        super().__init__(operands=[array, local, rows, indices], result_types=[result])

    @classmethod
    def along(cls, array: SSAValue, places: Sequence[SSAValue], axes: Sequence[int], shape: Sequence[int]) -> GatherOp:
        """Elements at `places`, of which one addresses each dimension, and one at least is a table."""
        table, others, properties = by_tables(places, axes)
        result = TileType(shape, array_type(array).element_type)
        return cls.build(operands=[array, None, table, others], properties=properties, result_types=[result])

    def verify_(self) -> None:
        array, rows = array_type(self.array), tile_type(self.rows)
        if self.local is not None:
            _verify_local(array, array_type(self.local))
        if not self.of_rows:
            if is_pgl(self.array, Layout.Shard) or self.local is not None:
                raise VerifyException("tables along any dimension pick from memory of this rank")
            verify_indices(array, self.places)
            self.verify_places(self.result.type, array.element_type)
            return
        verify_indices(array, self.indices, first=1)
        pairs = is_pgl(self.array, Layout.Symmetric)
        if rows.element_type != i32 or rows.rank != 1 + pairs or (pairs and rows.shape[1] != 2):
            raise VerifyException(f"expected i32 rows with {'axes (p, 2)' if pairs else 'one axis'}, got {rows}")
        shape = (rows.shape[0], *index_shape([i.type for i in self.indices]))
        verify_tile(self.result.type, shape, array.element_type, "a tile")


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
        _verify_symmetric(self.array)
        verify_tile(self.result.type, index_shape([i.type for i in self.indices]), f32, "a tile")


# Writing


class _Write(IRDLOperation, ABC):
    """Writes a tile, of the element type of the array, to the place that the indices name."""

    tile = operand_def(TileType)
    array = operand_def(ARRAY)
    rank = opt_operand_def(IndexType())
    indices = var_operand_def(INDEX)
    irdl_options = _SIZED
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
        _verify_rank(self.array, self.rank)
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
        if isinstance(self.array.type, PGLType):
            _verify_symmetric(self.array)


@irdl_op_definition
class AccumulateOp(_Write):
    """A contribution to a sum over ranks and tasks, complete at the end of the phase.

    The sum begins at zero, is taken in f32 in rank order, and rounded once.
    """

    name = "pk.accumulate"
    traits = traits_def(UpdatesArray())

    def verify_(self) -> None:
        super().verify_()
        _verify_summed(self.array)


@irdl_op_definition
class AtomicAddOp(AddToArrayOp):
    """A contribution to a sum over ranks, added where the array lives, to every copy of a replicated one.

    `pk.accumulate` becomes this where zeros are stored first and `deterministic=False` allows any order.
    """

    name = "pk.atomic_add"

    def verify_(self) -> None:
        super().verify_()
        _verify_summed(self.array)


class _Scatter(ByTable):
    """A tile to the places that tables name: row i to row `rows[i]` of the array, or with `axes` elements to places
    along any dimension, as `pk.gather` has them. What a negative entry names is dropped."""

    tile = operand_def(TileType)
    array = operand_def(ARRAY)
    rank = opt_operand_def(IndexType())
    rows = operand_def(TileType)
    indices = var_operand_def(PLACE)
    dim = opt_prop_def(IntegerAttr.constr(i64))
    axes = opt_prop_def(DenseArrayBase.constr(i64))
    irdl_options = _SIZED
    assembly_format = (
        "$tile `,` $array (`at` $rank^)? `rows` $rows (`dim` $dim^ `axes` $axes)? `[` $indices `:` type($indices) `]`"
        " attr-dict `:` type($tile) `,` type($array) `,` type($rows)"
    )

    def __init__(
        self,
        tile: SSAValue,
        array: SSAValue,
        places: Sequence[SSAValue],
        axes: Sequence[int] | None = None,
        rank: SSAValue | None = None,
    ) -> None:
        """At `places`, of which the first is the table of rows; with `axes` any may be a table."""
        table, others, properties = (places[0], [*places[1:]], {}) if axes is None else by_tables(places, axes)
        super().__init__(operands=[tile, array, rank, table, others], properties=properties)

    def like(self, kind: type[_Scatter], tile: SSAValue) -> _Scatter:
        """Another operation at the same places."""
        return kind(tile, self.array, self.places, None if self.axes is None else self.axes.get_values(), self.rank)

    def verify_(self) -> None:
        array, rows = array_type(self.array), tile_type(self.rows)
        _verify_rank(self.array, self.rank)
        verify_indices(array, self.indices if self.of_rows else self.places, first=int(self.of_rows))
        if not self.of_rows:
            self.verify_places(self.tile.type, array.element_type)
            return
        if rows.rank != 1 or rows.element_type != i32:
            raise VerifyException(f"expected i32 rows with one axis, got {rows}")
        shape = (rows.shape[0], *index_shape([i.type for i in self.indices]))
        verify_tile(self.tile.type, shape, array.element_type, "a tile")


@irdl_op_definition
class ScatterStoreOp(_Scatter):
    """As `pk.store`, to the places that tables name."""

    name = "pk.scatter_store"
    traits = traits_def(WritesArray())


@irdl_op_definition
class ScatterAccumulateOp(_Scatter):
    """As `pk.accumulate`, to the places that tables name."""

    name = "pk.scatter_accumulate"
    traits = traits_def(UpdatesArray())

    def verify_(self) -> None:
        super().verify_()
        _verify_summed(self.array)


class AddByTableOp(_Scatter):
    """Adds to what is there, in no order, as `AddToArrayOp`."""

    traits = traits_def(UpdatesArray())


@irdl_op_definition
class ScatterStoreAddOp(AddByTableOp):
    """As `pk.store_add`, to the places that tables name."""

    name = "pk.scatter_store_add"

    def verify_(self) -> None:
        super().verify_()
        if isinstance(self.array.type, PGLType):
            _verify_symmetric(self.array)


@irdl_op_definition
class ScatterAddOp(AddByTableOp):
    """As `pk.atomic_add`, to the places that tables name."""

    name = "pk.scatter_add"

    def verify_(self) -> None:
        super().verify_()
        _verify_summed(self.array)


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
        _verify_symmetric(self.array)


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


def _verify_symmetric(array: SSAValue) -> None:
    if not is_pgl(array, Layout.Symmetric):
        raise VerifyException(f"expected a symmetric array, got {array.type}")


def _verify_summed(array: SSAValue) -> None:
    if not is_shared(array):
        raise VerifyException(f"a sum over ranks goes to a sharded or replicated array, got {array.type}")
