"""Which floats are drawn without a sign: those that a logarithm or a square root is taken of."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from pkc.dialect import elementwise
from pkc.dialect.access import LOADS
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import RowSumOp
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, TransposeOp

_OF_POSITIVE = (elementwise.LogOp, elementwise.Log2Op, elementwise.SqrtOp, elementwise.RsqrtOp)
_SAME_SIGN = (CastOp, BroadcastOp, ClipOp, TransposeOp, RowSumOp, elementwise.AddOp)
_FACTORS = (elementwise.MulOp, elementwise.DivOp)


def without_sign(kernel: KernelOp) -> set[SSAValue]:
    """The arrays whose elements, all of them positive, make what a function that has no value below zero is taken of,
    by sums, products and quotients: `v` in `sqrt(0.9 * v + 0.1 * g * g)`, where the sign of `g` does not matter."""
    found: set[SSAValue] = set()
    for op in kernel.walk():
        if isinstance(op, _OF_POSITIVE):
            found |= _signs(op.operands[0])
    return found


def _signs(value: SSAValue) -> frozenset[SSAValue]:
    """The arrays whose signs decide about the sign of a value; none where something else does."""
    made = value.owner
    if isinstance(made, LOADS):
        return frozenset({made.array})
    if not isinstance(made, Operation):
        return frozenset()
    sides = [_signs(operand) for operand in made.operands]
    if isinstance(made, _SAME_SIGN):
        return frozenset[SSAValue]().union(*sides)
    if isinstance(made, _FACTORS):
        return sides[0] ^ sides[1]
    return frozenset()
