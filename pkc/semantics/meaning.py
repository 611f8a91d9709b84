"""What each tile operation computes, in numpy: written once, for every level that is simulated.

`value(op, real)` is the operation on arrays held in `real`, float32 for what a program computes and float64 for what
it should compute; float64 is never rounded. `bounded(op)` is the operation in float64 together with a bound on how
far the program may be from it. Results are not to be changed in place: they may be views of operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from pkc.dialect import elementwise, tile
from pkc.dialect.attributes import Predicate
from pkc.dialect.blocks import Block
from pkc.dialect.error_bounds import BOUNDS
from pkc.dialect.numeric import (
    Values,
    float_to_int,
    held_dtype,
    int_to_float,
    overflowed,
    round_to,
    wrap_i32,
)
from pkc.dialect.ranges import Bounded, within
from pkc.dialect.reduction_bounds import REDUCTION_BOUNDS
from pkc.dialect.types import FLOATS, TileType, i1, i32
from pkc.dialect.uncertain import UNCERTAIN, chosen

Real: TypeAlias = type[np.floating[Any]]
Function: TypeAlias = Callable[..., Any]
Unary: TypeAlias = Callable[[Values], Values]


def value(op: Operation, real: Real = np.float32) -> Callable[..., Values]:
    """The meaning of a tile operation: a function of its operands, in their order."""
    return _VALUES[type(op)](op, real)


def bounded(op: Operation) -> Callable[..., Bounded]:
    """The meaning of a tile operation in float64, with its error: a function of its operands, tiles as `Bounded`."""
    compute = value(op, np.float64)
    tiles = tuple(isinstance(operand.type, TileType) for operand in op.operands)
    is_float = tile.tile_type(op.results[0]).element_type in FLOATS
    bound = (_BOUNDS if is_float else UNCERTAIN).get(type(op))
    if bound is None:
        return lambda *operands: _known(compute(*_values(operands, tiles)))
    rule = bound(op)
    return lambda *operands: rule(compute(*_values(operands, tiles)), *operands)


def is_tile_op(op: Operation) -> bool:
    """Whether an operation's meaning is in this table."""
    return type(op) in _VALUES


def _values(operands: tuple[Any, ...], tiles: tuple[bool, ...]) -> list[Any]:
    return [operand.value if is_tile else operand for operand, is_tile in zip(operands, tiles, strict=True)]


def _known(made: Values) -> Bounded:
    return Bounded(made, None, made.dtype.kind != "f" or within(made, None))


# Making tiles


def _full(op: tile.FullOp, real: Real) -> Callable[[], Values]:
    result = tile.tile_type(op.result)
    constant = _constant(op.constant, result, real)
    made = np.full(result.shape, constant, held_dtype(result.element_type, real))
    return lambda: made


def _constant(number: float, of: TileType, real: Real) -> Values:
    """A constant as the program holds it: rounded to its type at every level."""
    if of.element_type not in FLOATS:
        return np.array(number, held_dtype(of.element_type))
    return round_to(np.array(number, np.float32), of.element_type).astype(real)


def _splat(op: tile.SplatOp, real: Real) -> Callable[[Any], Values]:
    result = tile.tile_type(op.result)
    dtype = held_dtype(result.element_type, real)
    if isinstance(op.scalar.type, IndexType):
        return lambda scalar: np.full(result.shape, wrap_i32(scalar), dtype)
    return lambda scalar: np.full(result.shape, scalar, dtype)


def _positions(op: tile.PositionsOp, real: Real) -> Callable[[Block], Values]:
    extent = tile.block_type(op.block).extent
    return lambda block: np.arange(block.start, block.start + extent, dtype=np.int64).astype(np.int32)


# Shapes and types


def _broadcast(op: tile.BroadcastOp, real: Real) -> Unary:
    shape, axes = tile.tile_type(op.result).shape, op.positions
    order = tuple(int(i) for i in np.argsort(axes))
    kept = tuple(extent if axis in axes else 1 for axis, extent in enumerate(shape))
    return lambda a: np.broadcast_to(np.transpose(a, order).reshape(kept), shape)


