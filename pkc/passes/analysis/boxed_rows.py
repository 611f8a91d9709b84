"""Rows that tables name of which some in a row lie behind each other in memory, as those of a page do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation, SSAValue

from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.attributes import Predicate
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp, DimOp
from pkc.dialect.elementwise import AddOp, Binary, CompareOp, FloorDivOp, ModOp, MulOp, SelectOp, SubOp, Unary
from pkc.dialect.machine import MAX_BOX
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, PositionsOp, SplatOp, block_type, tile_type
from pkc.dialect.types import Dim, Layout, TileType
from pkc.passes.analysis.multiples import multiple_of, position_multiple
from pkc.passes.analysis.tables import is_table

_LEAST = 8
"""Rows of a box that are worth one: those of a swizzle's pattern (CUDA driver API: CUtensorMapSwizzle)."""


@dataclass(frozen=True)
class Boxes:
    """Boxes of `rows` rows along dimension `dim` of an array; past the end of `block` they may bring other rows than
    the tables name, and where these name none."""

    rows: int
    dim: int
    block: SSAValue | None


@dataclass(frozen=True)
class _Along:
    """How the entries of a table go on within a box: all alike, or by `steps` of one; or they are all negative, if they
    are `optional`, which no arithmetic keeps. The first one is surely a `multiple` of the rows of a box, which steps
    always begin with. Past the ends of `blocks` this need not hold."""

    steps: bool = False
    multiple: bool = False
    optional: bool = False
    blocks: frozenset[SSAValue] = frozenset()


_STEPS = _Along(steps=True, multiple=True)


def boxes_of(op: GatherOp) -> Boxes | None:
    """The boxes in which the rows of a tile lie, whatever its tables have; None if there are none."""
    if op.local is not None or is_pgl(op.array, Layout.Shard) or is_pgl(op.array, Layout.Symmetric):
        return None
    *others, last = op.axes_of_places
    if last != (1,) or not op.ends_in_block or not all(map(_names_rows, op.places[:-1], others)):
        return None
    extent = tile_type(op.result).shape[0]
    sizes = (size for size in range(min(extent, MAX_BOX), _LEAST - 1, -1) if extent % size == 0 and size % _LEAST == 0)
    return next((found for size in sizes if (found := _boxes(op, size)) is not None), None)


def _names_rows(place: SSAValue, axes: tuple[int, ...]) -> bool:
    """Whether a place is one number, or a table along the rows of the tile."""
    return not axes or (axes == (0,) and isinstance(place.type, TileType))


def _boxes(op: GatherOp, size: int) -> Boxes | None:
    dims = array_type(op.array).dimensions
    found = {dim: _along(place, size, dims[dim]) for dim, place in enumerate(op.places) if place in op.tables}
    known = {dim: along for dim, along in found.items() if along is not None}
    stepping = [dim for dim, along in known.items() if along.steps]
    blocks = {block for along in known.values() for block in along.blocks}
    if len(known) < len(found) or len(stepping) != 1 or len(blocks) > 1:
        return None
    return Boxes(size, stepping[0], next(iter(blocks), None))


def _along(table: SSAValue, size: int, dim: Dim | None = None) -> _Along | None:
    """How a table of positions along `dim` goes on within each box of `size` rows; None if that is not known."""
    op = table.owner
    match op:
        case FullOp():
            return _Along(multiple=op.constant % size == 0)
        case SplatOp():
            return _Along(multiple=multiple_of(op.scalar) % size == 0)
        case PositionsOp() if not op.zigzag and isinstance(op.block.owner, BlockOp):
            begins, extent = position_multiple(op.block.owner), block_type(op.block).extent
            return _STEPS if begins % size == 0 and extent % size == 0 else None
        case ClipOp():
            found = _along(op.tile, size, dim)
            return None if found is None else replace(found, blocks=found.blocks | {op.block})
        case BroadcastOp():
            return _along(op.tile, size) if op.positions else _Along()
        case CastOp():
            return _alike([_along(op.tile, size)])  # to what may have fewer numbers
        case SelectOp():
            return _along(op.lhs, size, dim) if _is_in(op, dim) else _selected(op, size)
        case GatherOp() if op.local is None and is_table(op):
            along = [place for place, axes in zip(op.places, op.axes_of_places, strict=True) if axes]
            return _alike([_along(place, size) if place in op.tables else None for place in along])
        case Unary() | Binary() | CompareOp():
            return _computed(op, size)
        case _:
            return None


def _is_in(op: SelectOp, dim: Dim | None) -> bool:
    """Whether what lies past the end of a dimension, where a box has zeros, is replaced by a place that is none."""
    condition, otherwise = op.condition.owner, op.rhs.owner
    if not isinstance(condition, CompareOp) or condition.predicate.data is not Predicate.Lt:
        return False
    end = condition.rhs.owner.scalar.owner if isinstance(condition.rhs.owner, SplatOp) else condition.rhs.owner
    known = end.dim.data if isinstance(end, DimOp) else end.constant if isinstance(end, FullOp) else None
    negative = isinstance(otherwise, FullOp) and otherwise.constant < 0
    return condition.lhs is op.lhs and known is not None and known == dim and negative


def _alike(operands: Sequence[_Along | None]) -> _Along | None:
    """What is computed of entries that are all alike within a box."""
    known = [found for found in operands if found is not None and not found.steps]
    return _Along(blocks=_blocks(known)) if len(known) == len(operands) else None


def _blocks(operands: Sequence[_Along]) -> frozenset[SSAValue]:
    return frozenset(block for found in operands for block in found.blocks)


def _selected(op: SelectOp, size: int) -> _Along | None:
    """What is there or not for all rows of a box: where it is not, the table names nothing."""
    condition, one, other = (_along(operand, size) for operand in op.operands)
    if condition is None or condition.steps or one is None or other is None or other.steps:
        return None
    if one.steps and not (isinstance(op.rhs.owner, FullOp) and op.rhs.owner.constant < 0):
        return None
    blocks = _blocks((condition, one, other))
    if one.steps:
        return _Along(steps=True, multiple=True, optional=True, blocks=blocks)
    return _Along(multiple=one.multiple and other.multiple, blocks=blocks)


def _computed(op: Operation, size: int) -> _Along | None:
    operands = [_along(operand, size) for operand in op.operands]
    one, other = operands[0], operands[-1]
    if one is None or other is None or one.optional or other.optional:
        return None
    both, number = _Along(blocks=_blocks((one, other))), op.operands[-1].owner
    if isinstance(op, MulOp) and not (one.steps or other.steps):
        return replace(both, multiple=one.multiple or other.multiple)
    if isinstance(op, AddOp | SubOp) and not (other.steps and (one.steps or isinstance(op, SubOp))):
        steps, multiple = one.steps or other.steps, one.multiple and other.multiple
        return replace(both, steps=steps, multiple=multiple) if multiple or not steps else None
    if not (one.steps or other.steps):
        return both
    if other.steps or not other.multiple or not isinstance(number, FullOp) or number.constant <= 0:
        return None
    if isinstance(op, ModOp):
        return replace(both, steps=True, multiple=True)
    compares = isinstance(op, CompareOp) and op.predicate.data in (Predicate.Lt, Predicate.Ge)
    return both if compares or isinstance(op, FloorDivOp) else None
