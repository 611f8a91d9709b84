"""Tables as the frontend writes them for a block in arithmetic: -1 past the end of the array and of the block."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import SSAValue

from pkc.dialect.attributes import Predicate
from pkc.dialect.coordinates import DimOp
from pkc.dialect.elementwise import CompareOp, SelectOp
from pkc.dialect.tile import ClipOp, FullOp, SplatOp
from pkc.dialect.types import Dim


class Named(NamedTuple):
    """The numbers in a table, and what it leaves out of them."""

    numbers: SSAValue
    below: bool
    """Whether it has none past the end of a dimension."""
    block: SSAValue | None
    """The block past whose end it has none."""


def named(table: SSAValue, dim: Dim) -> Named:
    """What a table of positions of a dimension has."""
    clip = table.owner
    clipped = isinstance(clip, ClipOp) and clip.constant == -1 and clip.axis.value.data == 0
    inside = clip.tile if isinstance(clip, ClipOp) and clipped else table
    block = clip.block if isinstance(clip, ClipOp) and clipped else None
    select = inside.owner
    if isinstance(select, SelectOp) and is_full(select.rhs, -1) and _is_below(select.condition, select.lhs, dim):
        return Named(select.lhs, True, block)
    return Named(inside, False, block)


def is_full(tile: SSAValue, number: int) -> bool:
    """Whether a tile has one number alone."""
    return isinstance(tile.owner, FullOp) and tile.owner.constant == number


def _is_below(condition: SSAValue, numbers: SSAValue, dim: Dim) -> bool:
    """Whether a condition holds where numbers are less than a dimension."""
    op = condition.owner
    if not isinstance(op, CompareOp) or op.predicate.data is not Predicate.Lt or op.lhs is not numbers:
        return False
    if isinstance(dim, int):
        return is_full(op.rhs, dim)
    length = op.rhs.owner.scalar.owner if isinstance(op.rhs.owner, SplatOp) else None
    return isinstance(length, DimOp) and length.dim.data == dim
