"""Tiles of integers by interval arithmetic: between which numbers their elements lie, and when a comparison of them
holds for all elements or for none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.attributes import Predicate
from pkc.dialect.coordinates import BlockPositionOp
from pkc.dialect.elementwise import AddOp, AndOp, CompareOp, NegOp, NotOp, OrOp, SubOp
from pkc.dialect.tile import BroadcastOp, FullOp, PositionsOp, SplatOp, block_type, tile_type
from pkc.dialect.types import BlockType, i1, i32
from pkc.passes.build import constant


class Linear:
    """An integer: a sum of multiples of scalars and of first positions of blocks, and a constant."""

    def __init__(self, terms: Mapping[SSAValue, int], number: int = 0) -> None:
        self.terms = {value: factor for value, factor in terms.items() if factor}
        self.number = number

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.number + other)
        terms = Counter(self.terms)
        for value, factor in other.terms.items():
            terms[value] += factor
        return Linear(terms, self.number + other.number)

    def __neg__(self) -> Linear:
        return Linear({value: -factor for value, factor in self.terms.items()}, -self.number)

    def __sub__(self, other: Linear | int) -> Linear:
        return self + -other

    def ops(self) -> tuple[list[Operation], SSAValue]:
        """Operations that compute it, and the `index` that they give."""
        last: Operation = constant(self.number)
        made: list[Operation] = [last]
        for value, factor in self.terms.items():
            if isinstance(value.type, BlockType):
                made.append(BlockPositionOp(value))
                value = made[-1].results[0]
            elif not isinstance(value.type, IndexType):
                made.append(arith.IndexCastOp(value, IndexType()))
                value = made[-1].results[0]
            if abs(factor) != 1:
                by = constant(abs(factor))
                times = arith.MuliOp(value, by.result)
                made += [by, times]
                value = times.result
            last = (arith.AddiOp if factor > 0 else arith.SubiOp)(last.results[0], value)
            made.append(last)
        return made, last.results[0]


Formula = tuple[tuple[Linear, ...], ...]
"""True if, in one of the tuples, no number is negative."""

FALSE: Formula = ()
TRUE: Formula = ((),)


def formula_ops(formula: Formula) -> tuple[list[Operation], SSAValue]:
    """Operations that evaluate a formula, and the `i1` that they give."""
    made: list[Operation] = []
    zero = constant(0)
    made.append(zero)
    either: list[SSAValue] = []
    for numbers in formula:
        each: list[SSAValue] = []
        for number in numbers:
            ops, value = number.ops()
            compared = arith.CmpiOp(value, zero.result, "sge")
            made += [*ops, compared]
            each.append(compared.result)
        either.append(_joined(made, arith.AndIOp, each, neutral=True))
    return made, _joined(made, arith.OrIOp, either, neutral=False)


def _joined(
    made: list[Operation], kind: type[arith.AndIOp | arith.OrIOp], values: list[SSAValue], *, neutral: bool
) -> SSAValue:
    if not values:
        made.append(arith.ConstantOp(IntegerAttr(int(neutral), i1)))
        return made[-1].results[0]
    for value in values[1:]:
        made.append(kind(values[0], value))
        values = [made[-1].results[0]]
    return values[0]


class _Interval(NamedTuple):
    """Elements from `low` to `high`, if arithmetic does not wrap."""

    low: Linear
    high: Linear


@dataclass(frozen=True)
class Condition:
    """When a tile of booleans is true for all elements, those past the edges of blocks among them, and for none.

    Both are sufficient, not necessary.
    """

    always: Formula
    never: Formula


_UNKNOWN = Condition(FALSE, FALSE)


def condition_of(tile: SSAValue) -> Condition | None:
    """When a tile of booleans that positions and scalars decide is all true or all false; None for other tiles.

    Parts of `and` and `or` may be such others: `and` is false for all elements where one part is, `or` true.
    """
    op = tile.owner
    match op:
        case CompareOp():
            return _compared(op)
        case BroadcastOp():
            return condition_of(op.tile)
        case FullOp():
            return Condition(TRUE, FALSE) if op.constant else Condition(FALSE, TRUE)
        case NotOp():
            found = condition_of(op.tile)
            return found and Condition(found.never, found.always)
        case AndOp() | OrOp():
            left, right = condition_of(op.lhs), condition_of(op.rhs)
            if left is None and right is None:
                return None
            left, right = left or _UNKNOWN, right or _UNKNOWN
            if isinstance(op, AndOp):
                return Condition(_both(left.always, right.always), left.never + right.never)
            return Condition(left.always + right.always, _both(left.never, right.never))
        case _:
            return None


def _both(a: Formula, b: Formula) -> Formula:
    return tuple((*left, *right) for left, right in product(a, b))


def _compared(op: CompareOp) -> Condition | None:
    known: dict[SSAValue, _Interval | None] = {}
    a, b = _interval(op.lhs, known), _interval(op.rhs, known)
    if a is None or b is None:
        return None
    above, below = a.low - b.high, b.low - a.high  # neither is negative where a >= b, or a <= b, for all elements
    match op.predicate.data:
        case Predicate.Ge:
            return Condition(((above,),), ((below - 1,),))
        case Predicate.Gt:
            return Condition(((above - 1,),), ((below,),))
        case Predicate.Le:
            return Condition(((below,),), ((above - 1,),))
        case Predicate.Lt:
            return Condition(((below - 1,),), ((above,),))
        case Predicate.Eq | Predicate.Ne as kind:
            equal, other = ((above, below),), ((above - 1,), (below - 1,))
            return Condition(equal, other) if kind is Predicate.Eq else Condition(other, equal)


def _interval(tile: SSAValue, known: dict[SSAValue, _Interval | None]) -> _Interval | None:
    """Of a tile of i32 that positions and scalars decide; `known` are those of others."""
    if tile not in known:
        known[tile] = _made(tile, known)
    return known[tile]


def _made(tile: SSAValue, known: dict[SSAValue, _Interval | None]) -> _Interval | None:
    op = tile.owner
    if tile_type(tile).element_type != i32:
        return None
    match op:
        case PositionsOp() if op.zigzag:
            return _Interval(*(Linear({end: 1}) for end in op.zigzag[:2]))
        case PositionsOp():
            start = Linear({op.block: 1})
            return _Interval(start, start + (block_type(op.block).extent - 1))
        case FullOp():
            number = Linear({}, int(op.constant))
            return _Interval(number, number)
        case SplatOp():
            scalar = Linear({op.scalar: 1})
            return _Interval(scalar, scalar)
        case BroadcastOp():
            return _interval(op.tile, known)
        case NegOp():
            found = _interval(op.tile, known)
            return found and _Interval(-found.high, -found.low)
        case AddOp() | SubOp():
            a, b = _interval(op.lhs, known), _interval(op.rhs, known)
            if a is None or b is None:
                return None
            if isinstance(op, AddOp):
                return _Interval(a.low + b.low, a.high + b.high)
            return _Interval(a.low - b.high, a.high - b.low)
        case _:
            return None
