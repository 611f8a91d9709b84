"""Tables of rows: integers that say where the rows of a tile lie, each read by the thread that needs it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation, SSAValue

from pkc.dialect.access import LoadOp, Scatter
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.machine import b32
from pkc.dialect.tile import BroadcastOp, ClipOp, FullOp, PositionsOp, SplatOp, tile_type
from pkc.dialect.types import PGLType, TileType, dtype_bytes, i32
from pkc.passes.analysis.tables import is_table
from pkc.passes.machine.lowering import elements, fragments, indices
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.memory import Element
from pkc.passes.machine.lowering.missing import CannotLowerError, origin


def row_of(role: WarpRole, table: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
    """The element of a table at a place, as an integer; -1 past the edge of what is loaded."""
    cast = arith.IndexCastOp(_element(role, table, at), IndexType())
    role.emit.add(cast)
    return cast.result


def _element(role: WarpRole, table: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
    emit, op = role.emit, table.owner
    if not tile_type(table).rank:  # no table itself: the role has it as any other tile
        return fragments.element(role, fragments.as_elements(role, table), emit.const(0))
    found = role.tiles.get(table)
    if isinstance(found, Staged) and len(at) < 3:
        row, column = at if len(at) == 2 else (emit.const(0), at[0])
        return fragments.read_shared(emit, found, row, column)
    if isinstance(op, LoadOp):
        return _loaded(role, op, at)
    if isinstance(op, GatherOp):
        return _read(role, Picked(role, op).at(list(at)), 0)
    if isinstance(op, ClipOp):
        inside = emit.compare("slt", at[op.axis.value.data], role.dims.valid(role.blocks[op.block]))
        return emit.select(inside, _element(role, op.tile, at), elements.constant(emit, op.constant, _kind(op.result)))
    if isinstance(op, FullOp):
        return elements.constant(emit, op.constant, _kind(op.result))
    if isinstance(op, SplatOp):
        return emit.i32(role.known[op.scalar])
    if isinstance(op, PositionsOp) and not op.zigzag:
        return emit.i32(emit.plus(role.dims.position(role.blocks[op.block]), at[0]))
    if isinstance(op, BroadcastOp):
        return _element(role, op.tile, [at[axis] for axis in op.positions])
    if isinstance(op, Operation) and is_table(op):
        return elements.apply(emit, op, type(op), [_element(role, operand, at) for operand in op.operands])
    hint = "store it to an array of i32, and read that as a table in other `tasks`"
    raise CannotLowerError(origin(table), "a table of rows that is made so", hint)


def _kind(table: SSAValue) -> Attribute:
    return tile_type(table).element_type


class Picked:
    """Where the elements are that tables name along any dimension: their addresses, and whether they exist."""

    def __init__(self, role: WarpRole, op: GatherOp | Scatter, copy: SSAValue | None = None) -> None:
        """`copy` is the rank whose copy of an array is accessed, if it is not this one."""
        kind = array_type(op.array)
        self._role, self._op, self._base = role, op, role.emit.address(op.array)
        self._shard = kind.shard_dim if isinstance(kind, PGLType) else None
        if isinstance(kind, PGLType) and self._shard is None:
            self._base = role.emit.on_rank(self._base, role.rank if copy is None else copy)

    def at(self, offsets: list[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """The address of the element at these offsets within the tile, and whether it exists."""
        role, emit, op = self._role, self._role.emit, self._op
        kind, exists, linear = array_type(op.array), emit.compare("eq", emit.const(0), 0), None
        base = self._base
        for dim, (place, along) in enumerate(zip(op.places, op.axes_of_places, strict=True)):
            inside, extent = [offsets[axis] for axis in along], role.dims.extent(kind.dimensions[dim])
            if isinstance(place.type, TileType):
                coordinate = row_of(role, place, inside)
                indices.check_row(role, op, coordinate, dim=dim)
                exists = emit.both(exists, emit.compare("sge", coordinate, 0))
                exists = emit.both(exists, emit.compare("slt", coordinate, extent))
            elif inside:
                block = role.blocks[place]
                coordinate = emit.plus(role.dims.position(block), inside[0])
                exists = emit.both(exists, emit.compare("slt", inside[0], role.dims.valid(block)))
            else:
                coordinate = role.known[place]
            if dim == self._shard:
                extent = role.dims.shard_length(kind.dimensions[dim])
                base = emit.on_rank(base, emit.over(coordinate, extent))
                coordinate = emit.modulo(coordinate, extent)
            wide = emit.wide(coordinate)
            linear = wide if linear is None else emit.plus(emit.times(linear, emit.wide(extent)), wide)
        assert linear is not None
        return emit.plus(base, emit.times(linear, dtype_bytes(kind.element_type))), exists


def _loaded(role: WarpRole, op: LoadOp, at: Sequence[SSAValue]) -> SSAValue:
    """One element of memory; -1, no row, where the tile has none."""
    return _read(role, Element(role, op).at(list(at)), -1)


def _read(role: WarpRole, place: tuple[SSAValue, SSAValue], otherwise: int) -> SSAValue:
    """The element at an address, or a number where nothing is."""
    emit, (address, exists) = role.emit, place
    found = emit.registers(1, b32)
    emit.set(emit.value("bits_i32", elements.constant(emit, otherwise, i32)), found, 0)
    emit.do("load_global_v1_where", found, address, exists)
    return emit.value("int_bits", emit.get(found, 0))
