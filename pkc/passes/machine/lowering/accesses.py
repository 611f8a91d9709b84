"""Accesses to arrays, each by the way that is planned: TMA, threads between memory and a stage, or registers."""

from __future__ import annotations

from functools import reduce

from xdsl.ir import SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, Scatter, StoreOp
from pkc.dialect.by_table import AddByTableOp, GatherOp
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import begins_anywhere, moves_by_tma, only_whole, unread_axes
from pkc.passes.analysis.multiples import cut_blocks
from pkc.passes.machine.lowering import boxes, memory, realigned, rows, tma, unstaging, whole_rows
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.missing import CannotLowerError


def load(role: WarpRole, op: LoadOp) -> None:
    """A tile: into the stage that it is committed to, or into registers."""
    if only_whole(op):
        whole = _is_whole(role, op)
        with role.emit.when(whole):
            _load_by_tma(role, op)
        with role.emit.when(role.emit.negated(whole)):
            unstaging.load(role, op)
    elif moves_by_tma(op):
        _load_by_tma(role, op)
    elif unstaging.is_carried(role, op):
        unstaging.load(role, op)
    else:
        memory.load(role, op)


def _load_by_tma(role: WarpRole, op: LoadOp) -> None:
    if begins_anywhere(op):
        realigned.load_rows(role, op)
        return
    (whole_rows if whole_rows.is_row(role.emit, tile_type(op.result)) else tma).load(role, op)


def gather(role: WarpRole, op: GatherOp) -> None:
    """Rows that a table picks: into the stage that they are committed to, or into registers."""
    if moves_by_tma(op):
        boxes.load(role, op)
    elif unstaging.is_carried(role, op):
        unstaging.load(role, op)
    else:
        rows.gather(role, op)


def scatter(role: WarpRole, op: Scatter) -> None:
    """A tile from its stage, or from registers, to where tables say."""
    _by_threads(role, op)


def scatter_add(role: WarpRole, op: AddByTableOp) -> None:
    """A tile added to where tables say, if the schedule lets that be in any order."""
    if not role.launch.kernel.in_any_order:
        hint = (
            "`schedule(deterministic=False)` lets each contribution be added where it lives, in no order; "
            "sums of rows that `gather` brings have one"
        )
        raise CannotLowerError(op, "a sum, in a defined order, into rows picked by a table", hint)
    _by_threads(role, op)


def _is_whole(role: WarpRole, op: LoadOp) -> SSAValue:
    """Whether all blocks of a load that may end inside of its array are whole."""
    blocks = [role.dims.is_whole(role.blocks[block.result]) for block in cut_blocks(op, unread_axes(op))]
    return reduce(role.emit.both, blocks)


def store(role: WarpRole, op: StoreOp | AddToArrayOp) -> None:
    """A tile from its stage, or from registers."""
    if moves_by_tma(op):
        (whole_rows if whole_rows.is_row(role.emit, tile_type(op.tile)) else tma).store(role, op)
    else:
        _by_threads(role, op)


def add(role: WarpRole, op: AddToArrayOp) -> None:
    """A tile from its stage, or from registers, added where it belongs, if the schedule lets that be in any order."""
    if not role.launch.kernel.in_any_order:
        hint = "`schedule(deterministic=False)` allows sums in any order; or give each rank a separate array"
        raise CannotLowerError(op, "`store_add` in a defined order", hint)
    store(role, op)


def _by_threads(role: WarpRole, op: memory.Writing) -> None:
    tile = role.tiles[op.tile]
    if isinstance(tile, Staged) and (not role.threads.warpgroups or unstaging.fits(op, tile)):
        unstaging.store(role, op, tile)
    elif isinstance(op, Scatter):
        memory.store(role, op, lambda rank: rows.elements_of(role, op, rank))
    else:
        memory.store(role, op, lambda rank: memory.Element(role, op, rank))
