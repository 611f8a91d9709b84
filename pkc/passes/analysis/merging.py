"""How what two loops carry, each after a share of the iterations, becomes what one loop carries after all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from pkc.dialect.elementwise import (
    AddOp,
    DivOp,
    Exp2Op,
    ExpOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    SelectOp,
    SteepExpOp,
    SubOp,
)
from pkc.dialect.reductions import RowSumOp
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, MmaOp, TransposeOp, tile_type
from pkc.passes.analysis.dependence import ancestors

_EXPONENTIALS: dict[type[Operation], type[Operation]] = {Exp2Op: Exp2Op, ExpOp: ExpOp, SteepExpOp: ExpOp}
"""Functions f with f(a + b) = f(a) * f(b), and which of them are the same."""


@dataclass(frozen=True)
class Merge:
    """Two values are added, or the greater or the smaller one is taken.

    With a `factor`, by which an iteration multiplies the value that it finds, both are multiplied first, as if the
    greatest value so far, which the loop carries at `greatest`, had grown to that of both.
    """

    combine: type[AddOp] | type[MaxOp] | type[MinOp]
    factor: SSAValue | None = None
    greatest: int | None = None


def merges(loop: scf.ForOp) -> list[Merge | None]:
    """How each value that a loop carries is merged; None where that is not known.

    A sum whose addends do not depend on what is carried, a maximum and a minimum of such are, and online sums: with a
    maximum a that grows to b, `total = total * f((a - b) * w) + y`, if y is a multiple of f(-b * w), f an exponential.
    """
    found = _Carried(loop)
    return [found.merge(number) for number in range(len(loop.iter_args))]


def yielded(loop: scf.ForOp, number: int) -> SSAValue:
    """What an iteration makes of a value that a loop carries."""
    last = loop.body.block.last_op
    assert last is not None
    return last.operands[number]


@dataclass(frozen=True)
class _Scale:
    """By what power of f(-b * w) a tile is multiplied; `axes` are those of the tile that the axes of b are."""

    power: int
    axes: tuple[int, ...] = ()


_NONE = _Scale(0)


@dataclass(frozen=True)
class _Term:
    """What is added to an exponent: a maximum times `factors`, and minus one if `sign` is."""

    value: SSAValue
    axes: tuple[int, ...]
    sign: int
    factors: tuple[object, ...] = ()


@dataclass(frozen=True)
class _Exponent:
    """The terms of an exponent with maxima, and whether there are others."""

    terms: tuple[_Term, ...]
    others: bool


@dataclass(frozen=True)
class _Carried:
    loop: scf.ForOp

    @cached_property
    def reached(self) -> set[SSAValue]:
        """What depends on any of the values that are carried."""
        return _reached(self.loop, self.loop.body.block.args[1:])

    @cached_property
    def turning(self) -> set[SSAValue]:
        """What depends on the iteration."""
        return _reached(self.loop, self.loop.body.block.args)

    def merge(self, number: int) -> Merge | None:
        argument, value = self.loop.body.block.args[number + 1], yielded(self.loop, number)
        kinds = (AddOp, MaxOp, MinOp)
        plain = (Merge(kind) for kind in kinds if value is not argument and self._folds(value, argument, kind))
        return next(plain, None) or self._online(number)

    def _folds(self, value: SSAValue, argument: SSAValue, kind: type[Operation]) -> bool:
        """Whether a value is made of what is carried by one operation alone."""
        if value is argument:
            return True
        op = value.owner
        if isinstance(op, MmaOp) and kind is AddOp:
            return not {op.a, op.b} & self.reached and self._folds(op.acc, argument, kind)
        if not isinstance(op, kind):
            return False
        ways = [operand for operand in op.operands if operand in self.reached]
        return len(ways) == 1 and self._folds(ways[0], argument, kind)

    # Online sums

    def _online(self, number: int) -> Merge | None:
        """How a sum is merged that is multiplied by a factor whenever a maximum grows."""
        argument = self.loop.body.block.args[number + 1]
        found = _product(yielded(self.loop, number), argument, _reached(self.loop, [argument]))
        if found is None:
            return None
        factor, addends = found
        for greatest in range(len(self.loop.iter_args)):
            grown = self._grown(factor, greatest)
            if grown is not None and all(_Scales(self, grown).of_addend(one) == grown.scale for one in addends):
                return Merge(AddOp, factor, greatest)
        return None

    def _grown(self, factor: SSAValue, greatest: int) -> _Grown | None:
        """What a factor is when a maximum grows; None if it is not f((before - now) * w)."""
        before, now = self.loop.body.block.args[greatest + 1], yielded(self.loop, greatest)
        if before is now or not self._folds(now, before, MaxOp):
            return None
        axes = tuple(range(tile_type(factor).rank))
        while isinstance(factor.owner, BroadcastOp):
            axes = tuple(axes[position] for position in factor.owner.positions)
            factor = factor.owner.tile
        made = factor.owner
        if not isinstance(made, Exp2Op | ExpOp | SteepExpOp):
            return None
        exponent = self.exponent(made.tile, axes, (before, now))
        if exponent is None or exponent.others or len(exponent.terms) != 2:
            return None
        added, taken = sorted(exponent.terms, key=lambda term: -term.sign)
        same = added.axes == taken.axes and added.factors == taken.factors
        if not same or (added.value, added.sign, taken.value, taken.sign) != (before, 1, now, -1):
            return None
        return _Grown(_EXPONENTIALS[type(made)], taken)

    def exponent(
        self, tile: SSAValue, axes: tuple[int, ...], maxima: Sequence[SSAValue], sign: int = 1
    ) -> _Exponent | None:
        """A tile as a sum of multiples of maxima and of what does not depend on what is carried; `axes` are those of
        the whole that its axes are."""
        if tile in maxima:
            return _Exponent((_Term(tile, axes, sign),), others=False)
        if tile not in self.reached:
            return _Exponent((), others=True)
        op = tile.owner
        if isinstance(op, BroadcastOp):
            return self.exponent(op.tile, tuple(axes[position] for position in op.positions), maxima, sign)
        if isinstance(op, NegOp):
            return self.exponent(op.operands[0], axes, maxima, -sign)
        if isinstance(op, AddOp | SubOp):
            left = self.exponent(op.lhs, axes, maxima, sign)
            right = self.exponent(op.rhs, axes, maxima, -sign if isinstance(op, SubOp) else sign)
            if left is None or right is None:
                return None
            return _Exponent((*left.terms, *right.terms), left.others or right.others)
        return self._multiplied(op, axes, maxima, sign) if isinstance(op, MulOp) else None

    def _multiplied(self, op: MulOp, axes: tuple[int, ...], maxima: Sequence[SSAValue], sign: int) -> _Exponent | None:
        for value, by in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            factor = self._number(by)
            found = self.exponent(value, axes, maxima, sign) if factor is not None else None
            if found is not None:
                terms = (
                    _Term(one.value, one.axes, one.sign, tuple(sorted((*one.factors, factor), key=repr)))
                    for one in found.terms
                )
                return _Exponent(tuple(terms), found.others)
        return None

    def _number(self, tile: SSAValue) -> object | None:
        """What stands for the one number that a tile is full of, whatever the iteration."""
        while isinstance(tile.owner, BroadcastOp):
            tile = tile.owner.tile
        if isinstance(tile.owner, FullOp):
            return tile.owner.constant
        return id(tile) if tile_type(tile).rank == 0 and tile not in self.turning else None


@dataclass(frozen=True)
class _Grown:
    """What a sum is multiplied by when a maximum grows: `function` of what `term` is, and of the maximum before."""

    function: type[Operation]
    term: _Term

    @property
    def scale(self) -> _Scale:
        return _Scale(1, self.term.axes)


@dataclass(frozen=True)
class _Scales:
    """What the tiles of an iteration are multiples of."""

    carried: _Carried
    grown: _Grown

    def of_addend(self, added: SSAValue | MmaOp) -> _Scale | None:
        """Of what is added: a tile, or the product of a matmul without its accumulator."""
        return self._of_product_of(added) if isinstance(added, MmaOp) else self.of(added)

    def of(self, tile: SSAValue) -> _Scale | None:
        """None if a tile is no multiple."""
        if tile not in self.carried.reached:
            return _NONE
        op = tile.owner
        if isinstance(op, Exp2Op | ExpOp | SteepExpOp):
            return self._of_exponential(op)
        if isinstance(op, CastOp | NegOp) or (isinstance(op, ClipOp) and op.constant == 0):
            return self.of(op.operands[0])
        if isinstance(op, BroadcastOp):
            return _moved(self.of(op.tile), list(op.positions))
        if isinstance(op, TransposeOp):
            return _moved(self.of(op.tile), (1, 0))
        if isinstance(op, RowSumOp):
            found = self.of(op.tile)
            return None if found is None or tile_type(op.tile).rank - 1 in found.axes else found
        if isinstance(op, MulOp | DivOp):
            return self._of_product(op.lhs, op.rhs, isinstance(op, DivOp))
        if isinstance(op, AddOp | SubOp):
            left, right = self.of(op.lhs), self.of(op.rhs)
            return left if left == right else None
        if isinstance(op, SelectOp):
            return self._of_choice(op)
        return self._of_matmul(op) if isinstance(op, MmaOp) else None

    def _of_exponential(self, op: Exp2Op | ExpOp | SteepExpOp) -> _Scale | None:
        term, tile = self.grown.term, op.tile
        if _EXPONENTIALS[type(op)] is not self.grown.function:
            return None
        found = self.carried.exponent(tile, tuple(range(tile_type(tile).rank)), (term.value,))
        if found is None or len(found.terms) != 1:
            return None
        (one,) = found.terms
        return _Scale(1, one.axes) if (one.sign, one.factors) == (term.sign, term.factors) else None

    def _of_product(self, left: SSAValue, right: SSAValue, divided: bool) -> _Scale | None:
        scales = self.of(left), self.of(right)
        if scales[1] == _NONE:
            return scales[0]
        return scales[1] if scales[0] == _NONE and not divided else None

    def _of_choice(self, op: SelectOp) -> _Scale | None:
        if op.condition in self.carried.reached:
            return None
        found = {self.of(tile) for tile in (op.lhs, op.rhs) if not _is_zero(tile)}
        return found.pop() if len(found) == 1 else None

    def _of_product_of(self, op: MmaOp) -> _Scale | None:
        found = self._of_product(op.a, op.b, divided=False)
        summed = 1 if self.of(op.b) == _NONE else 0
        return None if found is None or summed in found.axes else found

    def _of_matmul(self, op: MmaOp) -> _Scale | None:
        found = self._of_product_of(op)
        return found if _is_zero(op.acc) or self.of(op.acc) == found else None


def _is_zero(tile: SSAValue) -> bool:
    return isinstance(tile.owner, FullOp) and tile.owner.constant == 0


def _moved(scale: _Scale | None, to: Sequence[int]) -> _Scale | None:
    return scale and _Scale(scale.power, tuple(to[axis] for axis in scale.axes))


def _product(
    value: SSAValue, argument: SSAValue, reached: set[SSAValue]
) -> tuple[SSAValue, list[SSAValue | MmaOp]] | None:
    """By what an iteration multiplies a value that is carried, and what it adds then; None if it does otherwise."""
    added: list[SSAValue | MmaOp] = []
    while not isinstance(value.owner, MulOp):
        op = value.owner
        ways = [operand for operand in op.operands if operand in reached] if isinstance(op, AddOp | MmaOp) else []
        if len(ways) != 1 or (isinstance(op, MmaOp) and ways[0] is not op.acc):
            return None
        assert isinstance(op, AddOp | MmaOp)
        added += [op] if isinstance(op, MmaOp) else [one for one in op.operands if one is not ways[0]]
        value = ways[0]
    factors = [operand for operand in value.owner.operands if operand is not argument]
    return (factors[0], added) if len(factors) == 1 and factors[0] not in reached else None


def _reached(loop: scf.ForOp, values: Sequence[SSAValue]) -> set[SSAValue]:
    """What is computed of values in a loop, with these."""
    found, todo = set[SSAValue](), list(values)
    while todo:
        value = todo.pop()
        if value in found:
            continue
        found.add(value)
        for use in value.uses:
            around = (use.operation, *ancestors(use.operation))
            for op in takewhile(lambda one: one is not loop, around):
                todo += op.results
    return found
