"""How far a program's f32 value may be from the real one: a running error analysis, one rule for each operation.

A rule gets the real result and the operands, each with its own error, and gives the error of the result: what the
operands' errors grow to, and the operation's own rounding. Comparisons are taken to come out the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Operation

from pkc.dialect import tile
from pkc.dialect.blocks import Block
from pkc.dialect.numeric import FORMATS, TINY, UNIT, Values
from pkc.dialect.types import FLOATS, f32

Error: TypeAlias = Values | None


class Bounded(NamedTuple):
    """A value and how far from it the program may be; no error means none at all."""

    value: Values
    error: Error


Rule: TypeAlias = Callable[..., Error]
Unary: TypeAlias = Callable[[Values, Bounded], Error]
Binary: TypeAlias = Callable[[Values, Bounded, Bounded], Error]

FUNCTION = 8 * UNIT
"""Of the functions and `/`, which are accurate to 4 units in the last place."""

PRODUCT = 2 * UNIT
"""Of one addition in a product: tensor cores cut off instead of rounding."""


def settle(value: Values, error: Error) -> Error:
    """The error with what is not a number made plain: none where the value is infinite or NaN, which is exact."""
    # One sum finds any infinity or NaN in either.
    if error is None or np.isfinite(value.sum() + error.sum()):
        return error
    known = np.where(np.isnan(error), np.inf, error)
    return np.where(np.isfinite(value), known, 0.0)


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


def _at_most(a: Error, b: Error) -> Error:
    if a is None or b is None:
        return b if a is None else a
    return np.maximum(a, b)


def _kept(op: Operation) -> Unary:
    return lambda value, a: a.error


def _broadcast(op: tile.BroadcastOp) -> Unary:
    shape, axes = tile.tile_type(op.result).shape, op.positions
    order = tuple(int(i) for i in np.argsort(axes))
    kept = tuple(extent if axis in axes else 1 for axis, extent in enumerate(shape))

    def rule(value: Values, a: Bounded) -> Error:
        return None if a.error is None else np.broadcast_to(np.transpose(a.error, order).reshape(kept), shape)

    return rule


def _transpose(op: tile.TransposeOp) -> Unary:
    return lambda value, a: None if a.error is None else a.error.T


def _cast(op: tile.CastOp) -> Unary:
    source, target = tile.tile_type(op.tile).element_type, tile.tile_type(op.result).element_type
    if source == target or (target == f32 and source in FLOATS):
        return _kept(op)
    form = FORMATS[target]
    return lambda value, a: rounded(value, a.error, form.unit, form.half_step)


def _clip(op: tile.ClipOp) -> Rule:
    axis = int(op.axis.value.data)

    def rule(value: Values, a: Bounded, block: Block) -> Error:
        if a.error is None or block.length >= value.shape[axis]:
            return a.error
        error = np.array(a.error)
        error[(*(slice(None),) * axis, slice(block.length, None))] = 0.0
        return error

    return rule


def _sum(op: Operation) -> Binary:
    return lambda value, a, b: rounded(value, total(a.error, b.error), UNIT)


def _product(op: Operation) -> Binary:
    def rule(value: Values, a: Bounded, b: Bounded) -> Error:
        parts: list[Error] = []
        if a.error is not None:
            parts.append(a.error * np.abs(b.value))
        if b.error is not None:
            parts.append(b.error * (np.abs(a.value) if a.error is None else np.abs(a.value) + a.error))
        return rounded(value, total(*parts), UNIT, TINY)

    return rule


def _quotient(op: Operation) -> Binary:
    def rule(value: Values, a: Bounded, b: Bounded) -> Error:
        above = a.error
        below = np.abs(b.value)
        if b.error is not None:
            above = total(above, np.abs(value) * b.error)
            below = below - b.error
        grown = None if above is None else np.where(below > 0, above / below, np.inf)
        return rounded(value, grown, FUNCTION, TINY)

    return rule


def _exponential(scale: float) -> Callable[[Operation], Unary]:
    def rule(value: Values, a: Bounded) -> Error:
        grown = None if a.error is None else value * np.expm1(scale * a.error)
        return rounded(value, grown, FUNCTION, TINY)

    return lambda op: rule


def _log2(op: Operation) -> Unary:
    def rule(value: Values, a: Bounded) -> Error:
        grown: Error = None
        if a.error is not None:
            grown = np.where(a.error < a.value, -np.log1p(-a.error / a.value) / np.log(2.0), np.inf)
        return rounded(value, grown, FUNCTION, TINY)

    return rule


def _sqrt(op: Operation) -> Unary:
    def rule(value: Values, a: Bounded) -> Error:
        if a.error is None:
            return rounded(value, None, FUNCTION, TINY)
        down = value - np.sqrt(np.maximum(a.value - a.error, 0.0))
        up = np.sqrt(np.abs(a.value) + a.error)
        # Near zero the way up is the longer one.
        grown = np.where(a.error > np.abs(a.value), up, down)
        return rounded(value, grown, FUNCTION, TINY)

    return rule


def _greatest(op: Operation) -> Binary:
    return lambda value, a, b: _at_most(a.error, b.error)


def _select(op: Operation) -> Rule:
    def rule(value: Values, condition: Bounded, a: Bounded, b: Bounded) -> Error:
        if a.error is None and b.error is None:
            return None
        return np.where(condition.value, _or_zero(a.error), _or_zero(b.error))

    return rule


def _row_max(op: Operation) -> Unary:
    return lambda value, a: None if a.error is None else a.error.max(axis=-1)


def _row_sum(op: tile.RowSumOp) -> Unary:
    # In any order, each element takes part in fewer additions than there are elements.
    unit = tile.tile_type(op.tile).shape[-1] * UNIT

    def rule(value: Values, a: Bounded) -> Error:
        own = np.abs(a.value).sum(axis=-1) * unit
        return own if a.error is None else own + a.error.sum(axis=-1) * (1 + unit)

    return rule


def _mma(op: tile.MmaOp) -> Rule:
    unit = tile.tile_type(op.a).shape[1] * PRODUCT

    def rule(value: Values, a: Bounded, b: Bounded, acc: Bounded) -> Error:
        # |a| @ |b| is at most the product of the norms of a's row and b's column: no second matrix product.
        rows = np.sqrt(np.einsum("ij,ij->i", a.value, a.value))
        columns = np.sqrt(np.einsum("ij,ij->j", b.value, b.value))
        error = np.abs(acc.value)
        error += np.outer(rows, columns)
        error *= unit
        if acc.error is not None:
            error += acc.error
        if a.error is not None:
            error += _matmul(a.error, np.abs(b.value) + _or_zero(b.error))
        if b.error is not None:
            error += _matmul(np.abs(a.value), b.error)
        return error

    return rule


def _matmul(a: Values, b: Values) -> Values:
    """A product of errors, in f32, a little enlarged to make up for its own rounding."""
    return (a.astype(np.float32) @ b.astype(np.float32)) * 1.001


def _or_zero(error: Error) -> Values | float:
    return 0.0 if error is None else error


BOUNDS: dict[type[Operation], Callable[[Any], Rule]] = {
    tile.BroadcastOp: _broadcast,
    tile.TransposeOp: _transpose,
    tile.CastOp: _cast,
    tile.ClipOp: _clip,
    tile.NegOp: _kept,
    tile.AbsOp: _kept,
    tile.ExpOp: _exponential(1.0),
    tile.Exp2Op: _exponential(float(np.log(2.0))),
    tile.Log2Op: _log2,
    tile.SqrtOp: _sqrt,
    tile.AddOp: _sum,
    tile.SubOp: _sum,
    tile.MulOp: _product,
    tile.DivOp: _quotient,
    tile.MaxOp: _greatest,
    tile.MinOp: _greatest,
    tile.SelectOp: _select,
    tile.RowMaxOp: _row_max,
    tile.RowSumOp: _row_sum,
    tile.MmaOp: _mma,
}
"""Operations without a rule here make exact values: constants, integers, conditions."""
