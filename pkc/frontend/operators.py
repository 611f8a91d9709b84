"""Operators and element-wise functions: which operands go together, and the operations they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import elementwise
from pkc.dialect import tile as ops
from pkc.dialect.attributes import Predicate
from pkc.dialect.declaration import OPERATIONS, words
from pkc.dialect.reductions import RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.types import EIGHT_BIT, FLOATS, NARROW, dtype_name, f32, i1, i8, i32
from pkc.frontend.alignment import merge
from pkc.frontend.check_errors import ConstantArithmetic
from pkc.frontend.frame import ARITHMETIC, Frame
from pkc.frontend.kinds import (
    Axis,
    BlockAxis,
    Boolean,
    Columns,
    Constant,
    Integer,
    Tile,
    Value,
    axes_text,
    axis_text,
    base,
    family,
    is_scalar_integer,
    told_apart,
)
from pkc.frontend.tile_errors import BadMatmul, BadOperand, InnerAxesDiffer, TypesDiffer
from pkc.location import Span

_TILE_BINARY = words(elementwise.Binary)
_TILE_UNARY = words(elementwise.Unary)
ROW_REDUCTIONS = words(RowReduction)
FUNCTIONS = tuple(word for word in _TILE_UNARY if word.isidentifier() and word != "not")
"""The functions of one operand."""

_INTEGER: dict[str, type[Operation]] = {
    "+": arith.AddiOp, "-": arith.SubiOp, "*": arith.MuliOp, "//": arith.FloorDivSIOp, "max": arith.MaxSIOp,
    "min": arith.MinSIOp, "<<": arith.ShLIOp,
}  # fmt: skip

_PREDICATES = {
    "==": Predicate.Eq, "!=": Predicate.Ne, "<": Predicate.Lt, "<=": Predicate.Le, ">": Predicate.Gt,
    ">=": Predicate.Ge,
}  # fmt: skip

_CMPI = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}

_FOLD: dict[str, Callable[[float, float], float | bool]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "max": max, "min": min,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b), "&": lambda a, b: int(a) & int(b), "|": lambda a, b: int(a) | int(b),
    "^": lambda a, b: int(a) ^ int(b), "<<": lambda a, b: int(a) << int(b), ">>": lambda a, b: int(a) >> int(b),
}  # fmt: skip

_FOLD_UNARY: dict[str, Callable[[Any], float | bool]] = {
    "-": lambda a: -a, "not": lambda a: not a, "abs": abs,
}  # fmt: skip

_FLOAT_ONLY = frozenset((*words(elementwise.Unary, f32), *words(elementwise.Binary, f32)))
_INTEGER_ONLY = frozenset(words(elementwise.Binary, i32))
_OF_FLOATS = {"//": "`/` divides floats", "%": "of floats write `x - y * floor(x / y)`"}
_LOGIC = frozenset((*words(elementwise.Unary, i1), *words(elementwise.Binary, i1)))

_OF_BITS = {"&": "write `and`", "|": "write `or`", "^": "write `!=`", "<<": "", ">>": ""}
"""Operators on the bits of integers, and what stands for them between conditions."""

FROM_BOOLEAN = "`cast(condition, f32)` or `cast(condition, i32)` is 1 where it holds, 0 elsewhere"
"""The hint for a boolean in place of a number."""


def unary(frame: Frame, op: str, operand: Value, span: Span) -> Value:
    """`-x`, `not x`, `exp(x)` and the like."""
    operand = frame.arithmetic(operand, span)
    kind = family(operand)
    if (kind == "boolean") != (op in _LOGIC):
        raise PkcError(BadOperand(span, op, str(operand), "a boolean" if op in _LOGIC else "a number"))
    if isinstance(operand, Constant):
        return _fold(lambda: _fold_unary(op, operand.value), span)
    if op in _FLOAT_ONLY and kind != "float":
        raise PkcError(BadOperand(span, op, str(operand), "floats", "convert it: `cast(x, f32)`"))
    if isinstance(operand, Tile):
        tile = frame.tile(operand, ARITHMETIC[kind], operand.axes, span)
        return Tile(frame.value(_TILE_UNARY[op](tile), span), ARITHMETIC[kind], operand.axes, operand.loose)
    if isinstance(operand, Boolean):
        true = frame.boolean(Constant(True), span)
        return Boolean(frame.value(arith.XOrIOp(operand.ssa, true), span))
    negative = Integer(_integer_op(frame, "-", Constant(0), operand, span))
    return negative if op == "-" else Integer(_integer_op(frame, "max", operand, negative, span))


def binary(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Value:
    """Arithmetic, `max`, `min`, comparisons and logic, with axes aligned by the blocks they come from."""
    left, right = frame.arithmetic(left, span), frame.arithmetic(right, span)
    kind = common_family(op, left, right, span)
    if op in _LOGIC and kind != "boolean":
        raise PkcError(BadOperand(span, op, str(left), "booleans"))
    if kind == "boolean" and op not in _LOGIC and op not in ("==", "!="):
        raise PkcError(BadOperand(span, op, str(left), "numbers", _OF_BITS.get(op, "")))
    if op in _OF_BITS:
        _check_bits(op, kind, left, right, span)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _fold(lambda: _FOLD[op](left.value, right.value), span)
    if op in _FLOAT_ONLY and kind != "float":
        raise PkcError(BadOperand(span, op, str(left), "floats", "`//` divides integers"))
    if op in _INTEGER_ONLY and kind != "integer":
        raise PkcError(BadOperand(span, op, str(left), "integers", _OF_FLOATS.get(op, "")))
    if is_scalar_integer(left) and is_scalar_integer(right):
        return _integer_binary(frame, op, left, right, span)
    if not isinstance(left, Tile) and not isinstance(right, Tile):
        return _boolean_binary(frame, op, left, right, span)
    axes, loose = merge(op, (left, right), span)
    dtype = ARITHMETIC[kind]
    lhs, rhs = frame.tile(left, dtype, axes, span), frame.tile(right, dtype, axes, span)
    if op in _PREDICATES:
        return Tile(frame.value(elementwise.CompareOp(_PREDICATES[op], lhs, rhs), span), i1, axes, loose)
    return Tile(frame.value(_TILE_BINARY[op](lhs, rhs), span), dtype, axes, loose)


def _check_bits(op: str, kind: str, left: Value, right: Value, span: Span) -> None:
    """That operands of an operator on bits are integers, of which one is a tile or both are constants; a constant may
    be shifted to the left by any integer, which gives powers of two."""
    if kind != "integer":
        raise PkcError(BadOperand(span, op, str(left), "integers"))
    kinds = {type(left), type(right)}
    power = op == "<<" and isinstance(left, Constant) and is_scalar_integer(right)
    if Tile not in kinds and kinds != {Constant} and not power:
        raise PkcError(
            BadOperand(
                span,
                op,
                str(left),
                "a tile of i32",
                "of numbers that are no tiles `x * 8` and `x // 8` shift, and `x % 8` has the lowest bits",
            )
        )
    if op in ("<<", ">>") and isinstance(right, Constant) and not 0 <= right.value < 32:
        raise PkcError(BadOperand(span, op, str(right.value), "a number of bits from 0 to 31"))


def select(frame: Frame, condition: Value, left: Value, right: Value, span: Span) -> Value:
    """`where(condition, left, right)`"""
    condition = frame.arithmetic(condition, span)
    left, right = frame.arithmetic(left, span), frame.arithmetic(right, span)
    if family(condition) != "boolean":
        raise PkcError(BadOperand(span, "where", str(condition), "a boolean as the condition"))
    kind = common_family("where", left, right, span)
    if is_scalar_integer(left) and is_scalar_integer(right) and not isinstance(condition, Tile):
        scalar = frame.boolean(condition, span)
        lhs, rhs = frame.integer(left, span), frame.integer(right, span)
        return Integer(frame.value(arith.SelectOp(scalar, lhs, rhs), span))
    axes, loose = merge("where", (condition, left, right), span)
    dtype = ARITHMETIC[kind]
    if isinstance(condition, Constant):
        chosen = left if condition.value else right
        return Tile(frame.tile(chosen, dtype, axes, span), dtype, axes, loose)
    mask = frame.tile(condition, i1, axes, span)
    lhs, rhs = frame.tile(left, dtype, axes, span), frame.tile(right, dtype, axes, span)
    return Tile(frame.value(elementwise.SelectOp(mask, lhs, rhs), span), dtype, axes, loose)


def matmul(frame: Frame, left: Value, right: Value, span: Span) -> Tile:
    """`left @ right`"""
    for value in (left, right):
        if not isinstance(value, Tile):
            what = "each operand is a tile with two axes"
            raise PkcError(BadMatmul(span, str(left), str(right), what, "index the array with blocks to get a tile"))
    assert isinstance(left, Tile) and isinstance(right, Tile)
    if len(left.axes) != 2 or len(right.axes) != 2:
        hint = "a matrix and a vector: `rowsum(a * x)`" if len(left.axes) == 2 and len(right.axes) == 1 else ""
        if not left.axes or not right.axes:
            hint = "`*` multiplies by a number"
        hint = hint or "numbers, not blocks, for other axes: `tasks(B, ...)`"
        raise PkcError(BadMatmul(span, str(left), str(right), "each operand has two axes", hint))
    _check_matmul_types(left, right, span)
    inner, other = left.axes[1], right.axes[0]
    if base(inner) != base(other):
        hint = (
            "transpose the right operand: `.T`" if base(inner) == base(right.axes[1]) else _same_dimension(inner, other)
        )
        texts = (axis_text(inner), axis_text(other), axes_text(left.axes), axes_text(right.axes))
        raise PkcError(InnerAxesDiffer(span, *texts, hint))
    axes = told_apart((left.axes[0], right.axes[1]))
    a, b = clipped(frame, left, 1, 0, span), clipped(frame, right, 0, 0, span)
    zero = frame.tile(Constant(0.0), f32, axes, span)
    return Tile(frame.value(ops.MmaOp(a, b, zero), span), f32, axes)


def row_reduction(frame: Frame, name: str, operand: Value, span: Span) -> Tile:
    """`rowmax(x)` and the like: over the positions that the last axis really has."""
    if not isinstance(operand, Tile) or not operand.axes or operand.dtype == i1:
        raise PkcError(BadOperand(span, name, str(operand), "a tile of numbers with at least one axis"))
    operand = frame.widened(operand, span)
    kind = ROW_REDUCTIONS[name]
    source = clipped(frame, operand, len(operand.axes) - 1, kind.NEUTRAL[operand.dtype], span)
    return Tile(frame.value(kind(source), span), operand.dtype, operand.axes[:-1])


def cum_sum(frame: Frame, operand: Value, span: Span) -> Tile:
    """`cumsum(x)`: an element is of those before it, so that the end of a block needs no care."""
    if not isinstance(operand, Tile) or not operand.axes or operand.dtype == i1:
        raise PkcError(BadOperand(span, "cumsum", str(operand), "a tile of numbers with at least one axis"))
    operand = frame.widened(operand, span)
    return Tile(frame.value(CumSumOp(operand.ssa), span), operand.dtype, operand.axes)


def transpose(frame: Frame, operand: Value, span: Span) -> Tile:
    """`operand.T`: the axes exchanged; what has one axis lies along columns."""
    if isinstance(operand, Tile) and len(operand.axes) == 1:
        (axis,) = operand.axes
        return replace(operand, axes=(axis.of if isinstance(axis, Columns) else Columns(axis),))
    if not isinstance(operand, Tile) or len(operand.axes) != 2:
        raise PkcError(BadOperand(span, ".T", str(operand), "a tile with two axes, or one"))
    axes = told_apart(operand.axes[::-1])
    return Tile(frame.value(ops.TransposeOp(operand.ssa), span), operand.dtype, axes)


def cast(frame: Frame, operand: Value, dtype: object, span: Span) -> Value:
    """`cast(operand, dtype)`; of a condition 1 where it holds, 0 elsewhere."""
    operand = frame.arithmetic(operand, span)
    assert isinstance(dtype, type(f32) | type(i32)) or dtype in NARROW
    if family(operand) == "boolean":
        one, zero = (1.0, 0.0) if dtype in FLOATS else (1, 0)
        operand = select(frame, operand, Constant(one), Constant(zero), span)
    if not isinstance(operand, Tile):
        kind = family(operand)
        operand = Tile(frame.tile(operand, ARITHMETIC[kind], (), span), ARITHMETIC[kind], ())
    return Tile(frame.value(ops.CastOp(operand.ssa, dtype), span), dtype, operand.axes, operand.loose)  # pyright: ignore[reportArgumentType]


def clipped(frame: Frame, tile: Tile, axis: int, fill: float, span: Span) -> SSAValue:
    """The tile with `fill` past the edge of the block that an axis comes from."""
    along = base(tile.axes[axis])
    if not isinstance(along, BlockAxis):
        return tile.ssa
    return frame.value(ops.ClipOp(tile.ssa, frame.block_of(along), axis, fill), span)


def common_family(op: str, left: Value, right: Value, span: Span) -> str:
    """`float`, `integer` or `boolean` for both; an integer literal goes with floats."""
    kinds = {family(left), family(right)}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds == {"float", "integer"} and any(isinstance(v, Constant) and family(v) == "integer" for v in (left, right)):
        return "float"
    if "boolean" in kinds:
        raise PkcError(TypesDiffer(span, op, str(left), str(right), FROM_BOOLEAN))
    raise PkcError(TypesDiffer(span, op, str(left), str(right)))


def _same_dimension(left: Axis, right: Axis) -> str:
    """A hint if two axes differ only in the loop they come from."""
    if (
        isinstance(left, BlockAxis)
        and isinstance(right, BlockAxis)
        and (left.dim, left.size) == (right.dim, right.size)
    ):
        return f"use one loop variable for both: `{left.name}` or `{right.name}`"
    return ""


def _check_matmul_types(left: Tile, right: Tile, span: Span) -> None:
    axes = left.axes[0], right.axes[1]
    for value in (left, right):
        if value.dtype not in FLOATS:
            problem = f"operands are bf16, f16, e4m3, e5m2 or f32, not {dtype_name(value.dtype)}"
            hint = "bf16 has all numbers of i8" if value.dtype == i8 else "round it first"
            sides = [axis.name if isinstance(axis, BlockAxis) else str(axis) for axis in map(base, axes)]
            of = f"the product is of f32, and so is a tile that it is added to: `zeros(f32, {', '.join(sides)})`"
            raise PkcError(BadMatmul(span, str(left), str(right), problem, f"{hint}: `cast(x, bf16)`; {of}"))
    eight_bit = left.dtype in EIGHT_BIT and right.dtype in EIGHT_BIT
    if left.dtype != right.dtype and not eight_bit:
        # What has 8 bits is widened, f32 is rounded beside 16 bits; of bf16 and f16 the right one follows the left.
        sides = (("left", right), ("right", left))
        which, other = sides[0] if left.dtype == f32 or left.dtype in EIGHT_BIT else sides[1]
        hint = f"give the {which} operand the type of the other: `cast(x, {dtype_name(other.dtype)})`"
        raise PkcError(BadMatmul(span, str(left), str(right), "both operands must have one type", hint))


def _fold_unary(op: str, value: float) -> float | bool:
    """A function of a constant."""
    if op in _FOLD_UNARY:
        return _FOLD_UNARY[op](value)
    with np.errstate(all="raise", under="ignore"):
        return float(OPERATIONS[_TILE_UNARY[op]].value(np.float64(value)))


def _fold(compute: Callable[[], float | bool], span: Span) -> Constant:
    try:
        result = compute()
    except ZeroDivisionError:
        raise PkcError(ConstantArithmetic(span, "division by zero")) from None
    except OverflowError:
        raise PkcError(ConstantArithmetic(span, "out of range")) from None
    except FloatingPointError as error:
        problem = "out of range" if "overflow" in str(error) else "not defined for this operand"
        raise PkcError(ConstantArithmetic(span, problem)) from None
    if isinstance(result, int) and not -(2**63) <= result < 2**63:
        raise PkcError(ConstantArithmetic(span, "more than 64 bits"))
    return Constant(result)


def _integer_op(frame: Frame, op: str, left: Value, right: Value, span: Span) -> SSAValue:
    return frame.value(_INTEGER[op](frame.integer(left, span), frame.integer(right, span)), span)  # pyright: ignore[reportCallIssue]


def _integer_binary(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Value:
    if op in _CMPI:
        return Boolean(
            frame.value(arith.CmpiOp(frame.integer(left, span), frame.integer(right, span), _CMPI[op]), span)
        )
    if op in _INTEGER_ONLY and isinstance(right, Constant) and right.value == 0:
        raise PkcError(ConstantArithmetic(span, "division by zero"))
    if op != "%":
        return Integer(_integer_op(frame, op, left, right, span))
    quotient = Integer(_integer_op(frame, "//", left, right, span))
    return Integer(_integer_op(frame, "-", left, Integer(_integer_op(frame, "*", quotient, right, span)), span))


def _boolean_binary(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Boolean:
    lhs, rhs = frame.boolean(left, span), frame.boolean(right, span)
    if op in _CMPI:
        return Boolean(frame.value(arith.CmpiOp(lhs, rhs, _CMPI[op]), span))
    return Boolean(frame.value(arith.AndIOp(lhs, rhs) if op == "and" else arith.OrIOp(lhs, rhs), span))
