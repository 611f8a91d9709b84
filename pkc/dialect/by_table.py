"""Accesses whose places tables name: rows of an array, or elements along any dimension."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyOf,
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

from pkc.dialect.arrays import (
    ARRAY,
    SIZED,
    array_type,
    is_pgl,
    verify_local,
    verify_one_copy,
    verify_rank,
    verify_summed,
)
from pkc.dialect.effects import ReadsArray, UpdatesArray, WritesArray
from pkc.dialect.program import index_shape, verify_indices, verify_tile
from pkc.dialect.tile import tile_type
from pkc.dialect.types import BlockType, Layout, PGLType, TileType, i32

INDEX = AnyOf((BaseAttr(BlockType), BaseAttr(IndexType)))
PLACE = AnyOf((INDEX, BaseAttr(TileType)))

_Properties = dict[str, Attribute]


class ByTable(IRDLOperation, ABC):
    """What finds rows or elements by tables. `rows` addresses dimension `dim`, 0 without one; `indices` the others.

    With `axes` there may be more tables among the indices. `axes` has the axis of the tile for each axis of what
    addresses each dimension in turn; some may go along one axis, element by element.
    """

    array = operand_def()
    rows = operand_def(TileType)
    indices = var_operand_def(PLACE)
    dim = opt_prop_def(IntegerAttr.constr(i64))
    axes = opt_prop_def(DenseArrayBase.constr(i64))

    @property
    def of_rows(self) -> bool:
        """Whether whole rows are named."""
        return self.axes is None

    @property
    def places(self) -> tuple[SSAValue, ...]:
        """What addresses each dimension."""
        dim = 0 if self.dim is None else self.dim.value.data
        return (*self.indices[:dim], self.rows, *self.indices[dim:])

    @property
    def tables(self) -> tuple[SSAValue, ...]:
        return tuple(place for place in self.places if isinstance(place.type, TileType))

    @property
    def names_ranks(self) -> bool:
        """Whether the table names a rank beside each row."""
        array = self.array.type
        symmetric = isinstance(array, PGLType) and array.layout is Layout.Symmetric
        return self.of_rows and symmetric and bool(self.results)

    @property
    def axes_of_places(self) -> tuple[tuple[int, ...], ...]:
        """The axes of the tile that each of the places goes along."""
        counts = [_rank_of(place) for place in self.places]
        if self.names_ranks:
            counts[0] = 1
        axes = iter(range(sum(counts)) if self.axes is None else self.axes.get_values())
        return tuple(tuple(next(axes) for _ in range(count)) for count in counts)

    @property
    def ends_in_block(self) -> bool:
        """Whether neighbours along the last axis of the tile are neighbours in the array."""
        *others, last = self.axes_of_places
        final = max((axis for along in (*others, last) for axis in along), default=0)
        return isinstance(self.places[-1].type, BlockType) and last == (final,) and all(final not in a for a in others)

    def verify_places(self, tile: Attribute, element: Attribute) -> None:
        """That a tile has the axes that the places have."""
        axes = self.axes
        assert axes is not None
        if sum(map(_rank_of, self.places)) != len(axes):
            raise VerifyException(f"expected an axis for each of those of {len(self.places)} places, got {len(axes)}")
        extents: dict[int, int] = {}
        for place, along in zip(self.places, self.axes_of_places, strict=True):
            kind = place.type
            if isinstance(kind, TileType) and kind.element_type != i32:
                raise VerifyException(f"expected a table of i32, got {kind}")
            shape = kind.shape if isinstance(kind, TileType) else (kind.extent,) if isinstance(kind, BlockType) else ()
            for axis, extent in zip(along, shape, strict=True):
                if extents.setdefault(axis, extent) != extent:
                    raise VerifyException(f"axis {axis} has {extents[axis]} elements, and {extent}")
        if sorted(extents) != list(range(len(extents))):
            raise VerifyException(f"expected all axes of a tile, got {sorted(extents)}")
        verify_tile(tile, tuple(extents[axis] for axis in sorted(extents)), element, "a tile")


def tables_of(op: Operation) -> tuple[SSAValue, ...]:
    """The tables by which an operation finds rows or elements."""
    return op.tables if isinstance(op, ByTable) else ()


def by_tables(places: Sequence[SSAValue], axes: Sequence[int]) -> tuple[SSAValue, list[SSAValue], _Properties]:
    """The first table of some places, the others, and the properties that say what addresses which dimension."""
    dim = next(number for number, place in enumerate(places) if isinstance(place.type, TileType))
    properties: _Properties = {"dim": IntegerAttr(dim, i64), "axes": DenseArrayBase.from_list(i64, axes)}
    return places[dim], [*places[:dim], *places[dim + 1 :]], properties


def _rank_of(place: SSAValue) -> int:
    return place.type.rank if isinstance(place.type, TileType) else int(isinstance(place.type, BlockType))


@irdl_op_definition
class GatherOp(ByTable):
    """Elements of an array, at positions that a table names; zeros where one is negative.

    Whole rows: `rows` has one axis, positions of the array's first dimension; for a symmetric array two, of (rank,
    row). With `local`, this rank's rows are those of that array, which is sharded by rows.

    With `axes`, along any dimension of a private array, of this rank's copy, or of a sharded array, wherever its
    elements are: `rows` names positions of dimension `dim`, and among the indices of the others there may be more
    tables. `axes` has the axis of the result for each axis of what addresses each dimension in turn; some may go along
    one axis, element by element.
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
    irdl_options = SIZED
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
            verify_local(array, array_type(self.local))
        if not self.of_rows:
            if self.local is not None:
                raise VerifyException("tables along any dimension pick from one array")
            verify_indices(array, self.places)
            self.verify_places(self.result.type, array.element_type)
            return
        verify_indices(array, self.indices, first=1)
        pairs = is_pgl(self.array, Layout.Symmetric)
        if rows.element_type != i32 or rows.rank != 1 + pairs or (pairs and rows.shape[1] != 2):
            raise VerifyException(f"expected i32 rows with {'axes (p, 2)' if pairs else 'one axis'}, got {rows}")
        shape = (rows.shape[0], *index_shape([i.type for i in self.indices]))
        verify_tile(self.result.type, shape, array.element_type, "a tile")


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
    irdl_options = SIZED
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
        verify_rank(self.array, self.rank)
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
        verify_summed(self.array)


class AddByTableOp(_Scatter):
    """Adds to what is there, in no order, as `AddToArrayOp`."""

    traits = traits_def(UpdatesArray())


@irdl_op_definition
class ScatterStoreAddOp(AddByTableOp):
    """As `pk.store_add`, to the places that tables name."""

    name = "pk.scatter_store_add"

    def verify_(self) -> None:
        super().verify_()
        verify_one_copy(self.array)


@irdl_op_definition
class ScatterAddOp(AddByTableOp):
    """As `pk.atomic_add`, to the places that tables name."""

    name = "pk.scatter_add"

    def verify_(self) -> None:
        super().verify_()
        verify_summed(self.array)
