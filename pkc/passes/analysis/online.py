"""Sums of exponentials that can be kept while the maximum of what is in them is not known yet: online reductions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.elementwise import Exp2Op, ExpOp, MulOp, SteepExpOp, SubOp
from pkc.dialect.reductions import RowMaxOp, RowReduction, RowSumOp
from pkc.dialect.tile import BroadcastOp, FullOp


@dataclass(frozen=True)
class Online:
    """The sum of f((u - greatest) * scale) over rows of u, of which `greatest` is the maximum; f is an exponential.

    When a maximum grows from a to b, what was added up before has to be multiplied by f((a - b) * scale). As long as a
    is -inf, so was all of u, and has no part in the sum.
    """

    greatest: RowMaxOp
    function: type[ExpOp] | type[Exp2Op] | type[SteepExpOp]
    scale: float | None


def online(op: RowReduction) -> Online | None:
    """How a reduction goes on when the maximum that it needs grows; None if it is no such sum."""
    exponential = op.tile.owner
    if not isinstance(op, RowSumOp) or not isinstance(exponential, ExpOp | Exp2Op | SteepExpOp):
        return None
    difference, scale = _scaled(exponential.tile)
    if not isinstance(difference, SubOp) or not isinstance(difference.rhs.owner, BroadcastOp):
        return None
    greatest = difference.rhs.owner.tile.owner
    if not isinstance(greatest, RowMaxOp) or greatest.tile is not difference.lhs:
        return None
    return Online(greatest, type(exponential), scale)


def _scaled(tile: SSAValue) -> tuple[Operation | None, float | None]:
    """What makes a tile, and by what positive constant it is multiplied then, if by any."""
    made = tile.owner if isinstance(tile.owner, Operation) else None
    if not isinstance(made, MulOp):
        return made, None
    for value, factor in ((made.lhs, made.rhs), (made.rhs, made.lhs)):
        if isinstance(factor.owner, FullOp) and isinstance(factor.owner.value, FloatAttr) and factor.owner.constant > 0:
            return (value.owner if isinstance(value.owner, Operation) else None), factor.owner.constant
    return None, None
