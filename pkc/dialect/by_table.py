"""Accesses whose places tables name: rows of an array, or elements along any dimension."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AnyOf, BaseAttr, IRDLOperation, operand_def, opt_prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.program import verify_tile
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


def by_tables(places: Sequence[SSAValue], axes: Sequence[int]) -> tuple[SSAValue, list[SSAValue], _Properties]:
    """The first table of some places, the others, and the properties that say what addresses which dimension."""
    dim = next(number for number, place in enumerate(places) if isinstance(place.type, TileType))
    properties: _Properties = {"dim": IntegerAttr(dim, i64), "axes": DenseArrayBase.from_list(i64, axes)}
    return places[dim], [*places[:dim], *places[dim + 1 :]], properties


def _rank_of(place: SSAValue) -> int:
    return place.type.rank if isinstance(place.type, TileType) else int(isinstance(place.type, BlockType))
