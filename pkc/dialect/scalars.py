"""Arithmetic on scalars: `arith` on `index`, `i32` and `i1`, as functions of Python integers and booleans.

`index` has no bounds here. Division by zero gives 0, as in tiles.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from pkc.dialect.numeric import wrap_i32
from pkc.dialect.types import i1


def _floor(a: int, b: int) -> int:
    return a // b if b else 0


def _truncate(a: int, b: int) -> int:
    return _floor(abs(a), abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def _select(condition: bool, a: Any, b: Any) -> Any:
    return a if condition else b


def _ceil(a: int, b: int) -> int:
    return -_floor(-a, b)


_BINARY: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.FloorDivSIOp: _floor,
    arith.CeilDivSIOp: _ceil,
    arith.CeilDivUIOp: _ceil,
    arith.DivSIOp: _truncate,
    arith.DivUIOp: _floor,
    arith.RemSIOp: lambda a, b: a - _truncate(a, b) * b,
    arith.RemUIOp: lambda a, b: a - _floor(a, b) * b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.MinUIOp: min,
    arith.MaxUIOp: max,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.ShLIOp: lambda a, b: wrap_i32(a << (b & 31)),  # as of tiles
}

_COMPARE: tuple[Callable[[Any, Any], bool], ...] = (
    operator.eq, operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge,
    operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip
"""By the number of the predicate; sizes and positions are not negative, so unsigned compares as signed."""

_CONVERT = (arith.IndexCastOp, arith.ExtUIOp, arith.ExtSIOp, arith.TruncIOp)


def _fit(kind: Attribute) -> Callable[[Any], Any]:
    """The function that wraps an integer to a type."""
    if isinstance(kind, IndexType):
        return int
    return bool if kind == i1 else wrap_i32


def scalar(op: Operation) -> Callable[..., Any] | None:
    """A scalar operation as a function of its operands; None for one that is not known."""
    if isinstance(op, arith.ConstantOp):
        return _constant(op)
    if isinstance(op, arith.CmpiOp):
        return _COMPARE[op.predicate.value.data]
    if isinstance(op, arith.SelectOp):
        return _select
    if isinstance(op, _CONVERT):
        return _fit(op.results[0].type)
    function = _BINARY.get(type(op))
    if function is None or isinstance(op.results[0].type, IndexType):
        return function
    fit = _fit(op.results[0].type)

    def fitted(a: int, b: int) -> Any:
        return fit(function(a, b))

    return fitted


def constant_of(value: SSAValue) -> int | None:
    """The value of an integer constant."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _constant(op: arith.ConstantOp) -> Callable[..., Any] | None:
    if isinstance(op.value, FloatAttr):
        number = op.value.value.data
        return lambda: number
    if not isinstance(op.value, IntegerAttr):
        return None
    constant = _fit(op.value.type)(op.value.value.data)
    return lambda: constant