def _cast(op: tile.CastOp, real: Real) -> Unary:
    source, target = tile.tile_type(op.tile).element_type, tile.tile_type(op.result).element_type
    if source == target:
        return lambda a: a
    if target == i32:
        return float_to_int if source in FLOATS else lambda a: a.astype(np.int32)
    if source == i1:
        return lambda a: a.astype(real)
    if real is np.float64:
        return lambda a: overflowed(a.astype(np.float64), target)
    if source == i32:
        return lambda a: int_to_float(a, target)
    return lambda a: round_to(a, target)


def _clip(op: tile.ClipOp, real: Real) -> Function:
    source = tile.tile_type(op.tile)
    axis = int(op.axis.value.data)
    extent = source.shape[axis]
    fill = _constant(op.constant, source, real)
    before = (slice(None),) * axis

    def clip(a: Values, block: Block) -> Values:
        if block.length >= extent:
            return a
        clipped = np.array(a)
        clipped[(*before, slice(block.length, None))] = fill
        return clipped

    return clip


# Element by element


def _floor_mod(a: Values, b: Values) -> Values:
    return a - b * np.floor_divide(a, b)


_COMPARE: dict[Predicate, Function] = {
    Predicate.Eq: np.equal,
    Predicate.Ne: np.not_equal,
    Predicate.Lt: np.less,
    Predicate.Le: np.less_equal,
    Predicate.Gt: np.greater,
    Predicate.Ge: np.greater_equal,
}


def _compare(op: elementwise.CompareOp, real: Real) -> Function:
    return _COMPARE[op.predicate.data]


# Reductions and products


def _row_max(a: Values) -> Values:
    return a.max(axis=-1)


def _row_sum(op: tile.RowSumOp, real: Real) -> Unary:
    return lambda a: a.sum(axis=-1, dtype=a.dtype)


def _mma(op: tile.MmaOp, real: Real) -> Function:
    def mma(a: Values, b: Values, acc: Values) -> Values:
        # In f64, because a product in f32 depends on where a row lies in its tile, by the order in which BLAS adds;
        # an element would then change with the division into blocks.
        product = a.astype(np.float64, copy=False) @ b.astype(np.float64, copy=False)
        product += acc
        return product.astype(real, copy=False)

    return mma


def _same(function: Function) -> Callable[[Any, Real], Function]:
    """For operations that have no parameters and compute alike in every type."""
    return lambda op, real: function


_VALUES: dict[type[Operation], Callable[[Any, Real], Function]] = {
    tile.FullOp: _full,
    tile.SplatOp: _splat,
    tile.PositionsOp: _positions,
    tile.BroadcastOp: _broadcast,
    tile.TransposeOp: _same(np.transpose),
    tile.CastOp: _cast,
    tile.ClipOp: _clip,
    elementwise.NegOp: _same(np.negative),
    elementwise.AbsOp: _same(np.abs),
    elementwise.ExpOp: _same(np.exp),
    elementwise.Exp2Op: _same(np.exp2),
    elementwise.Log2Op: _same(np.log2),
    elementwise.SqrtOp: _same(np.sqrt),
    elementwise.NotOp: _same(np.logical_not),
    elementwise.AddOp: _same(np.add),
    elementwise.SubOp: _same(np.subtract),
    elementwise.MulOp: _same(np.multiply),
    elementwise.DivOp: _same(np.divide),
    elementwise.FloorDivOp: _same(np.floor_divide),
    elementwise.ModOp: _same(_floor_mod),
    elementwise.MaxOp: _same(np.maximum),
    elementwise.MinOp: _same(np.minimum),
    elementwise.AndOp: _same(np.logical_and),
    elementwise.OrOp: _same(np.logical_or),
    elementwise.CompareOp: _compare,
    elementwise.SelectOp: _same(np.where),
    tile.RowMaxOp: _same(_row_max),
    tile.RowSumOp: _row_sum,
    tile.MmaOp: _mma,
}

_BOUNDS: dict[type[Operation], Callable[[Any], Callable[..., Bounded]]] = {
    **BOUNDS,
    **REDUCTION_BOUNDS,
    elementwise.SelectOp: chosen,
}
