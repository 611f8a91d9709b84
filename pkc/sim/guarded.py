"""Whether a branch keeps an operation from an integer that it could not take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import ReadOp
from pkc.dialect.coordinates import DimOp
from pkc.dialect.scalars import constant_of, scalar
from pkc.dialect.types import i1


def is_kept_from(op: Operation, given: SSAValue, number: int, sizes: Mapping[str, int]) -> bool:
    """Whether `op` never runs if `given`, a scalar or an element that is read, is this number."""
    inner = op
    while (around := inner.parent_op()) is not None:
        if isinstance(around, scf.IfOp):
            holds = _value(around.cond, given, number, sizes)
            if holds is not None and bool(holds) != (inner.parent_region() is around.true_region):
                return True
        inner = around
    return False


def _value(value: SSAValue, given: SSAValue, number: int, sizes: Mapping[str, int]) -> Any:
    """What is computed of the number; None if that depends on more."""
    op = value.owner
    if value is given or (isinstance(op, ReadOp) and _is_same(op, given.owner)):
        return number
    constant = constant_of(value)
    if constant is not None:
        return constant
    if isinstance(op, DimOp):
        return sizes[op.dim.data]
    computed = scalar(op) if isinstance(op, Operation) else None
    if computed is None or not isinstance(op, Operation):
        return None
    operands = [_value(operand, given, number, sizes) for operand in op.operands]
    if isinstance(op, arith.AndIOp | arith.OrIOp) and value.type == i1:
        decisive = isinstance(op, arith.OrIOp)
        if any(operand is not None and bool(operand) is decisive for operand in operands):
            return decisive
    return None if None in operands else computed(*operands)


def _is_same(read: ReadOp, other: object) -> bool:
    return isinstance(other, ReadOp) and tuple(read.operands) == tuple(other.operands)
