"""What each tile operation computes, in numpy, for every level that is simulated.

Most operations say so in their declaration; here are those that make tiles or change shapes and types.

`value(op, real)` is the operation on arrays held in `real`, float32 for what a program computes and float64 for what
it should compute; float64 is never rounded. `bounded(op)` is the operation in float64 together with a bound on how
far the program may be from it. Results are not to be changed in place: they may be views of operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from pkc.dialect import (
    elementwise,
    error_bounds,
    interleaved,
    probable_bounds,
    reduction_bounds,
    reductions,
    scans,
    tile,
    uncertain,
    windows,
)
from pkc.dialect.attributes import Predicate
from pkc.dialect.blocks import Block
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.error_bounds import Bound, Rule
from pkc.dialect.numeric import (
    UNIT,
    Values,
    as_integer,
    compute_dtype,
    int_to_float,
    overflowed,
    round_to,
    to_tf32,
    wrap_i32,
)
from pkc.dialect.pk import TILE
from pkc.dialect.ranges import FILLER, Bounded, Error, within
from pkc.dialect.types import FLOATS, INTEGERS, TileType, f32, i1

Real: TypeAlias = type[np.floating[Any]]
Function: TypeAlias = Callable[..., Any]
Unary: TypeAlias = Callable[[Values], Values]


class Structure(NamedTuple):
    """What an operation computes, and the error of a result of floats and of other elements, by the operation's own
    attributes; a type that its result cannot have has no rule."""

    value: Callable[[Any, Real], Function]
    real: Callable[[Any], Bound] | None
    other: Callable[[Any], Bound] | None


def value(op: Operation, real: Real = np.float32) -> Callable[..., Values]:
    """The semantics of a tile operation: a function of its operands, in their order."""
    declared = OPERATIONS.get(type(op))
    return _STRUCTURE[type(op)].value(op, real) if declared is None else declared.value


def of_numbers(op: Operation, numbers: Sequence[float]) -> float:
    """What an operation on floats, element by element, gives for numbers."""
    with np.errstate(all="ignore"):
        return float(value(op)(*(np.full((), number, np.float32) for number in numbers)))


def bounded(op: Operation) -> Callable[..., Bounded]:
    """The semantics of a tile operation in float64, with its error: a function of its operands, tiles as `Bounded`."""
    return _by_rule(op, _rule(op))


def probable(op: Operation) -> Callable[..., Bounded]:
    """As `bounded`, with the error that is probable (`probable_bounds.py`)."""
    make = _PROBABLE.get(type(op)) if _is_float(op) else None
    return _by_rule(op, _rule(op) if make is None else make(op))


def as_written(op: Operation) -> Callable[..., Bounded]:
    """As `bounded`, but a constant may be the number that the author wrote: one that an f32 has rounded, such as 0.9,
    is half a step off. A constant of few bits is the number itself, and one as large as a filler stands for the same in
    both."""
    if not isinstance(op, tile.FullOp) or not _is_float(op) or abs(op.constant) >= FILLER:
        return bounded(op)
    made = bounded(op)()
    fraction, _ = np.frexp(np.float32(op.constant))
    rounded = np.isfinite(fraction) and int(fraction * 2**24) % 2**_FEW_BITS
    found = Bounded(made.value, np.abs(made.value) * UNIT) if rounded else made
    return lambda: found


def settled(semantics: Callable[[Operation], Callable[..., Bounded]]) -> Callable[[Operation], Callable[..., Bounded]]:
    """The same, with comparisons that come out as they do for the values, whatever their errors."""
    return lambda op: _by_rule(op, _exact(op)) if isinstance(op, elementwise.CompareOp) else semantics(op)


_FEW_BITS = 12
"""Of 24 bits of an f32, so many that are all zero by chance in one of 4096 rounded numbers."""


def _by_rule(op: Operation, rule: Bound) -> Callable[..., Bounded]:
    compute = value(op, np.float64)
    tiles = tuple(isinstance(operand.type, TileType) for operand in op.operands)
    return lambda *operands: rule(compute(*_values(operands, tiles)), *operands)


def _is_float(op: Operation) -> bool:
    return tile.tile_type(op.results[0]).element_type in FLOATS


def _rule(op: Operation) -> Bound:
    declared, is_float = OPERATIONS.get(type(op)), _is_float(op)
    if declared is not None:
        rule = declared.real if is_float else declared.other
    else:
        structure = _STRUCTURE[type(op)]
        make = structure.real if is_float else structure.other
        rule = make and make(op)
    assert rule is not None
    return rule


def is_tile_op(op: Operation) -> bool:
    """Whether an operation's semantics are defined here."""
    return type(op) in OPERATIONS or type(op) in _STRUCTURE


def _values(operands: tuple[Any, ...], tiles: tuple[bool, ...]) -> list[Any]:
    return [operand.value if is_tile else operand for operand, is_tile in zip(operands, tiles, strict=True)]


# Making tiles


