"""The error of reductions and matmuls, in which many elements make one. Single elements: `error_bounds.py`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pkc.dialect import ranges, tile
from pkc.dialect.error_bounds import Bound
from pkc.dialect.numeric import NORMAL, TF32_UNIT, UNIT, Values
from pkc.dialect.ranges import MOST, Bounded, Ends, Error
from pkc.dialect.types import dtype_bytes, f32

MMA_UNIT = 2 * UNIT
"""The relative error of one addition in an MMA: tensor cores truncate instead of rounding."""

NARROW_MMA_UNIT = 2.0**-13
"""The relative error of one addition in an MMA of 8-bit floats: tensor cores keep 13 bits behind the leading one."""

_BIG = 1e150
"""Stands for an infinity, so that zero times it is zero."""


def greatest_of_row(reduce: Callable[..., Values]) -> Bound:
    """The bound of the greatest, or least, of a row: `reduce` along an axis."""

    def bound(value: Values, a: Bounded) -> Bounded:
        if a.ordinary and a.error is None:
            return Bounded(value, None, True)
        low, high = ranges.ends(a)
        return _of_rows(value, a, Ends(reduce(low, axis=-1), reduce(high, axis=-1)))

    return bound


def sum_of_row(value: Values, a: Bounded) -> Bounded:
    # In any order, each element goes through fewer additions than there are elements.
    unit = a.value.shape[-1] * UNIT
    sizes = np.abs(a.value).sum(axis=-1)
    errors = None if a.error is None else a.error.sum(axis=-1) * (1 + unit)
    error = sizes * unit if errors is None else sizes * unit + errors
    if a.ordinary and ranges.within(sizes, error):
        return Bounded(value, error, True)
    low, high = ranges.ends(a)
    ups, downs = np.maximum(high, 0.0).sum(axis=-1), np.maximum(-low, 0.0).sum(axis=-1)
    loss = ups * unit + downs * unit
    loss = np.where(np.isfinite(loss), loss, 0.0)
    found = Ends(low.sum(axis=-1) - loss, high.sum(axis=-1) + loss)
    return _of_rows(value, a, ranges.summed(found, ups + loss, downs + loss))


def sum_along_row(value: Values, a: Bounded) -> Bounded:
    """The bound of the sums of each element and those before it, in any order."""
    unit, sizes = _up_to(np.full(a.value.shape[-1:], UNIT)), _up_to(np.abs(a.value))
    error: Values = sizes * unit
    if a.error is not None:
        error = error + _up_to(a.error) * (1 + unit)
    if a.ordinary and ranges.within(sizes, error):
        return Bounded(value, error, True)
    low, high = ranges.ends(a)
    ups, downs = _up_to(np.maximum(high, 0.0)), _up_to(np.maximum(-low, 0.0))
    loss: Values = (ups + downs) * unit
    loss = np.where(np.isfinite(loss), loss, 0.0)
    found = ranges.summed(Ends(_up_to(low) - loss, _up_to(high) + loss), ups + loss, downs + loss)
    errors = np.zeros(value.shape) if a.error is None else a.error
    sure = np.logical_and.accumulate(errors == 0, axis=-1)
    return _enclosed(value, found, sure, np.logical_or.accumulate(np.isinf(errors), axis=-1))


def _up_to(x: Values) -> Values:
    return np.cumsum(x, axis=-1)


def _of_rows(value: Values, a: Bounded, found: Ends) -> Bounded:
    errors = np.zeros((1,)) if a.error is None else a.error
    sure, unknown = np.asarray((errors == 0).all(axis=-1)), np.asarray(np.isinf(errors).any(axis=-1))
    return _enclosed(value, found, sure, unknown)


def _enclosed(value: Values, found: Ends, sure: Values, unknown: Values) -> Bounded:
    made = ranges.enclosed(value, found, sure, unknown)
    assert made.error is not None
    return Bounded(made.value, made.error, ranges.within(made.value, made.error))


def mma_terms(op: tile.AnyMmaOp) -> tuple[int, float]:
    """How many additions an MMA makes to an element, and the relative error of each."""
    left = tile.tile_type(op.a)
    return left.shape[1], NARROW_MMA_UNIT if dtype_bytes(left.element_type) == 1 else MMA_UNIT


def mma_factor(op: tile.AnyMmaOp, x: Bounded) -> Bounded:
    """An operand as an MMA multiplies it: f32 is cut to tf32."""
    if tile.tile_type(op.a).element_type != f32:
        return x
    sizes = np.abs(x.value) + _or_zero(x.error)
    lost = np.where(np.isfinite(sizes) & (sizes > 0), sizes * TF32_UNIT + NORMAL, 0.0)
    return Bounded(x.value, lost if x.error is None else x.error + lost, x.ordinary)


def mma_sizes(a: Bounded, b: Bounded, acc: Bounded) -> Values:
    """What no partial sum of an MMA exceeds."""
    # |a| @ |b| is at most the norm of a's row times that of b's column: no second matmul.
    rows = np.sqrt(np.einsum("ij,ij->i", a.value, a.value))
    columns = np.sqrt(np.einsum("ij,ij->j", b.value, b.value))
    sizes = np.abs(acc.value)
    sizes += np.outer(rows, columns)
    return sizes


def mma_operands(a: Bounded, b: Bounded) -> Error:
    """What the errors of the factors of an MMA grow to."""
    error: Error = None
    if a.error is not None:
        error = _matmul(a.error, np.abs(b.value) + _or_zero(b.error))
    if b.error is not None:
        grown = _matmul(np.abs(a.value), b.error)
        error = grown if error is None else error + grown
    return error


def mma(op: tile.AnyMmaOp) -> Bound:
    count, each = mma_terms(op)
    unit = count * each

    def bound(value: Values, a: Bounded, b: Bounded, acc: Bounded) -> Bounded:
        a, b = mma_factor(op, a), mma_factor(op, b)
        error = mma_sizes(a, b, acc)
        error *= unit
        if acc.error is not None:
            error += acc.error
        operands = mma_operands(a, b)
        if operands is not None:
            error += operands
        # The error is at least `unit` times what any partial sum can reach.
        ordinary = a.ordinary and b.ordinary and acc.ordinary
        if ordinary and error.max() <= MOST / 2 * unit:
            return Bounded(value, error, True)
        return _careful_mma(value, error, a, b, acc)

    return bound


def _careful_mma(value: Values, error: Values, a: Bounded, b: Bounded, acc: Bounded) -> Bounded:
    """On intervals: the products that may be positive and those that may be negative are added up separately."""
    left, right, first = _sizes_by_sign(a), _sizes_by_sign(b), ranges.ends(acc)
    # Rounding and what the operands' errors give are in the error.
    spread = np.where(np.isfinite(error), error, 0.0)
    ups = left.high @ right.high + left.low @ right.low + np.maximum(first.high, 0.0) + spread
    downs = left.high @ right.low + left.low @ right.high + np.maximum(-first.low, 0.0) + spread
    accumulated = np.zeros(value.shape) if acc.error is None else acc.error
    safe = (a.ordinary and b.ordinary) or (ranges.exact(a) and ranges.exact(b))
    sure = (accumulated == 0) & safe
    # An infinity comes from exact operands, or it says nothing.
    infinite = ~np.isfinite(value)
    low = np.where(infinite, np.where(sure, value, -np.inf), value - error)
    high = np.where(infinite, np.where(sure, value, np.inf), value + error)
    unknown = np.asarray(~sure & (np.isinf(accumulated) | infinite | np.isnan(error)))
    made = ranges.enclosed(value, ranges.summed(Ends(low, high), ups, downs), sure & infinite, unknown)
    assert made.error is not None
    return Bounded(made.value, made.error, ranges.within(made.value, made.error))


def _sizes_by_sign(x: Bounded) -> Ends:
    """How large the negative and the positive elements may be; zero for those of the other sign."""
    low, high = ranges.ends(x)
    return Ends(np.clip(-low, 0.0, _BIG), np.clip(high, 0.0, _BIG))


def _matmul(a: Values, b: Values) -> Values:
    """A matmul of errors, in f32, a little enlarged to make up for its rounding."""
    return (a.astype(np.float32) @ b.astype(np.float32)) * 1.001


def _or_zero(error: Values | None) -> Values | float:
    return 0.0 if error is None else error
