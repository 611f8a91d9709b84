"""Values with a bound on the program's error, and the range of f32: overflow, underflow, infinities.

As long as every element is a number well inside the range, the rules of `error_bounds.py` are enough. Elsewhere an
operation is computed on the ends of the interval in which each operand lies, and the results are rounded as the program
rounds them: beyond the largest number to infinity, below the least one to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Attribute

from pkc.dialect.numeric import FORMATS, Values
from pkc.dialect.types import bf16, e4m3, e5m2, f16, f32, i8, i32

Error: TypeAlias = Values | None

LARGEST: dict[Attribute, float] = {
    f32: (2 - 2.0**-23) * 2.0**127,
    bf16: (2 - 2.0**-7) * 2.0**127,
    f16: 65504.0,
    e5m2: 57344.0,
    e4m3: 448.0,
}
"""The largest number of each float type."""

I32 = range(-(2**31), 2**31)
"""What an i32 holds, and a counter."""

INTEGER_RANGES: dict[Attribute, range] = {i32: I32, i8: range(-128, 128)}
"""What each integer type holds."""

MOST = LARGEST[f32]

FILLER = 2.0**50
"""From where on a number stands for what is left out, as -1e30 in a mask or where a maximum begins: it is not known by
its digits, but it has to cancel exactly."""


class Chain(NamedTuple):
    """What a probable error of a sum that may be added to consists of (`probable_bounds.py`): the greatest errors of
    its own roundings, added up, their squares, added up, and all other errors."""

    own: Values
    squares: Values
    rest: Error


class Bounded(NamedTuple):
    """A value and how far from it the program may be; no error means that it is the program's, in every element.

    A float or an integer is at most `error` away. Where the value is infinite, an error of 0 says that the program has
    that infinity, and another one that it has that infinity or any number of the same sign that is at least this large.
    An infinite error says that the program may have anything there, NaN included. The error of a condition is boolean:
    where it may come out otherwise. `ordinary`: every element is certain to be a number in the range of f32.
    """

    value: Values
    error: Error
    ordinary: bool = False
    chain: Chain | None = None


class Ends(NamedTuple):
    """The least and the greatest that the program may have."""

    low: Values
    high: Values


Corners: TypeAlias = Callable[..., Ends]


def within(value: Values, error: Error, limit: float = MOST) -> bool:
    """Whether all elements are certain to be numbers of at most this size."""
    if not value.size:
        return True
    # The greatest of anything with a NaN is NaN, which is not below the limit.
    reach = np.maximum(value.max(), -value.min())
    return bool((reach if error is None else reach + error.max()) <= limit)


def beyond(value: Values, error: Error, limit: float = MOST) -> Values:
    """Which elements may be infinite, NaN, or larger than the limit."""
    reach = np.abs(value)
    return np.asarray(~((reach if error is None else reach + error) <= limit))


def exact(x: Bounded) -> bool:
    """Whether every element is known to be exactly that of the program."""
    return x.error is None or not x.error.any()


def ends(x: Bounded, where: Values | None = None) -> Ends:
    """The ends of the intervals of all elements, or of those asked for."""
    value = np.asarray(x.value if where is None else np.asarray(x.value)[where], np.float64)
    if x.error is None:
        return Ends(value, value)
    error = np.asarray(x.error if where is None else np.asarray(x.error)[where])
    # Zero keeps its sign where nothing is added to it.
    low, high = np.where(error == 0, value, value - error), np.where(error == 0, value, value + error)
    open_up, open_down = (value == np.inf) & (error > 0), (value == -np.inf) & (error > 0)
    low, high = np.where(open_up, error, low), np.where(open_down, -error, high)
    unknown = np.isinf(error)
    return Ends(np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high))


def enclosed(value: Values, found: Ends, sure: Values, unknown: Values) -> Bounded:
    """From intervals back to values with errors; both ends are NaN where the program has NaN for sure.

    `sure` are results of exact operands, `unknown` those of operands of which nothing is known.
    """
    low, high = found
    numbers = np.isfinite(low) & np.isfinite(high)
    middle = np.where(np.isfinite(value), np.clip(value, low, high), low)
    error = np.where(numbers, np.maximum(high - middle, middle - low), np.inf)
    # An f64 of the error may have cut off what the ends lie further out.
    cut = numbers & ((middle + error < high) | (middle - error > low))
    error = np.where(cut, error + np.spacing(np.abs(middle) + error), error)
    up, down = (high == np.inf) & (low > 0), (low == -np.inf) & (high < 0)
    error = np.where(up, np.where(np.isinf(low), 0.0, low), error)
    error = np.where(down, np.where(np.isinf(high), 0.0, -high), error)
    result = np.where(up, np.inf, np.where(down, -np.inf, np.where(numbers, middle, 0.0)))
    undefined = (sure & np.isnan(value)) | (np.isnan(low) & np.isnan(high) & ~unknown)
    result, error = np.where(undefined, np.nan, result), np.where(undefined, 0.0, error)
    return Bounded(result, np.where(unknown & ~undefined, np.inf, error))


def careful(value: Values, error: Error, operands: Sequence[Bounded], corners: Corners, limit: float = MOST) -> Bounded:
    """The result of an element-wise operation, computed on intervals where the range of a type matters."""
    strange = beyond(value, error, limit)
    for operand in operands:
        strange |= beyond(operand.value, operand.error, limit)
    if not strange.any():
        return Bounded(value, error, True)
    sure = np.ones(int(strange.sum()), np.bool_)
    unknown = np.zeros_like(sure)
    for operand in operands:
        if operand.error is not None:
            errors = np.asarray(operand.error)[strange]
            sure &= errors == 0
            unknown |= np.isinf(errors)
    found = corners(*(ends(operand, strange) for operand in operands))
    return _replaced(value, error, strange, enclosed(np.asarray(value)[strange], found, sure, unknown))


def _replaced(value: Values, error: Error, strange: Values, computed: Bounded) -> Bounded:
    assert computed.error is not None
    values = np.array(value)
    errors = np.zeros(values.shape) if error is None else np.array(error)
    values[strange], errors[strange] = computed.value, computed.error
    return Bounded(values, errors if errors.any() else None, within(values, errors))


def nearest(found: Ends, element: Attribute = f32) -> Ends:
    """Both ends rounded to a type, as one operation rounds its result."""
    low, high = (np.asarray(end).astype(np.float32) for end in found)
    if element != f32:
        low, high = (end.astype(FORMATS[element].numpy) for end in (low, high))
    low, high = low.astype(np.float64), high.astype(np.float64)
    # In e4m3 both ends may be NaN with numbers between them.
    between = np.isnan(low) & np.isnan(high) & (found.low < 0) & (found.high > 0)
    return Ends(np.where(between, -np.inf, low), np.where(between, np.inf, high))


def widened(found: Ends, unit: float, step: Values | float) -> Ends:
    """Both ends moved outward by an error, but not over zero; infinities stay."""
    low, high = found
    below = low - _finite_or_zero(np.abs(low) * unit + step)
    above = high + _finite_or_zero(np.abs(high) * unit + step)
    below = np.where(low >= 0, np.maximum(below, 0.0), below)
    return nearest(Ends(below, np.where(high <= 0, np.minimum(above, 0.0), above)))


def _finite_or_zero(size: Values) -> Values:
    return np.where(np.isfinite(size), size, 0.0)


def summed(found: Ends, ups: Values, downs: Values) -> Ends:
    """The ends of a sum whose order is not defined, from the sums of what may be positive and what may be negative.

    A partial sum that overflows stays infinite, whatever is added.
    """
    low, high = nearest(found)
    return Ends(np.where(downs <= MOST, low, -np.inf), np.where(ups <= MOST, high, np.inf))


# Operations on intervals


def rising(function: Callable[..., Values], rounded: Callable[[Ends], Ends] | None = None) -> Corners:
    """For a function that grows with each operand."""

    def corners(*operands: Ends) -> Ends:
        found = Ends(function(*(x.low for x in operands)), function(*(x.high for x in operands)))
        return found if rounded is None else rounded(found)

    return corners


def difference(a: Ends, b: Ends) -> Ends:
    return nearest(Ends(a.low - b.high, a.high - b.low))


def product(a: Ends, b: Ends) -> Ends:
    found = _outermost(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
    # What is added to a product may get it before it is rounded: both are between the numbers of f32 around it.
    low, high = (end.astype(np.float32) for end in nearest(found))
    below, above = np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))
    low = np.where((found.low < low) & np.isfinite(low), below, low)
    high = np.where((found.high > high) & np.isfinite(high), above, high)
    return Ends(low.astype(np.float64), high.astype(np.float64))


def quotient(a: Ends, b: Ends, unit: float, step: float) -> Ends:
    found = _outermost(a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high)
    # A divisor that may be on either side of zero, or zero, leaves nothing certain.
    open_ = (b.low <= 0) & (b.high >= 0) & (b.low != b.high)
    return widened(Ends(np.where(open_, -np.inf, found.low), np.where(open_, np.inf, found.high)), unit, step)


def _outermost(*corners: Values) -> Ends:
    nans = np.isnan(corners)
    low, high = np.fmin.reduce(corners), np.fmax.reduce(corners)
    some = nans.any(axis=0) & ~nans.all(axis=0)
    return Ends(np.where(some, -np.inf, low), np.where(some, np.inf, high))