def _full(op: tile.FullOp, real: Real) -> Callable[[], Values]:
    result = tile.tile_type(op.result)
    constant = _constant(op.constant, result, real)
    made = np.full(result.shape, constant, compute_dtype(result.element_type, real))
    return lambda: made


def _constant(number: float, of: TileType, real: Real) -> Values:
    """A constant as the program holds it: rounded to its type at every level."""
    if of.element_type not in FLOATS:
        return np.array(number, compute_dtype(of.element_type))
    return round_to(np.array(number, np.float32), of.element_type).astype(real)


def _splat(op: tile.SplatOp, real: Real) -> Callable[[Any], Values]:
    result = tile.tile_type(op.result)
    dtype = compute_dtype(result.element_type, real)
    if isinstance(op.scalar.type, IndexType):
        return lambda scalar: np.full(result.shape, wrap_i32(scalar), dtype)
    return lambda scalar: np.full(result.shape, scalar, dtype)


def _positions(op: tile.PositionsOp, real: Real) -> Callable[..., Values]:
    each = np.arange(tile.block_type(op.block).extent, dtype=np.int64)

    def ascending(block: Block) -> Values:
        return (block.start + each).astype(np.int32)

    def zigzag(_: Block, first: int, last: int, before: int) -> Values:
        return np.where(each < before, first + each, last - each[::-1]).astype(np.int32)

    return zigzag if op.zigzag else ascending


# Shapes and types


def _broadcast(op: tile.BroadcastOp, real: Real) -> Unary:
    shape, axes = tile.tile_type(op.result).shape, op.positions
    order = tuple(int(i) for i in np.argsort(axes))
    kept = tuple(extent if axis in axes else 1 for axis, extent in enumerate(shape))
    return lambda a: np.broadcast_to(np.transpose(a, order).reshape(kept), shape)


def _repeat(op: tile.RepeatOp, real: Real) -> Unary:
    return _repeated(op)


