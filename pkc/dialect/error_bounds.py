"""How far a program's f32 value may be from the real one: a running error analysis, one rule for each operation.

A rule gets the real result and the operands, each with its error, and gives the error of the result: what the errors of
the operands grow to, and the rounding of the operation itself. It holds for numbers in the range of f32; `ranges.py`
handles what may lie beyond. Reductions and matmuls are in `reduction_bounds.py`, conditions and integers in
`uncertain.py`. The declaration of an operation says which rule it has (`declaration.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute

from pkc.dialect import interleaved, ranges, tile, windows
from pkc.dialect.blocks import Block
from pkc.dialect.numeric import FORMATS, LEAST, NORMAL, UNIT, Values, int_to_float, round_to
from pkc.dialect.ranges import FILLER, LARGEST, MOST, Bounded, Corners, Ends, Error
from pkc.dialect.types import FLOATS, INTEGERS, f32, i1

Rule: TypeAlias = Callable[..., Error]
Unary: TypeAlias = Callable[[Values, Bounded], Error]
Binary: TypeAlias = Callable[[Values, Bounded, Bounded], Error]
Bound: TypeAlias = Callable[..., Bounded]
"""From the result and the operands to the result with its error."""

Growth: TypeAlias = Callable[[Values, Bounded], Error]
"""From the result and the operand of a function to the error that the operand's error grows to."""


def by_rule(rule: Rule, corners: Corners, limit: float = MOST) -> Bound:
    """The rule as long as all values are in the range of a type, and intervals otherwise."""

    def bound(value: Values, *operands: Bounded) -> Bounded:
        error = rule(value, *operands)
        if all(operand.ordinary for operand in operands) and ranges.within(value, error, limit):
            return Bounded(value, error, True)
        return ranges.careful(value, error, operands, corners, limit)

    return bound


def rounded(value: Values, error: Error, unit: float, step: Values | float = 0.0) -> Values:
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


def _once_rounded(value: Values, error: Error, step: float) -> Error:
    """The error of a result rounded to the nearest f32; with exact operands it is known exactly."""
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


def enlarged(op: tile.EnlargeOp) -> Callable[[Values], Values]:
    """Moves elements to where they are in an enlarged tile."""
    times = op.times
    return lambda a: functools.reduce(lambda b, axis: np.repeat(b, times[axis], axis), range(len(times)), a)


def enlarge(op: tile.EnlargeOp) -> Unary:
    move = enlarged(op)
    return lambda value, a: None if a.error is None else move(a.error)


def pick(op: interleaved.PickOp) -> Unary:
    return lambda value, a: None if a.error is None else a.error[..., op.which :: op.step]


def window(op: windows.WindowOp) -> Unary:
    return lambda value, a: None if a.error is None else a.error[op.part]


def zipped(tiles: Sequence[Values]) -> Values:
    """The elements of tiles in turn."""
    return np.stack(tiles, axis=-1).reshape(*tiles[0].shape[:-1], -1)


def zip_rule(value: Values, *tiles: Bounded) -> Error:
    known = [one.error for one in tiles if one.error is not None]
    if not known:
        return None
    return zipped([np.zeros_like(known[0]) if one.error is None else one.error for one in tiles])


def all_elements(value: Values, *tiles: Bounded) -> Bounded:
    """The bound of tiles whose elements lie in one."""
    return Bounded(value, zip_rule(value, *tiles), all(one.ordinary for one in tiles))


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


def kept(value: Values, a: Bounded) -> Error:
    return a.error


def same_elements(rule: Rule, *, finite: bool = True) -> Bound:
    """For operations that move elements, negate them, or replace some by a constant (`finite`: not an infinity)."""

    def bound(value: Values, a: Bounded, *rest: Block) -> Bounded:
        return Bounded(value, rule(value, a, *rest), a.ordinary and finite)

    return bound


SAME_SIZE = same_elements(kept)
"""The bound of an operation that changes nothing but the sign."""


# Types


def cast(op: tile.CastOp) -> Bound:
    source, target = tile.tile_type(op.tile).element_type, tile.tile_type(op.result).element_type
    if source == target or (target == f32 and source in FLOATS):
        return SAME_SIZE
    if source == i1:
        return _of_condition
    return narrowing(source, target)


def _of_condition(value: Values, a: Bounded) -> Bounded:
    return Bounded(value, None if a.error is None else a.error.astype(np.float64), True)


def narrowing(source: Attribute, target: Attribute) -> Bound:
    """The bound of a rounding to a type."""
    form = FORMATS[target]

    def rule(value: Values, a: Bounded) -> Error:
        if a.error is not None:
            return rounded(value, a.error, form.unit, form.half_step)
        if source in INTEGERS:
            return _lost(value, int_to_float(a.value, target))
        return _lost(value, round_to(a.value.astype(np.float32), target))

    def corners(a: Ends) -> Ends:
        return ranges.nearest(a, target)

    return by_rule(rule, corners, LARGEST[target])


# Arithmetic and functions


def _sum_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    return _once_rounded(value, total(a.error, b.error), 0.0)


def _product_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    terms: list[Error] = []
    if a.error is not None:
        terms.append(a.error * np.abs(b.value))
    if b.error is not None:
        terms.append(b.error * (np.abs(a.value) if a.error is None else np.abs(a.value) + a.error))
    return _once_rounded(value, total(*terms), LEAST / 2)


def greatest_rule(value: Values, a: Bounded, b: Bounded) -> Error:
    """Of the greater or smaller of two: that of the one which surely is it, if they are far enough apart."""
    if a.error is None and b.error is None:
        return None
    of_a, of_b = (np.zeros(()) if one.error is None else one.error for one in (a, b))
    apart = np.abs(a.value - b.value) >= of_a + of_b
    return np.where(apart, np.where(value == a.value, of_a, of_b), np.maximum(of_a, of_b))


