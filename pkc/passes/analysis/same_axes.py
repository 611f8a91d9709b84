"""Axes of tiles that have the same elements, and so one length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect.access import AccumulateOp, LoadOp, ReduceOp, StoreOp
from pkc.dialect.by_table import ByTable
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.elementwise import Binary, CompareOp, SelectOp, Unary
from pkc.dialect.program import TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import (
    AnyMmaOp,
    BroadcastOp,
    CastOp,
    ClipOp,
    FullOp,
    PositionsOp,
    SplatOp,
    TransposeOp,
    tile_type,
)
from pkc.dialect.types import BlockType, TileType
from pkc.passes.analysis.joined import Groups, passed_on

Axis: TypeAlias = tuple[SSAValue, int]
"""An axis of a tile; of a block its only one, 0."""

_BY_ELEMENT = (Unary, Binary, CompareOp, SelectOp, CastOp, CumSumOp)
_ACCESSES = (LoadOp, ReduceOp, StoreOp, AccumulateOp)
_MAKES = (FullOp, SplatOp)


def length_of(axis: Axis) -> int:
    """The elements along an axis."""
    kind = axis[0].type
    return kind.extent if isinstance(kind, BlockType) else tile_type(axis[0]).shape[axis[1]]


def axes_of(op: Operation) -> Iterator[Axis]:
    """The axes of all tiles and blocks that an operation uses, makes, or has in its loop."""
    inside = [value for region in op.regions for block in region.blocks for value in block.args]
    for value in (*op.operands, *op.results, *inside):
        if isinstance(value.type, TileType | BlockType):
            yield from ((value, number) for number in range(value.type.rank if isinstance(value.type, TileType) else 1))


class SameAxes(Groups[Axis]):
    """Axes that have the same elements."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed: dict[Axis, Operation] = {}
        """Axes that an operation needs as they are."""

    def members(self, axes: Iterable[Axis]) -> dict[Axis, list[Axis]]:
        """By root, all axes of its group."""
        found: dict[Axis, list[Axis]] = {}
        for axis in axes:
            found.setdefault(self.root(axis), []).append(axis)
        return found

    def _join(self, *axes: Axis) -> None:
        for one, other in pairwise(axes):
            self.join(one, other)

    def _join_all(self, tiles: Iterable[SSAValue]) -> None:
        same = [tile for tile in tiles if isinstance(tile.type, TileType)]
        for number in range(tile_type(same[0]).rank if same else 0):
            self._join(*((tile, number) for tile in same))

    def add(self, op: Operation) -> None:
        """Join the axes that an operation has in common; what it says nothing of stays as it is."""
        match op:
            case AnyMmaOp():
                self._join((op.a, 1), (op.b, 0))
                self._join((op.a, 0), (op.acc, 0), (op.result, 0))
                self._join((op.b, 1), (op.acc, 1), (op.result, 1))
            case TransposeOp():
                for number in range(2):
                    self._join((op.tile, number), (op.result, 1 - number))
            case BroadcastOp():
                for number, position in enumerate(op.positions):
                    self._join((op.tile, number), (op.result, position))
            case RowReduction():
                for number in range(tile_type(op.result).rank):
                    self._join((op.tile, number), (op.result, number))
            case ClipOp():
                self._join_all([op.tile, op.result])
                self._join((op.block, 0), (op.tile, op.axis.value.data))
            case PositionsOp():
                self._join((op.block, 0), (op.result, 0))
            case ByTable():
                self._by_table(op)
            case scf.ForOp() | scf.IfOp():
                for same in passed_on(op):
                    self._join_all(same)
            case _ if isinstance(op, _ACCESSES):
                self._access(op)
            case _ if isinstance(op, _BY_ELEMENT):
                self._join_all([*op.operands, *op.results])
            case _ if not isinstance(op, (*_MAKES, scf.YieldOp, TasksOp, BlockOp)):
                for axis in axes_of(op):
                    self.fixed.setdefault(axis, op)
            case _:
                pass

    def _access(self, op: Operation) -> None:
        tile = next(value for value in (*op.operands, *op.results) if isinstance(value.type, TileType))
        blocks = [value for value in op.operands if isinstance(value.type, BlockType)]
        for number, block in enumerate(blocks):
            self._join((block, 0), (tile, number))

    def _by_table(self, op: ByTable) -> None:
        tiles = [value for value in (*op.operands, *op.results) if isinstance(value.type, TileType)]
        tile = op.results[0] if op.results else next(value for value in tiles if value not in op.tables)
        for place, along in zip(op.places, op.axes_of_places, strict=True):
            for number, axis in enumerate(along):
                self._join((place, number), (tile, axis))
                if isinstance(place.type, TileType):
                    self.fixed.setdefault((place, number), op)


def goes_along(use: Use, axis: int) -> bool:
    """Whether an operation adds up, or compares, what lies along an axis of its operand."""
    op = use.operation
    if isinstance(op, RowReduction):
        return axis == tile_type(op.tile).rank - 1
    return isinstance(op, AnyMmaOp) and (use.index, axis) in ((0, 1), (1, 0))
