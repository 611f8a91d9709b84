"""Chains of operations on tiles, whose elements are computed one after the other and not tile by tile."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import AddOp, CompareOp, MulOp, NegOp, SubOp
from pkc.dialect.fences import FenceOp
from pkc.dialect.interleaved import PickOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.roles import CommitOp
from pkc.dialect.tile import (
    BroadcastOp,
    CastOp,
    ClipOp,
    EnlargeOp,
    FullOp,
    PositionsOp,
    SplatOp,
    TransposeOp,
    chain_of,
    tile_type,
)
from pkc.dialect.types import NARROW, TileType, i32
from pkc.dialect.windows import WindowOp

_MADE_WHERE_USED = (FullOp, SplatOp, PositionsOp)
_VIEWS = frozenset((*_MADE_WHERE_USED, BroadcastOp, ClipOp, EnlargeOp, PickOp, TransposeOp, WindowOp))
_POSITIONS = frozenset((AddOp, SubOp, MulOp, NegOp))


def is_view(op: Operation) -> bool:
    """Whether the elements of a result are made, or read from an operand, wherever they are used."""
    if isinstance(op, CastOp):
        kind = op.result.type
        assert isinstance(kind, TileType)
        return kind.rank < 2 or kind.element_type not in NARROW
    return type(op) in _VIEWS or is_of_positions(op)


def behind_views(value: SSAValue) -> SSAValue:
    """What a value is a view of, or the value."""
    given = False  # what positions follow from is a view, too
    while isinstance(op := value.owner, Operation) and (given or is_view(op)) and op.operands:
        given = _counts(op) or (given and isinstance(op, BroadcastOp))
        value = op.operands[0]
    return value


def is_of_positions(op: Operation) -> bool:
    """Whether integers of a tile follow from where they stand and from scalars by arithmetic of one instruction."""
    if not _counts(op):
        return False
    seen, todo = set[SSAValue](), list(op.operands)
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        made = value.owner
        if isinstance(made, Operation) and (isinstance(made, BroadcastOp) or _counts(made)):
            todo += made.operands
        elif not isinstance(made, _MADE_WHERE_USED):
            return False
    return True


def _counts(op: Operation) -> bool:
    return type(op) in _POSITIONS and tile_type(op.results[0]).element_type == i32


def is_elementwise(op: Operation) -> bool:
    """Whether an operation computes each element of a tile of several axes from those at the same place."""
    computes = isinstance(op, CastOp | CompareOp) or (type(op) in OPERATIONS and not isinstance(op, RowReduction))
    kinds = [result.type for result in op.results]
    return computes and not is_view(op) and all(isinstance(kind, TileType) and kind.rank > 1 for kind in kinds)


def takes(op: Operation) -> bool:
    """Whether an operation can take the elements of a chain as they are computed, and so end it."""
    return isinstance(op, RowReduction | CommitOp)


def following(op: Operation) -> Operation | None:
    """The next operation, fences aside: these stand before what takes a tile, and order what it does."""
    found = op.next_op
    while isinstance(found, FenceOp):
        found = found.next_op
    return found


def members(op: Operation) -> list[Operation]:
    """An operation and those of its chain before it, in their order."""
    found, before = list[Operation](), op
    while before is not None:
        if chain_of(before) == chain_of(op):
            found.append(before)
        elif not isinstance(before, FenceOp):
            break
        before = before.prev_op
    return found[::-1]
