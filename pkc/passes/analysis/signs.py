"""Integers that are never negative, for all sizes, ranks and tasks."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from pkc.dialect.coordinates import BlockCountOp, BlockPositionOp, DimOp, RankOp, RingPeerOp
from pkc.dialect.program import TasksOp
from pkc.dialect.scalars import constant_of
from pkc.passes.analysis.dependence import same_value


def is_not_negative(value: SSAValue) -> bool:
    """Whether a number is surely not negative, as far as its operations say."""
    known = constant_of(value)
    if known is not None:
        return known >= 0
    op = value.owner
    match op:
        case DimOp() | RankOp() | RingPeerOp() | BlockPositionOp() | BlockCountOp():
            return True
        case arith.AddiOp() | arith.MuliOp() | arith.MinSIOp() | arith.FloorDivSIOp() | arith.DivSIOp():
            return is_not_negative(op.lhs) and is_not_negative(op.rhs)
        case arith.MaxSIOp():
            return is_not_negative(op.lhs) or is_not_negative(op.rhs)
        case arith.SubiOp():
            return _is_remainder(op)
        case Block():
            around = op.parent_op()
            if isinstance(around, scf.ForOp):
                return value is op.args[0] and is_not_negative(around.lb)
            return isinstance(around, TasksOp)
        case _:
            return False


def _is_remainder(op: arith.SubiOp) -> bool:
    """Whether a difference is `a - a // b * b`, of a b that is not negative: so the frontend writes `a % b`."""
    product = op.rhs.owner
    if not isinstance(product, arith.MuliOp) or not isinstance(product.lhs.owner, arith.FloorDivSIOp):
        return False
    quotient, by = product.lhs.owner, product.rhs
    return same_value(quotient.lhs, op.lhs) and same_value(quotient.rhs, by) and is_not_negative(by)
