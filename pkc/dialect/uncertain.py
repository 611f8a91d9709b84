"""The error of conditions and integers: a condition may come out otherwise, an integer may be another one.

Exact operands give exact results: integers and exact floats compare as they do in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pkc.dialect import ranges, tile
from pkc.dialect.error_bounds import Binary, Bound, Rule, Unary, greatest_rule, kept, total
from pkc.dialect.numeric import Values, as_integer
from pkc.dialect.ranges import Bounded, Ends, Error
from pkc.dialect.types import INTEGERS, i1

_ANY_INTEGER = 2.0**32
"""The error of an integer of which nothing is known."""


def unless_exact(rule: Rule) -> Bound:
    """A bound without an error, if no operand has one; otherwise by the rule."""

    def bound(value: Values, *operands: Any) -> Bounded:
        if all(not isinstance(operand, Bounded) or operand.error is None for operand in operands):
            return Bounded(value, None, True)
        error = rule(value, *operands)
        return Bounded(value, error if error is not None and error.any() else None, True)

    return bound


# Conditions


def _compare_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    if a.value.dtype == np.bool_:
        return _flags(a) | _flags(b)
    left, right = ranges.ends(a), ranges.ends(b)
    disjoint = (left.high < right.low) | (right.high < left.low)
    return ~(disjoint | (_sure(a) & _sure(b)))


def _compare_with_greatest_rule(value: Values, a: Bounded, greatest: Bounded) -> Error:
    """Of elements with the greatest, or least, of their row: the only one that may be it is equal to it."""
    left, right = ranges.ends(a), ranges.ends(greatest)
    may_be = (left.high >= right.low) & (left.low <= right.high)
    only = may_be & (may_be.sum(axis=-1, keepdims=True) == 1)
    return np.asarray(_compare_rule(value, a, greatest)) & ~only


def _greatest_compared_rule(value: Values, greatest: Bounded, a: Bounded) -> Error:
    return _compare_with_greatest_rule(value, a, greatest)


def _sure(x: Bounded) -> Values:
    return np.ones((), np.bool_) if x.error is None else x.error == 0


def _and_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    # One that is sure to be false settles it.
    return (_flags(a) & (b.value | _flags(b))) | (_flags(b) & (a.value | _flags(a)))


def _or_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    return (_flags(a) & (~b.value | _flags(b))) | (_flags(b) & (~a.value | _flags(a)))


def _flags(x: Bounded) -> Values:
    return np.zeros((), np.bool_) if x.error is None else x.error


def chosen(value: Values, condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """The bound of `where`: that of the selected operand; where the condition is uncertain, it covers both."""
    error = None
    if a.error is not None or b.error is not None:
        error = np.where(condition.value, _or_zero(a), _or_zero(b))
    if condition.error is not None:
        value, error = _either(value, error, condition.error, a, b)
    if error is not None and not error.any():
        error = None
    return Bounded(value, error, value.dtype.kind != "f" or ranges.within(value, error))


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


def to_integer(op: tile.CastOp) -> Bound:
    """The bound of a cast to integers."""
    return unless_exact(_cast_rule(op))


def _cast_rule(op: tile.CastOp) -> Unary:
    source, target = (tile.tile_type(value).element_type for value in (op.tile, op.result))
    if source in INTEGERS:
        return kept
    if source == i1:
        return lambda value, a: _flags(a).astype(np.float64)

    def rule(value: Values, a: Bounded) -> Error:
        low, high = (as_integer(end, target).astype(np.float64) for end in ranges.ends(a))
        return np.where(_or_zero(a) == np.inf, _ANY_INTEGER, np.maximum(high - value, value - low))

    return rule


def _wrapping(rule: Callable[[Bounded, Bounded], Error]) -> Binary:
    """The rule, unless the integer may overflow and wrap around."""

    def wrapping(value: Values, a: Bounded, b: Bounded) -> Error:
        error = rule(a, b)
        assert error is not None
        wraps = (error > 0) & (np.abs(value.astype(np.float64)) + error >= 2.0**31)
        return np.where(wraps, _ANY_INTEGER, error)

    return wrapping


def _product_rule(a: Bounded, b: Bounded) -> Error:
    errors, others = _or_zero(a), _or_zero(b)
    return np.abs(a.value.astype(np.float64)) * others + np.abs(b.value.astype(np.float64)) * errors + errors * others


def _sum_rule(a: Bounded, b: Bounded) -> Error:
    return total(a.error, b.error)


def _any_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    return np.where((_or_zero(a) != 0) | (_or_zero(b) != 0), _ANY_INTEGER, np.zeros(value.shape))


def _greatest_of_row_rule(value: Values, a: Bounded) -> Error:
    return None if a.error is None else a.error.max(axis=-1)


def _sum_of_row_rule(value: Values, a: Bounded) -> Error:
    return None if a.error is None else a.error.sum(axis=-1)


def _sum_along_row_rule(value: Values, a: Bounded) -> Error:
    return None if a.error is None else a.error.cumsum(axis=-1)


KEPT = unless_exact(kept)
COMPARED = unless_exact(_compare_rule)
COMPARED_WITH_GREATEST = unless_exact(_compare_with_greatest_rule)
GREATEST_COMPARED = unless_exact(_greatest_compared_rule)
BOTH = unless_exact(_and_rule)
EITHER = unless_exact(_or_rule)
SUM = unless_exact(_wrapping(_sum_rule))
PRODUCT = unless_exact(_wrapping(_product_rule))
ANYTHING = unless_exact(_any_rule)
"""The bound of a quotient or remainder: unlimited, unless both operands are exact."""

GREATEST = unless_exact(greatest_rule)
GREATEST_OF_ROW = unless_exact(_greatest_of_row_rule)
SUM_OF_ROW = unless_exact(_sum_of_row_rule)
SUM_ALONG_ROW = unless_exact(_sum_along_row_rule)
