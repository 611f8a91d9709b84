"""Accesses to rows that a table picks, on whichever rank each of them is."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.access import Scatter
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.tile import tile_type
from pkc.dialect.types import PGLType, dtype_bytes
from pkc.passes.machine.lowering import fragments, indices, memory, spread, tables
from pkc.passes.machine.lowering.blocks import Placed
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.missing import CannotLowerError


class Rows:
    """Where the elements of an access to rows are: their addresses, and whether they exist.

    Row i of the tile is the row of the array that entry i of the table names; if that is not one, none.
    """

    def __init__(self, role: WarpRole, op: GatherOp | Scatter, copy: SSAValue | None = None) -> None:
        """`copy` is the rank whose copy of an array is accessed, if it is not this one."""
        kind = array_type(op.array)
        self._role, self._op, self._copy = role, op, copy
        self._local = op.local if isinstance(op, GatherOp) else None
        self._pairs = op.names_ranks
        self._heap = isinstance(kind, PGLType)
        self._shard = kind.shard_dim if isinstance(kind, PGLType) else None
        self._dims = kind.dimensions
        self._size = dtype_bytes(kind.element_type)
        self._places = [self._place(number, index) for number, index in enumerate(op.indices, 1)]
        self._extents = [
            role.dims.shard_length(dim) if number == self._shard else role.dims.extent(dim)
            for number, dim in enumerate(kind.dimensions)
        ]
        self._axes = [number for number, index in enumerate(op.indices, 1) if index in role.blocks]
        self._base = role.emit.address(op.array)

    def _place(self, number: int, index: SSAValue) -> Placed:
        role, split = self._role, number == self._shard
        found = role.blocks.get(index)
        if found is None:
            return role.dims.at(self._dims[number], role.known[index], split=split)
        if split and found.shard is None:
            raise CannotLowerError(self._op, "rows of an array whose columns straddle shards")
        return found

    def at(self, offsets: list[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """The address of the element at these offsets within the tile, and whether it exists."""
        role, emit = self._role, self._role.emit
        if role.step is not None and self._op.results and self._op.results[0] in role.ahead:
            return self._of_known_row(emit.get(role.ahead[self._op.results[0]], role.step), offsets[1:])
        first, inside = offsets[0], dict(zip(self._axes, offsets[1:], strict=True))
        if self._pairs:
            owner, row = (tables.row_of(role, self._op.rows, [first, emit.const(i)]) for i in (0, 1))
        else:
            owner, row = role.rank if self._copy is None else self._copy, tables.row_of(role, self._op.rows, [first])
        nowhere = indices.check_row(role, self._op, row, owner if self._pairs else None)
        exists = emit.both(emit.compare("sge", row, 0), emit.compare("slt", row, role.dims.extent(self._dims[0])))
        if nowhere is not None:
            exists = emit.both(exists, emit.negated(nowhere))
        base = self._base
        if self._local is not None:
            base, row = _near_or_far(role, self._local, base, row)
        if self._shard == 0:
            owner, row = emit.over(row, self._extents[0]), emit.modulo(row, self._extents[0])
        linear = emit.wide(row)
        for number, place in enumerate(self._places, 1):
            coordinate = place.local if number == self._shard else role.dims.position(place)
            if number in inside:
                coordinate = emit.plus(coordinate, inside[number])
                exists = emit.both(exists, emit.compare("slt", inside[number], role.dims.valid(place)))
            if number == self._shard:
                owner = role.dims.owner(place)
            linear = emit.plus(emit.times(linear, emit.wide(self._extents[number])), emit.wide(coordinate))
        address = emit.plus(base, emit.times(linear, self._size))
        if self._heap:
            address = emit.on_rank(address, owner)
        return address, exists

    def _of_known_row(self, row: SSAValue, offsets: list[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """The same, where the address of the row is known."""
        role, emit = self._role, self._role.emit
        inside = dict(zip(self._axes, offsets, strict=True))
        exists, linear = emit.compare("ne", row, emit.wide_const(0)), emit.const(0)
        for number, place in enumerate(self._places, 1):
            coordinate = role.dims.position(place)
            if number in inside:
                coordinate = emit.plus(coordinate, inside[number])
                exists = emit.both(exists, emit.compare("slt", inside[number], role.dims.valid(place)))
            linear = emit.plus(emit.times(linear, self._extents[number]), coordinate)
        return emit.plus(row, emit.times(emit.wide(linear), self._size)), exists


def elements_of(role: WarpRole, op: GatherOp | Scatter, copy: SSAValue | None = None) -> Rows | tables.Picked:
    """Where the elements are that tables name; `copy` is the rank whose copy is accessed, if it is not this one."""
    return Rows(role, op, copy) if op.of_rows else tables.Picked(role, op, copy)


def _near_or_far(role: WarpRole, local: SSAValue, far: SSAValue, row: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where an array begins that has a row, and the row in it: this rank's shard of `local`, or the array at `far`."""
    emit, kind = role.emit, local.type
    assert isinstance(kind, PGLType)
    shard = role.dims.shard_length(kind.dimensions[0])
    is_near = emit.compare("eq", emit.over(row, shard), role.rank)
    near = emit.on_rank(emit.address(local), role.rank)
    return emit.select(is_near, near, far), emit.select(is_near, emit.modulo(row, shard), row)


def row_address(role: WarpRole, op: GatherOp, entry: SSAValue) -> SSAValue:
    """The address of the row that an entry of the table names, of an array that is private or sharded by rows; 0 if it
    names none."""
    emit, kind = role.emit, array_type(op.array)
    rows, *others = kind.dimensions
    row = tables.row_of(role, op.rows, [entry])
    indices.check_row(role, op, row)
    exists = emit.both(emit.compare("sge", row, 0), emit.compare("slt", row, role.dims.extent(rows)))
    address = emit.address(op.array)
    if op.local is not None:
        address, row = _near_or_far(role, op.local, address, row)
    if isinstance(kind, PGLType):
        shard = role.dims.shard_length(rows)
        address = emit.on_rank(address, emit.over(row, shard))
        row = emit.modulo(row, shard)
    linear = emit.wide(row)
    for dim in others:
        linear = emit.times(linear, emit.wide(role.dims.extent(dim)))
    address = emit.plus(address, emit.times(linear, dtype_bytes(kind.element_type)))
    return emit.select(exists, address, emit.wide_const(0))


def gather(role: WarpRole, op: GatherOp) -> None:
    """Rows into registers; zero where there is none."""
    kind, fragment = tile_type(op.result), spread.fragment_of(role, op.result)
    target = fragments.allocate(role, fragment, kind.element_type, op.result.name_hint)
    role.tiles[op.result] = target
    memory.fill_tile(role, op, op.result, target, elements_of(role, op))
