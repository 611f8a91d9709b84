"""Rows that tables name, some of which lie behind each other: TMA brings these in boxes (`pk-plan-boxes`)."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.machine import TensorMapOp
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import boxes
from pkc.dialect.types import PGLType, TileType
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import indices, tables, tma
from pkc.passes.machine.lowering.context import WarpRole, first_thread


def load(role: WarpRole, op: GatherOp) -> None:
    """A tile into each stage that it is committed to, box by box."""
    emit, kind = role.emit, tile_type(op.result)
    planned = boxes(op)
    assert planned is not None
    rows, along = planned
    layout, rank = emit.target.shared_layout(kind), array_type(op.array).rank
    copies = isinstance(op.array.type, PGLType)
    box = [1] * (rank + copies)
    box[0], box[rank - 1 - along] = layout.columns, rows
    stages = tma.destinations(role, op)
    with first_thread(role):
        found = TensorMapOp(op.array, emit.const(0), box, layout.swizzle, None)
        emit.add(found)
        # All entries are on their way before the first is awaited.
        places = [_place(role, op, first, rows, along) for first in range(0, kind.shape[0], rows)]
        for stage in stages:
            stage.announce(role, op)
            for number, place in enumerate(places):
                for panel in range(layout.panels):
                    target = emit.plus(stage.address, panel * layout.panel_bytes + number * rows * layout.width)
                    inside = [*place[:-1], emit.plus(place[-1], panel * layout.columns)]
                    coordinates = [*reversed(inside), *([role.rank] if copies else [])]
                    emit.do(f"tma_load_{len(coordinates)}d", target, found.result, stage.barrier, *coordinates)


def _place(role: WarpRole, op: GatherOp, first: int, rows: int, along: int) -> list[SSAValue]:
    """Where the box that begins with row `first` lies in each dimension; outside of the array, where TMA finds zeros,
    if the tables name none."""
    emit = role.emit
    found: list[SSAValue] = []
    for dim, place in enumerate(op.places):
        if isinstance(place.type, TileType):
            row = tables.row_of(role, place, [emit.const(first)])
            indices.check_row(role, op, row, dim=dim)
            found.append(_outside(emit, row, rows) if dim == along else row)
        elif place in role.blocks:
            found.append(role.dims.position(role.blocks[place]))
        else:
            found.append(role.known[place])
    return found


def _outside(emit: Emitter, row: SSAValue, rows: int) -> SSAValue:
    """A place of which no row of a box lies in the array, in place of a row that is none."""
    return emit.select(emit.compare("slt", row, 0), emit.const(-rows), row)
