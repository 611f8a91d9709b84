"""What an error leaves uncertain: conditions that may come out otherwise, integers that may be others.

Operands without an error give results without one: integers and exact floats compare as they do in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from pkc.dialect import elementwise, ranges, tile
from pkc.dialect.error_bounds import Binary, Bound, Rule, Unary, at_most, broadcast, clip, kept, total, transpose
from pkc.dialect.numeric import Values, float_to_int
from pkc.dialect.ranges import Bounded, Ends, Error
from pkc.dialect.types import FLOATS, i1, i32

Maker: TypeAlias = Callable[[Any], Bound]

_ANY_INTEGER = 2.0**32
"""The error of an integer of which nothing is known."""


def _by_rule(rule: Callable[[Any], Rule]) -> Maker:
    """Results without an error, if no operand has one; else by the rule."""

    def bound(op: Any) -> Bound:
        found = rule(op)

        def of(value: Values, *operands: Any) -> Bounded:
            if all(not isinstance(operand, Bounded) or operand.error is None for operand in operands):
                return Bounded(value, None, True)
            error = found(value, *operands)
            return Bounded(value, error if error is not None and error.any() else None, True)

        return of

    return bound


# Conditions


def _compare(op: elementwise.CompareOp) -> Binary:
    if tile.tile_type(op.lhs).element_type == i1:
        return _either_uncertain

    def rule(value: Values, a: Bounded, b: Bounded) -> Error:
        left, right = ranges.ends(a), ranges.ends(b)
        apart = (left.high < right.low) | (right.high < left.low)
        return ~(apart | (_sure(a) & _sure(b)))

    return rule


def _sure(x: Bounded) -> Values:
    return np.ones((), np.bool_) if x.error is None else x.error == 0


def _either_uncertain(value: Values, a: Bounded, b: Bounded) -> Error:
    return _flags(a) | _flags(b)


def _and(op: elementwise.AndOp) -> Binary:
    # One that is sure to be false settles it.
    return lambda value, a, b: (_flags(a) & (b.value | _flags(b))) | (_flags(b) & (a.value | _flags(a)))


def _or(op: elementwise.OrOp) -> Binary:
    return lambda value, a, b: (_flags(a) & (~b.value | _flags(b))) | (_flags(b) & (~a.value | _flags(a)))


def _flags(x: Bounded) -> Values:
    return np.zeros((), np.bool_) if x.error is None else x.error


def chosen(op: elementwise.SelectOp) -> Bound:
    """Of a choice: the error of what is chosen; where the condition is uncertain, all that both may be."""
    is_float = tile.tile_type(op.result).element_type in FLOATS

    def bound(value: Values, condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
        error = None
        if a.error is not None or b.error is not None:
            error = np.where(condition.value, _or_zero(a), _or_zero(b))
        if condition.error is not None:
            value, error = _either(value, error, condition.error, a, b)
        if error is not None and not error.any():
            error = None
        return Bounded(value, error, not is_float or ranges.within(value, error))

    return bound


def _either(value: Values, error: Error, where: Values, a: Bounded, b: Bounded) -> tuple[Values, Error]:
    if value.dtype == np.bool_:
        certain = np.zeros(value.shape, np.bool_) if error is None else error
        return value, np.where(where, (a.value != b.value) | _flags(a) | _flags(b), certain)
    first, second = ranges.ends(a, where), ranges.ends(b, where)
    low, high = np.minimum(first.low, second.low), np.maximum(first.high, second.high)
    # Both may be NaN only where neither end is a number.
    sure = np.zeros(low.shape, np.bool_)
    found = ranges.enclosed(np.asarray(value, np.float64)[where], Ends(low, high), sure, np.isnan(low) | np.isnan(high))
    values, errors = np.array(value), np.zeros(value.shape) if error is None else np.array(error)
    values[where], errors[where] = found.value, found.error
    return values, errors


def _or_zero(x: Bounded) -> Values | float:
    return 0.0 if x.error is None else x.error


# Integers


def _to_integer(op: tile.CastOp) -> Unary:
    source = tile.tile_type(op.tile).element_type
    if source == i32:
        return kept(op)
    if source == i1:
        return lambda value, a: _flags(a).astype(np.float64)

    def rule(value: Values, a: Bounded) -> Error:
        low, high = (float_to_int(end).astype(np.float64) for end in ranges.ends(a))
        return np.where(_or_zero(a) == np.inf, _ANY_INTEGER, np.maximum(high - value, value - low))

    return rule


def _wrapping(rule: Callable[[Bounded, Bounded], Error]) -> Callable[[Any], Binary]:
    """The rule, unless the integer may be beyond the last one and so at the other end."""

    def wrapping(value: Values, a: Bounded, b: Bounded) -> Error:
        error = rule(a, b)
        assert error is not None
        wraps = (error > 0) & (np.abs(value.astype(np.float64)) + error >= 2.0**31)
        return np.where(wraps, _ANY_INTEGER, error)

    return lambda op: wrapping


def _product(a: Bounded, b: Bounded) -> Error:
    errors, others = _or_zero(a), _or_zero(b)
    return np.abs(a.value.astype(np.float64)) * others + np.abs(b.value.astype(np.float64)) * errors + errors * others


def _anything(value: Values, a: Bounded, b: Bounded) -> Error:
    return np.where((_or_zero(a) != 0) | (_or_zero(b) != 0), _ANY_INTEGER, np.zeros(value.shape))


def _greatest(op: Operation) -> Binary:
    return lambda value, a, b: at_most(a.error, b.error)


def _row_max(op: Operation) -> Unary:
    return lambda value, a: None if a.error is None else a.error.max(axis=-1)


def _row_sum(op: Operation) -> Unary:
    return lambda value, a: None if a.error is None else a.error.sum(axis=-1)


def _sum(a: Bounded, b: Bounded) -> Error:
    return total(a.error, b.error)


_SUM = _by_rule(_wrapping(_sum))

UNCERTAIN: dict[type[Operation], Maker] = {
    tile.BroadcastOp: _by_rule(broadcast),
    tile.TransposeOp: _by_rule(transpose),
    tile.ClipOp: _by_rule(clip),
    elementwise.NotOp: _by_rule(kept),
    elementwise.NegOp: _by_rule(kept),
    elementwise.AbsOp: _by_rule(kept),
    elementwise.CompareOp: _by_rule(_compare),
    elementwise.AndOp: _by_rule(_and),
    elementwise.OrOp: _by_rule(_or),
    elementwise.SelectOp: chosen,
    tile.CastOp: _by_rule(_to_integer),
    elementwise.AddOp: _SUM,
    elementwise.SubOp: _SUM,
    elementwise.MulOp: _by_rule(_wrapping(_product)),
    elementwise.FloorDivOp: _by_rule(lambda op: _anything),
    elementwise.ModOp: _by_rule(lambda op: _anything),
    elementwise.MaxOp: _by_rule(_greatest),
    elementwise.MinOp: _by_rule(_greatest),
    tile.RowMaxOp: _by_rule(_row_max),
    tile.RowSumOp: _by_rule(_row_sum),
}
"""Where the result is of conditions or integers. Operations without a rule make exact values."""
