"""Tiles that are multiplied by a scalar, and the sign of scalars."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from pkc.dialect.elementwise import MaxOp, MulOp
from pkc.dialect.tile import BroadcastOp, FullOp


@dataclass(frozen=True)
class Scaled:
    """The elements of a tile, each times a scalar; None for the elements themselves."""

    tile: SSAValue
    factor: SSAValue | None


def scaled_of(op: object) -> Scaled | None:
    """What a multiplication by a scalar multiplies."""
    if isinstance(op, MulOp):
        for tile, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if isinstance(factor.owner, BroadcastOp) and not factor.owner.positions:
                return Scaled(tile, factor.owner.tile)
    return None


def is_positive(scalar: SSAValue | None) -> bool:
    """Whether a scalar is NaN or greater than zero for certain."""
    op = scalar.owner if scalar is not None else None
    if isinstance(op, FullOp):
        return op.constant > 0
    return isinstance(op, MaxOp) and any(map(is_positive, op.operands))
