"""Indices that memory decides, compared with the dimension that they address (`checked`, `pk-check-indices`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerType, StringAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, ReadOp, Scatter, StoreOp, places_of
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockCountOp
from pkc.dialect.inverse import InvertOp
from pkc.dialect.machine import ARRAY, PLACE
from pkc.dialect.types import RANKS
from pkc.dialect.words import BEGINS, ENDS, RANK, ROW
from pkc.passes.machine.check_indices import CHECKED, OUT_OF_RANGE
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.roles.remote_accesses import array_name

_Access = ReadOp | LoadOp | GatherOp | StoreOp | AddToArrayOp | Scatter
_Checked = _Access | InvertOp


def check(role: WarpRole, op: Operation) -> None:
    """Compare the integers among the indices of an access."""
    if CHECKED not in op.attributes or isinstance(op, InvertOp):
        return
    if isinstance(op, BlockCountOp):
        _check_bounds(role, op)
        return
    assert isinstance(op, _Access)
    places = places_of(op)
    for axis in _axes(op):
        if isinstance(places[axis].type, IndexType):
            index, extent = role.known[places[axis]], role.dims.extent(array_type(op.array).dimensions[axis])
            _refuse(role, op, _outside(role, index, extent), (index, extent), f"index {axis}")


def _check_bounds(role: WarpRole, op: BlockCountOp) -> None:
    """Compare the bounds of a list, which may end behind the last position."""
    behind = role.emit.plus(role.dims.extent(op.block.of), 1)
    for place in _axes(op):
        bound = role.known[op.operands[place]]
        what = ENDS if op.operands[place] is op.stop else BEGINS
        _report(role, _outside(role, bound, behind), (bound, behind), str(op.block.of), what)


def check_row(
    role: WarpRole,
    op: GatherOp | Scatter | InvertOp,
    row: SSAValue,
    owner: SSAValue | None = None,
    *,
    dim: int = 0,
) -> SSAValue | None:
    """Compare a row that a table names, and the rank that it names with it; a negative row is none. Whether that rank
    is none, if it is looked at."""
    if CHECKED not in op.attributes:
        return None
    extent = role.dims.extent(array_type(op.array).dimensions[dim])
    _refuse(role, op, role.emit.compare("sge", row, extent), (row, extent), ROW if not dim else f"index {dim}")
    if owner is None:
        return None
    ranks = role.dims.extent(RANKS)
    nowhere = role.emit.both(role.emit.compare("sge", row, 0), _outside(role, owner, ranks))
    _refuse(role, op, nowhere, (owner, ranks), RANK)
    return nowhere


def _axes(op: Operation) -> Sequence[int]:
    return cast("DenseArrayBase[IntegerType]", op.attributes[CHECKED]).get_values()


def _outside(role: WarpRole, index: SSAValue, extent: SSAValue) -> SSAValue:
    emit = role.emit
    return emit.negated(emit.both(emit.compare("sge", index, 0), emit.compare("slt", index, extent)))


def _refuse(role: WarpRole, op: _Checked, wrong: SSAValue, found: tuple[SSAValue, SSAValue], what: str) -> None:
    array = op.local if isinstance(op, GatherOp) and op.local is not None else op.array
    _report(role, wrong, found, array_name(array), what)


def _report(role: WarpRole, wrong: SSAValue, found: tuple[SSAValue, SSAValue], of: str, what: str) -> None:
    with role.emit.when(wrong):
        made = role.emit.instruction(OUT_OF_RANGE, *found)
        made.attributes |= {ARRAY: StringAttr(of), PLACE: StringAttr(what)}
