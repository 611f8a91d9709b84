"""How far a program's f32 value may be from the real one: a running error analysis, one rule for each operation.

A rule gets the real result and the operands, each with its own error, and gives the error of the result: what the
operands' errors grow to, and the operation's own rounding. It holds for numbers in the range of f32; what may lie
beyond is worked out by `ranges.py`. Reductions and products are in `reduction_bounds.py`, conditions and integers in
`uncertain.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation

from pkc.dialect import elementwise, ranges, tile
from pkc.dialect.blocks import Block
from pkc.dialect.numeric import FORMATS, LEAST, UNIT, Values, int_to_float, round_to
from pkc.dialect.ranges import LARGEST, MOST, Bounded, Corners, Ends, Error
from pkc.dialect.types import FLOATS, f32, i1, i32

Rule: TypeAlias = Callable[..., Error]
Unary: TypeAlias = Callable[[Values, Bounded], Error]
Binary: TypeAlias = Callable[[Values, Bounded, Bounded], Error]
Bound: TypeAlias = Callable[..., Bounded]
"""From the result and the operands to the result with its error."""

FUNCTION = 8 * UNIT
"""Of the functions and `/`, which are accurate to 4 units in the last place."""

STEP = 4 * LEAST
"""Of the same, below the normal numbers."""


def by_rule(rule: Rule, corners: Corners, limit: float = MOST) -> Bound:
    """The rule as long as all is in the range of a type, else intervals."""

    def bound(value: Values, *operands: Bounded) -> Bounded:
        error = rule(value, *operands)
        if all(operand.ordinary for operand in operands) and ranges.within(value, error, limit):
            return Bounded(value, error, True)
        return ranges.careful(value, error, operands, corners, limit)

    return bound


def rounded(value: Values, error: Error, unit: float, step: float = 0.0) -> Values:
    """The error after one more rounding of a value."""
    size = np.abs(value)
    if error is not None:
        size += error
    size *= unit
    size += step
    if error is not None:
        size += error
    return size


def total(*errors: Error) -> Error:
    """The sum of errors."""
    known = [error for error in errors if error is not None]
    return functools.reduce(np.add, known) if known else None


def at_most(a: Error, b: Error) -> Error:
    """The greater of two errors."""
    if a is None or b is None:
        return b if a is None else a
    return np.maximum(a, b)


def _once_rounded(value: Values, error: Error, step: float) -> Error:
    """The error of a result that is the nearest f32; of exact operands it is known."""
    return rounded(value, error, UNIT, step) if error is not None else _lost(value, value.astype(np.float32))


def _lost(value: Values, program: Values) -> Error:
    lost = np.abs(value - program)
    return lost if lost.any() else None


# Shapes


def broadcast(op: tile.BroadcastOp) -> Unary:
    shape, axes = tile.tile_type(op.result).shape, op.positions
    order = tuple(int(i) for i in np.argsort(axes))
    kept = tuple(extent if axis in axes else 1 for axis, extent in enumerate(shape))

    def rule(value: Values, a: Bounded) -> Error:
        return None if a.error is None else np.broadcast_to(np.transpose(a.error, order).reshape(kept), shape)

    return rule


def transpose(op: tile.TransposeOp) -> Unary:
    return lambda value, a: None if a.error is None else a.error.T


def clip(op: tile.ClipOp) -> Rule:
    axis = int(op.axis.value.data)

    def rule(value: Values, a: Bounded, block: Block) -> Error:
        if a.error is None or block.length >= value.shape[axis]:
            return a.error
        error = np.array(a.error)
        error[(*(slice(None),) * axis, slice(block.length, None))] = 0
        return error

    return rule


def kept(op: Operation) -> Unary:
    return lambda value, a: a.error


def _same_elements(rule: Callable[[Any], Rule]) -> Callable[[Any], Bound]:
    """For operations that move elements, or change their signs."""

    def bound(op: Any) -> Bound:
        found = rule(op)
        finite = not isinstance(op, tile.ClipOp) or bool(np.isfinite(op.constant))

        def of(value: Values, a: Bounded, *rest: Block) -> Bounded:
            return Bounded(value, found(value, a, *rest), a.ordinary and finite)

        return of

    return bound


# Types


def _cast(op: tile.CastOp) -> Bound:
    source, target = tile.tile_type(op.tile).element_type, tile.tile_type(op.result).element_type
    if source == target or (target == f32 and source in FLOATS):
        return _unchanged
    if source == i1:
        return _of_condition
    return narrowing(source, target)


def _unchanged(value: Values, a: Bounded) -> Bounded:
    return Bounded(value, a.error, a.ordinary)


def _of_condition(value: Values, a: Bounded) -> Bounded:
    return Bounded(value, None if a.error is None else a.error.astype(np.float64), True)


def narrowing(source: Attribute, target: Attribute) -> Bound:
    """Of a rounding to a type."""
    form = FORMATS[target]

    def rule(value: Values, a: Bounded) -> Error:
        if a.error is not None:
            return rounded(value, a.error, form.unit, form.half_step)
        held = int_to_float(a.value, target) if source == i32 else round_to(a.value.astype(np.float32), target)
        return _lost(value, held)

    def corners(a: Ends) -> Ends:
        return ranges.nearest(a, target)

    return by_rule(rule, corners, LARGEST[target])


# Arithmetic and functions


def _sum_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    return _once_rounded(value, total(a.error, b.error), 0.0)


def _product_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    parts: list[Error] = []
    if a.error is not None:
        parts.append(a.error * np.abs(b.value))
    if b.error is not None:
        parts.append(b.error * (np.abs(a.value) if a.error is None else np.abs(a.value) + a.error))
    return _once_rounded(value, total(*parts), LEAST / 2)


def _quotient_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    above = a.error
    below = np.abs(b.value)
    if b.error is not None:
        above = total(above, np.abs(value) * b.error)
        below = below - b.error
    grown = None if above is None else np.where(below > 0, above / below, np.inf)
    return rounded(value, grown, FUNCTION, STEP)


def _exponential(scale: float) -> Unary:
    def rule(value: Values, a: Bounded) -> Error:
        grown = None if a.error is None else value * np.expm1(scale * a.error)
        return rounded(value, grown, FUNCTION, STEP)

    return rule


def _log2_rule(value: Values, a: Bounded) -> Error:
    grown: Error = None
    if a.error is not None:
        grown = np.where(a.error < a.value, -np.log1p(-a.error / a.value) / np.log(2.0), np.inf)
    return rounded(value, grown, FUNCTION, STEP)


def _sqrt_rule(value: Values, a: Bounded) -> Error:
    if a.error is None:
        return rounded(value, None, FUNCTION, STEP)
    down = value - np.sqrt(np.maximum(a.value - a.error, 0.0))
    up = np.sqrt(np.abs(a.value) + a.error)
    # Near zero the way up is the longer one.
    grown = np.where(a.error > np.abs(a.value), up, down)
    return rounded(value, grown, FUNCTION, STEP)


def _greatest_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    return at_most(a.error, b.error)


def _accurate(found: Ends) -> Ends:
    return ranges.widened(found, FUNCTION, STEP)


def _quotient_corners(a: Ends, b: Ends) -> Ends:
    return ranges.quotient(a, b, FUNCTION, STEP)


def _function(rule: Rule, function: Callable[[Values], Values]) -> Bound:
    return by_rule(rule, ranges.rising(function, _accurate))


added = by_rule(_sum_rule, ranges.rising(np.add, ranges.nearest))
"""The sum of two f32."""

_DIFFERENCE = by_rule(_sum_rule, ranges.difference)
_PRODUCT = by_rule(_product_rule, ranges.product)
_QUOTIENT = by_rule(_quotient_rule, _quotient_corners)
_EXP = _function(_exponential(1.0), np.exp)
_EXP2 = _function(_exponential(float(np.log(2.0))), np.exp2)
_LOG2 = _function(_log2_rule, np.log2)
_SQRT = _function(_sqrt_rule, np.sqrt)
_MAX = by_rule(_greatest_rule, ranges.rising(np.maximum))
_MIN = by_rule(_greatest_rule, ranges.rising(np.minimum))


def _always(bound: Bound) -> Callable[[Any], Bound]:
    return lambda op: bound


BOUNDS: dict[type[Operation], Callable[[Any], Bound]] = {
    tile.BroadcastOp: _same_elements(broadcast),
    tile.TransposeOp: _same_elements(transpose),
    tile.ClipOp: _same_elements(clip),
    elementwise.NegOp: _same_elements(kept),
    elementwise.AbsOp: _same_elements(kept),
    tile.CastOp: _cast,
    elementwise.ExpOp: _always(_EXP),
    elementwise.Exp2Op: _always(_EXP2),
    elementwise.Log2Op: _always(_LOG2),
    elementwise.SqrtOp: _always(_SQRT),
    elementwise.AddOp: _always(added),
    elementwise.SubOp: _always(_DIFFERENCE),
    elementwise.MulOp: _always(_PRODUCT),
    elementwise.DivOp: _always(_QUOTIENT),
    elementwise.MaxOp: _always(_MAX),
    elementwise.MinOp: _always(_MIN),
}
"""Element by element, where the result is of floats. Operations without a rule make exact values."""
