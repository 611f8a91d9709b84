"""Loads and stores of a long row that lies in one piece in memory and in its stage: one copy, without a tensor map."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, StoreOp
from pkc.dialect.machine import MAX_BOX
from pkc.dialect.tile import tile_type
from pkc.dialect.types import TileType
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import tma
from pkc.passes.machine.lowering.context import WarpRole, first_thread, round_the_ranks
from pkc.passes.machine.lowering.memory import Element, Elements, LocalOrRemote


def is_row(emit: Emitter, kind: TileType) -> bool:
    """Whether a tile is a row that lies in its stage without panels, and that no box has."""
    layout = emit.target.shared_layout(kind)
    return layout.rows == 1 and layout.columns > MAX_BOX


def load(role: WarpRole, op: LoadOp) -> None:
    """A row into each stage that it is committed to."""
    elements = Element(role, op) if op.local is None else LocalOrRemote(role, op, op.local)
    size = role.emit.const(role.emit.target.shared_layout(tile_type(op.result)).moved_bytes)
    for each in tma.destinations(role, op):
        with first_thread(role):
            each.announce(role, op)
            first = _first(role, elements, op.result)
            role.emit.do(f"tma_load_row{tma.hint(op)}", each.address, first, each.barrier, size)


def store(role: WarpRole, op: StoreOp | AddToArrayOp) -> None:
    """A staged row to where it belongs, or added to what is there."""
    emit, staged = role.emit, tma.staged(role, op)
    what = "store" if isinstance(op, StoreOp) else "add"
    size = emit.const(staged.layout.moved_bytes)

    def move(rank: SSAValue | None) -> None:
        target = _first(role, Element(role, op, rank), op.tile)
        emit.do(f"tma_{what}_row{tma.hint(op)}", staged.address, target, size)

    with first_thread(role):
        if tma.copies(op):
            with round_the_ranks(role) as rank:
                move(rank)
        else:
            move(None)
        emit.do("bulk_commit")


def _first(role: WarpRole, elements: Elements, tile: SSAValue) -> SSAValue:
    """The address of the first element of a tile."""
    return elements.at([role.emit.const(0)] * tile_type(tile).rank)[0]
