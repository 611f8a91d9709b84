"""Tiles that never have to be in registers as a whole: computed element by element from memory to memory."""

from __future__ import annotations

from xdsl.ir import Operation

from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.roles import AcquireOp, ConsumeOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import (
    AnyMmaOp,
    BroadcastOp,
    CastOp,
    ClipOp,
    EnlargeOp,
    FullOp,
    PositionsOp,
    RepeatOp,
    SplatOp,
    TransposeOp,
)
from pkc.dialect.windows import WindowOp

WHOLE = (AnyMmaOp, RowReduction, CumSumOp, FoldOp, RepeatOp, EnlargeOp, PickOp, ZipOp, WindowOp, TransposeOp)
"""Operations that need more than the element of an operand at the place of the result's."""

BY_ELEMENT = (*OPERATIONS, CompareOp, CastOp, ClipOp, BroadcastOp, FullOp, SplatOp, PositionsOp)
"""Operations of which each part of a tile can be computed by itself; reductions are of `OPERATIONS` too."""


def is_pointwise(op: Operation) -> bool:
    """Whether what is inside an operation can go over its tiles in chunks, each through all operations."""
    return not any(isinstance(inner, (*WHOLE, AcquireOp, ConsumeOp)) for inner in op.walk())


def is_spread(op: Operation) -> bool:
    """Whether the tiles inside an operation meet no MMA, so that threads may have them as suits rows."""
    return not any(isinstance(inner, AnyMmaOp) for inner in op.walk())