def _function_error(ulps: int) -> tuple[float, float]:
    """The relative error of a function that is accurate to `ulps`, and its absolute error below the normal numbers."""
    return 2 * ulps * UNIT, ulps * LEAST


def quotient(ulps: int) -> Bound:
    """The bound of a quotient that is accurate to `ulps`."""
    unit, step = _function_error(ulps)

    def rule(value: Values, a: Bounded, b: Bounded) -> Error:
        above = a.error
        below = np.abs(b.value)
        if b.error is not None:
            above = total(above, np.abs(value) * b.error)
            below = below - b.error
        grown = None if above is None else np.where(below > 0, above / below, np.inf)
        return rounded(value, grown, unit, step)

    def corners(a: Ends, b: Ends) -> Ends:
        return ranges.quotient(a, b, unit, step)

    return by_rule(rule, corners)


added = by_rule(_sum_rule, ranges.rising(np.add, ranges.nearest), FILLER)
"""The sum of two f32."""

DIFFERENCE = by_rule(_sum_rule, ranges.difference, FILLER)
PRODUCT = by_rule(_product_rule, ranges.product, FILLER)


def greatest(function: Callable[..., Values]) -> Bound:
    """The bound of the greater or smaller of two."""
    return by_rule(greatest_rule, ranges.rising(function))


# Functions


def function_bound(
    function: Callable[[Values], Values],
    grown: Growth,
    ulps: int,
    *,
    falls: bool,
    flushes: bool = False,
    centred: bool = False,
    steep: bool = False,
) -> Bound:
    """The bound of a function that rises, or falls from infinity at zero, and is accurate to `ulps`: of its own, or if
    it is `centred` also of what it differs by from 0.5, or if it is `steep` to as many more as its operand is large.

    If it `flushes`, it is positive, and 0 is right too wherever a result below the normal numbers is.
    """
    unit, least = _function_error(ulps)

    def beside(value: Values, at: Values) -> Values | float:
        """What may come to the error that is relative to a value, that of the function `at` an operand."""
        if steep:
            return least + unit / ulps * np.nan_to_num(np.abs(at) * np.abs(value), nan=0.0)
        return least + unit * np.maximum(0.5 - 2 * value, 0.0) if centred else least

    def corners(a: Ends) -> Ends:
        low, high = (a.high, a.low) if falls else a
        ends = Ends(function(low), function(high))
        found = ranges.widened(ends, unit, beside(ends.low, low))
        if steep:
            found = Ends(found.low, ranges.widened(ends, unit, beside(ends.high, high)).high)
        if flushes:
            found = Ends(np.where(found.low < NORMAL, 0.0, found.low), found.high)
        # The infinity at zero has the sign of the zero, which no interval knows.
        open_ = (a.low <= 0) & (a.high >= 0) & falls
        return Ends(np.where(open_, -np.inf, found.low), np.where(open_, np.inf, found.high))

    def rule(value: Values, a: Bounded) -> Error:
        growth = None if a.error is None else grown(value, a)
        error = rounded(value, growth, unit, beside(value if growth is None else value - growth, a.value))
        return np.where(value - error < NORMAL, np.maximum(error, value), error) if flushes else error

    return by_rule(rule, corners)


WAVE = 2.0**51
"""From where on sines are NaN: numbers of f32 are many turns apart there."""


def wave_bound(function: Callable[[Values], Values], ulps: int) -> Bound:
    """The bound of a function between -1 and 1 that is nowhere steeper than 1 and accurate to `ulps`: a sine."""
    unit, least = _function_error(ulps)

    def corners(a: Ends) -> Ends:
        here = function(a.low)
        found = ranges.widened(Ends(here, here), unit, least)
        most = np.where(np.maximum(np.abs(a.low), np.abs(a.high)) < WAVE, 1 + unit, np.inf)
        known = a.low == a.high
        return Ends(np.where(known, found.low, -most), np.where(known, found.high, most))

    def rule(value: Values, a: Bounded) -> Error:
        if a.error is None:
            return rounded(value, None, unit, least)
        error = rounded(value, np.minimum(a.error, 2.0), unit, least)
        return np.where(np.abs(a.value) + a.error < WAVE, error, np.inf)

    return by_rule(rule, corners)


def at_the_ends(function: Callable[[Values], Values]) -> Growth:
    """The growth in a monotonic function: its values at both ends of the operand, unbounded where it has none."""

    def grown(value: Values, a: Bounded) -> Error:
        assert a.error is not None
        with np.errstate(all="ignore"):
            sides = [np.abs(function(end) - value) for end in (a.value - a.error, a.value + a.error)]
        return np.nan_to_num(np.maximum(*sides), nan=np.inf, posinf=np.inf)

    return grown


def exponential(scale: float) -> Growth:
    """The growth in e to the power of `scale` times the operand."""
    return lambda value, a: value * np.expm1(scale * _of(a))


def logarithm(base: float) -> Growth:
    def grown(value: Values, a: Bounded) -> Error:
        error = _of(a)
        return np.where(error < a.value, -np.log1p(-error / a.value) / np.log(base), np.inf)

    return grown


def root(value: Values, a: Bounded) -> Error:
    error = _of(a)
    down = value - np.sqrt(np.maximum(a.value - error, 0.0))
    up = np.sqrt(np.abs(a.value) + error)
    # Near zero the way up is the longer one.
    return np.where(error > np.abs(a.value), up, down)


def _of(a: Bounded) -> Values:
    assert a.error is not None
    return a.error