def _repeated(op: tile.RepeatOp) -> Unary:
    shape = tile.tile_type(op.result).shape
    return lambda a: np.tile(a, shape[-1] // a.shape[-1])


def _repeated_errors(op: tile.RepeatOp) -> Rule:
    repeat = _repeated(op)

    def rule(value: Values, a: Bounded) -> Error:
        return None if a.error is None else repeat(a.error)

    return rule


def _enlarge(op: tile.EnlargeOp, real: Real) -> Unary:
    return error_bounds.enlarged(op)


def _pick(op: interleaved.PickOp, real: Real) -> Unary:
    return lambda a: a[..., op.which :: op.step]


def _window(op: windows.WindowOp, real: Real) -> Unary:
    return lambda a: a[op.part]


def _zip(op: interleaved.ZipOp, real: Real) -> Callable[..., Values]:
    return lambda *tiles: error_bounds.zipped(tiles)


def _fold(op: reductions.FoldOp, real: Real) -> Unary:
    reduce, count = OPERATIONS[op.reduction].value, tile.tile_type(op.result).shape[-1]
    return lambda a: reduce(_folds(a, count))


def _folds(a: Values, count: int) -> Values:
    """What a fold takes together, along the last axis."""
    return a.reshape(*a.shape[:-1], -1, count).swapaxes(-1, -2)


def _folded(rule: Callable[[type[reductions.RowReduction]], Bound | None]) -> Callable[[Any], Bound]:
    def make(op: reductions.FoldOp) -> Bound:
        of_rows, count = rule(op.reduction), tile.tile_type(op.result).shape[-1]
        assert of_rows is not None

        def bound(made: Values, a: Bounded) -> Bounded:
            error = None if a.error is None else _folds(a.error, count)
            return of_rows(made, Bounded(_folds(a.value, count), error, a.ordinary))

        return bound

    return make


def _cum_sum(op: scans.CumSumOp, real: Real) -> Unary:
    return lambda a: np.cumsum(a, axis=-1, dtype=a.dtype)


def _transpose(op: tile.TransposeOp, real: Real) -> Unary:
    return np.transpose


def _cast(op: tile.CastOp, real: Real) -> Unary:
    source, target = tile.tile_type(op.tile).element_type, tile.tile_type(op.result).element_type
    if source == target:
        return lambda a: a
    if target in INTEGERS:
        return lambda a: as_integer(a, target)
    if source == i1:
        return lambda a: a.astype(real)
    if real is np.float64:
        return lambda a: overflowed(a.astype(np.float64), target)
    if source in INTEGERS:
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


# Comparisons and matmuls


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


def _exact(op: Operation) -> Bound:
    """Of what makes exact values."""

    def bound(made: Values, *_: object) -> Bounded:
        return Bounded(made, None, made.dtype.kind != "f" or within(made, None))

    return bound


def _always(bound: Bound) -> Callable[[Any], Bound]:
    return lambda op: bound


def _compared(op: elementwise.CompareOp) -> Bound:
    if _is_greatest_of_row(op.rhs, op.lhs):
        return uncertain.COMPARED_WITH_GREATEST
    if _is_greatest_of_row(op.lhs, op.rhs):
        return uncertain.GREATEST_COMPARED
    return uncertain.COMPARED


def _is_greatest_of_row(greatest: SSAValue, x: SSAValue) -> bool:
    """Whether a tile has, in each row, the greatest or least of the elements that another one has there."""
    broadcast = greatest.owner
    if not isinstance(broadcast, tile.BroadcastOp):
        return False
    reduction = broadcast.tile.owner
    if not isinstance(reduction, reductions.RowMaxOp | reductions.RowMinOp):
        return False
    rows = reduction.tile.owner.tile if isinstance(reduction.tile.owner, tile.ClipOp) else reduction.tile
    return rows == x and broadcast.positions == tuple(range(tile.tile_type(x).rank - 1))


def _moved(rule: Callable[[Any], Rule]) -> Callable[[Any], Bound]:
    return lambda op: error_bounds.same_elements(rule(op))


def _clipped(op: tile.ClipOp) -> Bound:
    return error_bounds.same_elements(error_bounds.clip(op), finite=bool(np.isfinite(op.constant)))


def _uncertain(rule: Callable[[Any], Rule]) -> Callable[[Any], Bound]:
    return lambda op: uncertain.unless_exact(rule(op))


def _awaited(op: tile.MmaWaitOp, real: Real) -> Function:
    def awaited(a: Values, *behind: Values) -> Values:
        return a

    return awaited


def _unchanged(op: tile.MmaWaitOp) -> Bound:
    def bound(value: Values, a: Bounded, *behind: Bounded) -> Bounded:
        return a

    return bound


def _mma(op: tile.AnyMmaOp, real: Real) -> Function:
    cut = tile.tile_type(op.a).element_type == f32 and real is np.float32

    def mma(a: Values, b: Values, acc: Values) -> Values:
        a, b = (to_tf32(a), to_tf32(b)) if cut else (a, b)
        # In f64, because a matmul in f32 depends on where a row lies in its tile, by the order in which BLAS adds;
        # an element would then change with the division into blocks.
        result = a.astype(np.float64, copy=False) @ b.astype(np.float64, copy=False)
        result += acc
        return result.astype(real, copy=False)

    return mma


_STRUCTURE: dict[type[Operation], Structure] = {
    tile.FullOp: Structure(_full, _exact, _exact),
    tile.SplatOp: Structure(_splat, _exact, _exact),
    tile.PositionsOp: Structure(_positions, None, _exact),
    tile.BroadcastOp: Structure(_broadcast, _moved(error_bounds.broadcast), _uncertain(error_bounds.broadcast)),
    tile.RepeatOp: Structure(_repeat, _moved(_repeated_errors), _uncertain(_repeated_errors)),
    tile.EnlargeOp: Structure(_enlarge, _moved(error_bounds.enlarge), _uncertain(error_bounds.enlarge)),
    interleaved.PickOp: Structure(_pick, _moved(error_bounds.pick), _uncertain(error_bounds.pick)),
    windows.WindowOp: Structure(_window, _moved(error_bounds.window), _uncertain(error_bounds.window)),
    interleaved.ZipOp: Structure(
        _zip, _always(error_bounds.all_elements), _always(uncertain.unless_exact(error_bounds.zip_rule))
    ),
    reductions.FoldOp: Structure(
        _fold, _folded(lambda by: OPERATIONS[by].real), _folded(lambda by: OPERATIONS[by].other)
    ),
    scans.CumSumOp: Structure(_cum_sum, _always(reduction_bounds.sum_along_row), _always(uncertain.SUM_ALONG_ROW)),
    tile.TransposeOp: Structure(_transpose, _moved(error_bounds.transpose), _uncertain(error_bounds.transpose)),
    tile.ClipOp: Structure(_clip, _clipped, _uncertain(error_bounds.clip)),
    tile.CastOp: Structure(_cast, error_bounds.cast, uncertain.to_integer),
    elementwise.CompareOp: Structure(_compare, None, _compared),
    tile.MmaOp: Structure(_mma, reduction_bounds.mma, None),
    tile.MmaIssueOp: Structure(_mma, reduction_bounds.mma, None),
    tile.MmaWaitOp: Structure(_awaited, _unchanged, None),
}

_PROBABLE: dict[type[Operation], Callable[[Any], Bound]] = {
    reductions.RowSumOp: lambda op: probable_bounds.sum_of_row,
    reductions.FoldOp: _folded(
        lambda by: probable_bounds.sum_of_row if by is reductions.RowSumOp else OPERATIONS[by].real
    ),
    tile.MmaOp: probable_bounds.mma,
    tile.MmaIssueOp: probable_bounds.mma,
}
"""The rules of results of floats in which the probable error is another one."""

_undeclared = [op.name for op in TILE if op not in OPERATIONS and op not in _STRUCTURE]
if _undeclared:
    raise TypeError(f"no value and no error rule for {', '.join(_undeclared)}")
