"""The pass `pk-simplify-arithmetic`."""

from __future__ import annotations

import math
from collections.abc import Set

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import Rewriter

from pkc.dialect.elementwise import AddOp, DivOp, ErfOp, ExpOp, MulOp, SteepExpOp, StepErfOp, StepTanhOp, SubOp, TanhOp
from pkc.dialect.reductions import RowMaxOp, RowSumOp
from pkc.dialect.tile import BroadcastOp, CastOp, FullOp, tile_type
from pkc.dialect.types import dtype_bytes, f32
from pkc.passes.canonicalize import located_walker


class SimplifyArithmetic(ModulePass):
    """Write arithmetic on tiles with fewer operations: results are rounded elsewhere, as far as the language lets them.

    Before, where %h is 0.5 and %one is 1:

        %t = pk.tanh %x : !pk.tile<128x256xf32>
        %s = pk.add %one, %t : !pk.tile<128x256xf32>
        %u = pk.mul %h, %x : !pk.tile<128x256xf32>
        %g = pk.mul %u, %s : !pk.tile<128x256xf32>

    After:

        %t = pk.step_tanh %x : !pk.tile<128x256xf32>
        %g = pk.mul %x, %t : !pk.tile<128x256xf32>

    Before, where only a sum over the rows and results that are rounded to 16 bits need %e:

        %d = pk.sub %x, %top : !pk.tile<4x8192xf32>
        %e = pk.exp %d : !pk.tile<4x8192xf32>

    After, where %top is the maximum of each row of %x:

        %d = pk.sub %x, %top : !pk.tile<4x8192xf32>
        %e = pk.steep_exp %d : !pk.tile<4x8192xf32>

    At the tile level alone, whose bits the levels below keep.
    """

    name = "pk-simplify-arithmetic"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = GreedyRewritePatternApplier([Steps(), FoldPowersOfTwo()], ctx=ctx)
        located_walker(patterns, clean=True).rewrite_module(op)
        _steepen(op)


_STEPS: dict[type[Operation], type[StepTanhOp | StepErfOp]] = {TanhOp: StepTanhOp, ErfOp: StepErfOp}
"""Functions that rise from -1 to 1, and those that rise with them from 0 to 1."""


class Steps(RewritePattern):
    """1 + tanh(x) or 1 + erf(x), and a power of two times that, by a step from 0 to 1, which is cheaper and loses
    nothing where tanh is near -1: GELUs."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        for number, other in ((_constant(op.lhs), op.rhs), (_constant(op.rhs), op.lhs)):
            if number is None or not _is_power_of_two(number) or not other.has_one_use():
                continue
            factor, risen = (1.0, other) if isinstance(other.owner, TanhOp | ErfOp) else _factor(other)
            if factor != number or risen is None or not risen.has_one_use():
                continue
            if isinstance(risen.owner, TanhOp | ErfOp):
                made: list[Operation] = [_STEPS[type(risen.owner)](risen.owner.tile)]
                if number != 0.5:
                    made.append(FullOp(2 * number, tile_type(op.result)))
                    made.append(MulOp(made[1], made[0]))
                rewriter.replace(op, made)
                return


def _steepen(module: ModuleOp) -> None:
    """Compute e to the power x - rowmax(x), as in a softmax, by one power of two: two instructions, not nine.

    That is off by |x - rowmax(x)| ulp more: of a sum of n such by ln n ulp at most, and rounding to 16 bits hides it.
    """
    hidden: set[SSAValue] = set()  # what is only added up over rows, or multiplied and then rounded to 16 bits or fewer
    for op in reversed(list(module.walk())):  # users first
        if not isinstance(op, ExpOp | MulOp | DivOp) or not all(_hides(use, hidden) for use in op.result.uses):
            continue
        hidden.add(op.result)
        if isinstance(op, ExpOp) and _is_below_maximum(op.tile):
            Rewriter.replace_op(op, SteepExpOp(op.tile))


def _hides(use: Use, hidden: Set[SSAValue]) -> bool:
    """Whether few more ulps of a tile are not seen in what a user of it makes of it."""
    user = use.operation
    if isinstance(user, CastOp):
        return dtype_bytes(tile_type(user.result).element_type) < dtype_bytes(f32)
    if isinstance(user, MulOp) or (isinstance(user, DivOp) and use.index == 0):
        return user.result in hidden
    return isinstance(user, RowSumOp)


def _is_below_maximum(tile: SSAValue) -> bool:
    """Whether a tile is another one minus the maximum of each of its rows."""
    if not isinstance(tile.owner, SubOp) or not isinstance(tile.owner.rhs.owner, BroadcastOp):
        return False
    greatest = tile.owner.rhs.owner.tile.owner
    return isinstance(greatest, RowMaxOp) and greatest.tile is tile.owner.lhs


class FoldPowersOfTwo(RewritePattern):
    """A product of constants is one constant where one of them is a power of two, whose multiplication is exact; 1 is
    left out.

    (a x) (b y) is (a b) (x y), and a (b x) is (a b) x.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulOp, rewriter: PatternRewriter) -> None:
        if tile_type(op.result).element_type != f32:
            return
        (first, x), (second, y) = (_factor(side) for side in op.operands)
        if first is None or second is None or not (_is_power_of_two(first) or _is_power_of_two(second)):
            return
        made: list[Operation] = []
        rest = x if y is None else y
        if x is not None and y is not None:
            made.append(MulOp(x, y))
            rest = made[-1].results[0]
        if rest is None:
            return
        if first * second != 1.0:
            constant = FullOp(first * second, tile_type(op.result))
            made += [constant, MulOp(constant, rest)]
        rewriter.replace(op, made, None if made else (rest,))


def _factor(tile: SSAValue) -> tuple[float | None, SSAValue | None]:
    """A constant, and what it multiplies: nothing if the tile is that constant; no constant if it is no such product
    that is used once."""
    if (alone := _constant(tile)) is not None:
        return alone, None
    if isinstance(tile.owner, MulOp) and tile.has_one_use():
        for one, other in (tile.owner.operands, tile.owner.operands[::-1]):
            if (found := _constant(one)) is not None:
                return found, other
    return None, None


def _is_power_of_two(number: float) -> bool:
    return abs(math.frexp(number)[0]) == 0.5


def _constant(tile: SSAValue) -> float | None:
    """What each element of an f32 tile is, if that is a constant."""
    full = tile.owner
    return float(full.constant) if isinstance(full, FullOp) and tile_type(tile).element_type == f32 else None
