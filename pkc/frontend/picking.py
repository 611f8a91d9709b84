"""Places in arrays that are read or written: tiles of blocks, `A[m, k]`; elements at positions that tables name,
`A[m, t[k]]`, `A[m, k - 1]`."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.tile import PositionsOp
from pkc.dialect.types import Dim, Layout, PGLType, i32
from pkc.frontend import indexing, operators, tree
from pkc.frontend.frame import Frame
from pkc.frontend.indexing import Evaluate
from pkc.frontend.kinds import (
    ArrayRef,
    Axis,
    Block,
    BlockAxis,
    Columns,
    Constant,
    Dimension,
    Place,
    Tile,
    Value,
    base,
    shape,
)
from pkc.frontend.tile_errors import BadIndex
from pkc.location import Span


def read(frame: Frame, node: tree.Index, evaluate: Evaluate) -> Value:
    """The tile, element or integer that `node` reads."""
    evaluated, picked = _pick(frame, node, evaluate)
    if picked is None:
        return indexing.load(frame, indexing.place(frame, node, evaluated), node.span)
    if isinstance(node.base, tree.At):
        hint = (
            "copy what is needed of it to a `.scratch()` array in `tasks` before, and pick from that; of a sharded "
            "array elements are picked wherever they are"
        )
        problem = "another rank's copy is read by blocks and integers"
        raise PkcError(BadIndex(node.span, picked.array.name, "a table", hint, problem=problem))
    return picked.made(node.span)


def written(frame: Frame, node: tree.Index, evaluate: Evaluate) -> Place:
    """The place that `node` writes."""
    evaluated, picked = _pick(frame, node, evaluate)
    if picked is None:
        return indexing.place(frame, node, evaluated)
    rank = indexing.rank_of(frame, node, picked.array, evaluate)
    return Place(picked.array, rank, tuple(picked.places), tuple(picked.axes), None if picked.of_rows else picked.flat)


def _pick(frame: Frame, node: tree.Index, evaluate: Evaluate) -> tuple[Evaluate, _Picked | None]:
    """What `node` addresses by tables, if it does, and how to evaluate its indices, each of them once."""
    known: dict[int, Value] = {}

    def evaluated(frame: Frame, one: tree.Expr) -> Value:
        return known[id(one)] if id(one) in known else evaluate(frame, one)

    moved: set[int] = set()
    for index in node.indices:
        if not isinstance(index, tree.FullSlice):
            known[id(index)], from_blocks = _position(frame, index, evaluate)
            moved |= {id(index)} if from_blocks else set()
    array = frame.names.get((node.base.array if isinstance(node.base, tree.At) else node.base).id)
    tables = {key for key, value in known.items() if isinstance(value, Tile) and value.axes and value.dtype == i32}
    if not tables or not isinstance(array, ArrayRef):
        return evaluated, None
    picked = _Picked(frame, array)
    dims = array.type.dimensions
    indexing.check_dimensions(array, len(node.indices), node.span)
    for number, dim in enumerate(dims):
        index = node.indices[number] if number < len(node.indices) else None
        if index is not None and id(index) in tables:
            table = known[id(index)]
            assert isinstance(table, Tile) and index is not None
            if dim in frame.zigzag:
                raise PkcError(indexing.not_a_block(index.span, array, "a table of rows", dim))
            picked.by_table(_inside(frame, table, dim, index.span) if id(index) in moved else table, index.span)
        else:
            picked.by_block(*indexing.index(frame, array, number, index, evaluated, node.span))
    return evaluated, picked


def _position(frame: Frame, node: tree.Expr, evaluate: Evaluate) -> tuple[Value, bool]:
    """The value of an index, in which a block in arithmetic stands for its positions, and whether one does."""
    moved: list[Block] = []

    def positions(block: Block, span: Span) -> Value | None:
        if block.axis.dim in frame.zigzag:
            return None
        moved.append(block)
        return Tile(frame.value(PositionsOp(block.ssa), span), i32, (block.axis,))

    before, frame.as_positions = frame.as_positions, positions
    try:
        return evaluate(frame, node), bool(moved)
    finally:
        frame.as_positions = before


def _inside(frame: Frame, table: Tile, dim: Dim, span: Span) -> Tile:
    """Positions computed from those of blocks, negative past the end of the dimension: there are zeros."""
    length = Constant(dim) if isinstance(dim, int) else Dimension(dim)
    inside = operators.binary(frame, "<", table, length, span)
    made = operators.select(frame, inside, table, Constant(-1), span)
    assert isinstance(made, Tile)
    return made


@dataclass
class _Picked:
    """Elements of an array as they are addressed dimension by dimension."""

    frame: Frame
    array: ArrayRef
    axes: list[Axis] = field(default_factory=list[Axis])
    """Those of the result, in the order in which they occur."""
    places: list[SSAValue] = field(default_factory=list[SSAValue])
    along: list[list[int]] = field(default_factory=list[list[int]])
    tables: list[tuple[int, Tile]] = field(default_factory=list[tuple[int, Tile]])
    _of_tables: set[int] = field(default_factory=set[int])

    def by_table(self, table: Tile, span: Span) -> None:
        """A dimension in which a table names positions; it goes along with what has its axes."""
        ssa = table.ssa
        for number, axis in enumerate(table.axes):
            if isinstance(base(axis), BlockAxis):  # past the edge of its blocks it names nothing
                ssa = operators.clipped(self.frame, Tile(ssa, i32, table.axes), number, -1, span)
        self.tables.append((len(self.places), table))
        self.places.append(ssa)
        self.along.append([self._axis(axis) for axis in table.axes])
        self._of_tables |= set(self.along[-1])

    def _axis(self, axis: Axis) -> int:
        shared = isinstance(axis, BlockAxis | Columns)
        for number, other in enumerate(self.axes):
            if axis == other and (shared or number in self._of_tables):
                return number
        self.axes.append(axis)
        return len(self.axes) - 1

    def by_block(self, index: SSAValue, axis: Axis | None) -> None:
        """A dimension that a block or an integer addresses; a block goes along with tables that have its axis."""
        self.places.append(index)
        if axis is None:
            self.along.append([])
            return
        if isinstance(axis, BlockAxis) and axis in self.axes and self.axes.index(axis) not in self._of_tables:
            axis = Columns(axis)
        if isinstance(axis, int) or axis not in self.axes:
            self.axes.append(axis)
            self.along.append([len(self.axes) - 1])
        else:
            self.along.append([self.axes.index(axis)])

    @property
    def flat(self) -> tuple[int, ...]:
        """The axis of the tile for each axis of what addresses each dimension in turn."""
        return tuple(axis for axes in self.along for axis in axes)

    @property
    def of_rows(self) -> bool:
        """Whether one table names whole rows, by the first dimension."""
        (dim, first), *others = self.tables
        return not others and dim == 0 and len(first.axes) == 1 and self.flat == tuple(range(len(self.flat)))

    def made(self, span: Span) -> Tile:
        """The tile that is read."""
        kind, (_, first) = self.array.type, self.tables[0]
        layout = kind.layout if isinstance(kind, PGLType) else None
        if self.of_rows and layout is not Layout.Symmetric:
            named = first.ssa if isinstance(first.ssa.owner, LoadOp) else self.places[0]
            rows = GatherOp(self.array.ssa, named, self.places[1:])
            return Tile(self.frame.value(rows, span), kind.element_type, tuple(self.axes))
        op = GatherOp.along(self.array.ssa, self.places, self.flat, shape(tuple(self.axes)))
        return Tile(self.frame.value(op, span), kind.element_type, tuple(self.axes))
