"""Which positions of a dimension an access goes through: from where on, how many, and every how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.elementwise import AddOp, MulOp, SubOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import FullOp, PositionsOp, SplatOp, block_type
from pkc.dialect.types import BlockType, Dim
from pkc.passes.analysis.named_positions import named
from pkc.passes.analysis.signs import is_not_negative
from pkc.passes.analysis.value_numbers import ValueNumbers


@dataclass(frozen=True)
class Sum:
    """A constant, and integers each with a factor, by their value numbers."""

    terms: Mapping[int, tuple[SSAValue, int]]
    constant: int = 0

    def plus(self, other: Sum, times: int = 1) -> Sum:
        terms = dict(self.terms)
        for number, (value, factor) in other.terms.items():
            terms[number] = value, terms[number][1] + times * factor if number in terms else times * factor
        kept = {number: term for number, term in terms.items() if term[1]}
        return Sum(kept, self.constant + times * other.constant)

    @property
    def key(self) -> tuple[tuple[int, int], ...]:
        """The same for two sums that differ by a constant."""
        return tuple(sorted((number, factor) for number, (_, factor) in self.terms.items()))

    @property
    def surely_inside(self) -> bool:
        """Whether it is surely not negative."""
        return self.constant >= 0 and all(factor > 0 and is_not_negative(v) for v, factor in self.terms.values())


_ZERO = Sum({})


@dataclass(frozen=True)
class Span:
    """Positions of a dimension, `step` apart: `count` of them from `begin` on, which are an axis of the tile, or one
    if there is no `block`. What `block` does not have is zero."""

    dim: Dim
    begin: Sum
    count: int = 1
    step: int = 1
    block: BlockOp | None = None
    computed: bool = False
    """Whether the positions of the block are not these, but those of its own dimension that they are computed from."""

    @property
    def reach(self) -> int:
        """How many positions there are from the first one to the last."""
        return self.step * (self.count - 1) + 1

    def without(self, number: int) -> Span:
        """The same without what one integer adds to its begin."""
        terms = {other: term for other, term in self.begin.terms.items() if other != number}
        return replace(self, begin=Sum(terms, self.begin.constant))


class Spans:
    """Finds the spans of accesses; two begin alike if their integers are equal."""

    def __init__(self, numbers: ValueNumbers) -> None:
        self._numbers = numbers

    def of(self, op: LoadOp | GatherOp) -> list[Span] | None:
        """Of each dimension of the array; None if some index is no block, no integer, and no table of positions that
        are equally far apart."""
        dims = array_type(op.array).dimensions
        places = op.indices if isinstance(op, LoadOp) else op.places
        tables = () if isinstance(op, LoadOp) else op.tables
        found: list[Span] = []
        for place, dim in zip(places, dims, strict=True):
            span = self._of_table(place, dim) if place in tables else self._of_index(place, dim)
            if span is None:
                return None
            found.append(span)
        return found

    def _of_index(self, index: SSAValue, dim: Dim) -> Span | None:
        if not isinstance(index.type, BlockType):
            return Span(dim, self.sum_of(index))
        block = index.owner
        begin = self._begin(block) if isinstance(block, BlockOp) else None
        if begin is None or not isinstance(block, BlockOp):
            return None
        return Span(dim, begin, block_type(index).extent, 1, block)

    def _begin(self, block: BlockOp) -> Sum | None:
        """The first position of a block; None if that is one of a shard, or where its list is cut off."""
        if block.in_shard:
            return None
        begin = _ZERO.plus(self.sum_of(block.index), block_type(block.result).extent)
        if block.start is None:
            return begin
        start = self.sum_of(block.start)
        return begin.plus(start) if block.outside is not None or start.surely_inside else None

    def _of_table(self, table: SSAValue, dim: Dim) -> Span | None:
        found = named(table, dim)
        made = self._counted(found.numbers)
        if made is None or not found.below or made[0].block is not found.block or made[0].zigzag:
            return None
        positions, step, more = made
        block = positions.block.owner
        begin = self._begin(block) if isinstance(block, BlockOp) else None
        if begin is None or not isinstance(block, BlockOp):
            return None
        return Span(dim, _ZERO.plus(begin, step).plus(more), block_type(block.result).extent, step, block, True)

    def _counted(self, tile: SSAValue) -> tuple[PositionsOp, int, Sum] | None:
        """The positions of a block, times a constant, to which a sum is added."""
        op = tile.owner
        if isinstance(op, PositionsOp):
            return op, 1, _ZERO
        if not isinstance(op, AddOp | SubOp | MulOp):
            return None
        found, by = self._counted(op.lhs), op.rhs
        if found is None and not isinstance(op, SubOp):
            found, by = self._counted(op.rhs), op.lhs
        if found is None:
            return None
        positions, step, more = found
        if isinstance(op, MulOp):
            times = int(by.owner.constant) if isinstance(by.owner, FullOp) else 0
            return (positions, step * times, _ZERO.plus(more, times)) if times > 0 else None
        if isinstance(by.owner, FullOp):
            added = Sum({}, int(by.owner.constant))
        elif isinstance(by.owner, SplatOp):
            added = self.sum_of(by.owner.scalar)
        else:
            return None
        return positions, step, more.plus(added, -1 if isinstance(op, SubOp) else 1)

    def sum_of(self, value: SSAValue) -> Sum:
        """An integer as a sum; what is none stands for itself."""
        known, op = constant_of(value), value.owner
        if known is not None:
            return Sum({}, known)
        if isinstance(op, arith.AddiOp):
            return self.sum_of(op.lhs).plus(self.sum_of(op.rhs))
        if isinstance(op, arith.SubiOp):
            return self.sum_of(op.lhs).plus(self.sum_of(op.rhs), -1)
        if isinstance(op, arith.MuliOp):
            for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                if (times := constant_of(one)) is not None:
                    return _ZERO.plus(self.sum_of(other), times)
        return Sum({self._numbers[value]: (value, 1)})
