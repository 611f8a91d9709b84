"""Tiles in registers, and elements of tiles that are computed, or loaded from their stage, where they are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from pkc.dialect.machine import b32
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import EnlargeOp, tile_type
from pkc.dialect.types import TileType, bf16, dtype_bytes, e4m3, e5m2, f16, f32, i8, widened
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import shifting
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.spread import column, fragment_of, row
from pkc.passes.machine.lowering.stages import (
    in_chunks,
    in_stage,
    lies_across,
    place_across,
    read_across,
    row_of_stage,
    shared_address,
)
from pkc.targets.layout import CHUNK, Fragment

PACKED: dict[Attribute, str] = {bf16: "bf16", f16: "f16", e4m3: "e4m3", e5m2: "e5m2", i8: "i8"}
"""Element types of which one register has two: of 8 bits in its low half. Integers beyond them are the nearest one."""


@dataclass(frozen=True)
class RegisterTile:
    """A tile in registers; each register of paired 16-bit elements has two neighbours."""

    registers: SSAValue
    fragment: Fragment
    element_type: Attribute

    @property
    def packed(self) -> bool:
        return self.element_type in PACKED and self.fragment.paired


@dataclass(frozen=True)
class LazyTile:
    """A tile that is computed where it is used: `element` gives element i of its fragment, `exact`, if it is there, the
    same before it is rounded to the element type."""

    fragment: Fragment
    element_type: Attribute
    element: Callable[[Emitter, SSAValue], SSAValue]
    exact: Callable[[Emitter, SSAValue], SSAValue] | None = None
    pairs: RegisterTile | None = None
    """Registers with the same elements in pairs of 16 bits, if these are all that is done to them."""
    pair: Callable[[Emitter, SSAValue], SSAValue] | None = None
    """If two neighbours come out of a stage together: as they lie there, those of which the first is at an index."""


@dataclass(frozen=True, kw_only=True)
class PieceTile(LazyTile):
    """A tile of which one piece, some columns of some rows of each warpgroup, is in `registers` at a time."""

    registers: SSAValue


Value = RegisterTile | LazyTile


def as_elements(role: WarpRole, value: SSAValue) -> Value:
    """A tile as one whose elements can be read; those of a tile in a stage are loaded from there."""
    found = role.tiles[value]
    if isinstance(found, Staged):
        return _from_stage(role, found, fragment_of(role, value))
    assert isinstance(found, RegisterTile | LazyTile)
    return found


def held(role: WarpRole, value: SSAValue) -> Value:
    """As `as_elements`, of a row or a column that goes with many elements of a tile: what is in registers once stays
    there for all that the same block computes with it. Beside MMAs, where a thread has few of them, those of 32 bits
    are in registers."""
    before = role.held.get((value, role.emit.block))
    if isinstance(before, RegisterTile):
        return before
    found = role.tiles[value]
    made = _in_registers(role, found, value) if isinstance(found, Staged) else None
    made = as_elements(role, value) if made is None else made
    if isinstance(found, Staged):
        role.held[value, role.emit.block] = made
    return made


def _in_registers(role: WarpRole, found: Staged, value: SSAValue) -> RegisterTile | None:
    """The registers to which a staged row or column beside MMAs is loaded; none if it is read where it is used."""
    kind = tile_type(value)
    if kind.rank != 1 or kind.element_type in PACKED or not role.threads.warpgroups:
        return None
    fragment = fragment_of(role, value)
    if role.chunk is not None or fragment.lanes or fragment.count > role.emit.target.threads.kept:
        return None
    emit, made = role.emit, allocate(role, fragment, kind.element_type, value.name_hint)
    if fragment.axes == (0,):
        copy(role, _from_stage(role, found, fragment), made)
        return made
    name, pair = "float_bits" if kind.element_type == f32 else "int_bits", emit.registers(2, b32)
    with emit.loop(0, fragment.count // 2, unroll=True) as number:
        first = emit.times(number, 2)
        at = emit.const(0), column(role, fragment, first)
        emit.do("load_shared_v2", pair, shared_address(emit, found.address, found.layout, 4, at))
        for i in range(2):
            emit.set(emit.value(name, emit.get(pair, i)), made.registers, emit.plus(first, i))
    return made


def element(role: WarpRole, value: Value, index: SSAValue) -> SSAValue:
    """Element `index` of a thread's fragment of a tile: f32, i32 or i1."""
    emit = role.emit
    if isinstance(value, LazyTile):
        return value.element(emit, index)
    if not value.packed:
        return emit.get(value.registers, index)
    return _of_packed(emit, value.registers, PACKED[value.element_type], index)


def _of_packed(emit: Emitter, registers: SSAValue, name: str, index: SSAValue) -> SSAValue:
    """One of the elements of which each register has two."""
    pair = emit.get(registers, emit.right(index, 1))
    known = constant_of(emit.bit_and(index, 1))
    low, high = emit.value(f"low_{name}", pair), emit.value(f"high_{name}", pair)
    if known is not None:
        return high if known else low
    return emit.select(emit.compare("eq", emit.bit_and(index, 1), 0), low, high)


def allocate(role: WarpRole, fragment: Fragment, element_type: Attribute, hint: str | None) -> RegisterTile:
    """Registers for a tile."""
    packed = element_type in PACKED and fragment.paired
    kind = b32 if packed else widened(element_type)
    count = fragment.count // 2 if packed else fragment.count
    return RegisterTile(role.emit.registers(count, kind, hint), fragment, element_type)


def fill(role: WarpRole, target: RegisterTile, make: Callable[[SSAValue], SSAValue], at_once: int = 1) -> None:
    """Write every element of a tile: `make` gives the one at an index, of so many neighbours one after the other."""
    emit = role.emit
    if not target.packed:
        with emit.loop(0, target.fragment.count // at_once, unroll=True) as number:
            first = emit.times(number, at_once)
            for i in [first, *(emit.plus(first, more) for more in range(1, at_once))]:
                emit.set(make(i), target.registers, i)
        return
    name = f"pack_{PACKED[target.element_type]}"

    def pair(first: SSAValue) -> SSAValue:
        low, high = make(first), make(emit.plus(first, 1))
        return emit.value(name, low, high)

    fill_pairs(role, target, pair)


def fill_pairs(role: WarpRole, target: RegisterTile, make: Callable[[SSAValue], SSAValue]) -> None:
    """Write every register of a tile of 16 bits: `make` gives the pair whose first element is at an index."""
    emit = role.emit
    with emit.loop(0, target.fragment.count // 2, unroll=True) as number:
        emit.set(make(emit.times(number, 2)), target.registers, number)


def copy(role: WarpRole, value: Value, target: RegisterTile) -> None:
    """All elements of one tile into the registers of another."""
    if isinstance(value, RegisterTile) and value.registers is target.registers:
        return
    if isinstance(value, RegisterTile) and value.packed:
        emit = role.emit
        with emit.loop(0, target.fragment.count // 2, unroll=True) as i:
            emit.set(emit.get(value.registers, i), target.registers, i)
        return
    fill(role, target, lambda i: element(role, value, i))


def materialize(role: WarpRole, value: SSAValue) -> RegisterTile:
    """A tile in registers: it gets new ones if it has none yet."""
    found = as_elements(role, value)
    if isinstance(found, RegisterTile):
        return found
    target = allocate(role, found.fragment, tile_type(value).element_type, value.name_hint)
    copy(role, found, target)
    role.tiles[value] = target
    return target


def only_use(value: SSAValue, op: Operation) -> bool:
    """Whether `op` may overwrite a value: it is the only one that reads it, once for each time that it is made."""
    if len(list(value.uses)) > 1:
        return False
    made = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    while op.parent_block() is not made:
        outer = op.parent_op()
        if not isinstance(outer, scf.IfOp):
            return False
        op = outer
    return True


def _from_stage(
    role: WarpRole, tile: Staged, fragment: Fragment, source: Callable[[SSAValue], SSAValue] | None = None
) -> Value:
    """The elements of a staged tile; with `source`, those of a row come from the row that it gives."""
    if in_chunks(fragment, tile.layout, dtype_bytes(tile.type.element_type)) and not tile.transposed:
        return _chunks_from_stage(role, tile, fragment, source)
    if lies_across(tile, fragment):
        return _across_stage(role, tile, fragment)
    pairs: dict[tuple[Block, SSAValue], SSAValue] = {}
    paired = has_pairs(tile, fragment)

    def pair(emit: Emitter, first: SSAValue) -> SSAValue:
        if (emit.block, first) not in pairs:
            at = row(role, fragment, first), column(role, fragment, first)
            inside = emit.least(at[0], fragment.shape[0] - 1) if fragment.cut else at[0]
            inside = inside if source is None else source(inside)
            pairs[emit.block, first] = _load_pair(emit, tile, (inside, at[1]))
        return pairs[emit.block, first]

    def read(emit: Emitter, index: SSAValue) -> SSAValue:
        even, odd = _in_pair(index) if paired else (None, 0)
        if even is not None:
            return _of_pair(emit, tile.type.element_type, pair(emit, even), odd)
        rows, columns = in_tile(role, fragment, tile.type, index)
        rows = rows if source is None else source(rows)
        if tile.transposed:
            rows, columns = columns, rows
        return read_shared(emit, tile, rows, columns)

    return LazyTile(fragment, tile.type.element_type, read, pair=pair if paired else None)


def _across_stage(role: WarpRole, tile: Staged, fragment: Fragment) -> Value:
    """The elements of a transposed tile, of which a thread has some rows side by side."""
    kind, registers = tile.type.element_type, read_across(role, tile, fragment)

    def read(emit: Emitter, index: SSAValue) -> SSAValue:
        place = place_across(emit, fragment, index)
        if kind in PACKED:
            return _of_packed(emit, registers, PACKED[kind], place)
        return emit.value("float_bits" if kind == f32 else "int_bits", emit.get(registers, place))

    return LazyTile(fragment, kind, read)


def in_tile(role: WarpRole, fragment: Fragment, kind: TileType, index: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The row and column of an element of a thread, of the last ones where the tile has no more."""
    emit = role.emit
    rows = row(role, fragment, index) if 0 in fragment.axes else emit.const(0)
    columns = column(role, fragment, index) if 1 in fragment.axes else emit.const(0)
    if fragment.cut:
        rows = emit.least(rows, fragment.shape[0] - 1)
    if fragment.ends_early:
        columns = emit.least(columns, fragment.columns - 1)
    return in_rows(emit, kind, rows) if fragment.axes == (0,) else (rows, columns)


def enlarged(role: WarpRole, tile: Staged, op: EnlargeOp) -> Value:
    """A tile whose elements are copies of those in a stage, each read for all neighbours that are copies of it."""
    emit, fragment, kind, times = role.emit, fragment_of(role, op.result), tile_type(op.result), op.times

    def source(number: SSAValue) -> SSAValue:
        """The row in the stage of which a row is a copy: of more than two axes, rows go through all but the last."""
        found, step = emit.const(0), 1
        shape = tile.type.shape[::-1] if tile.transposed else tile.type.shape
        for few, many, copies in reversed([*zip(shape, kind.shape, times, strict=True)][:-1]):
            place = emit.part(emit.rest(number, many), copies)
            found, number = emit.plus(found, emit.times(place, step)), emit.part(number, many)
            step *= few
        return found

    if times[-1] == 1:
        return _from_stage(role, tile, fragment, source)
    alike = gcd(times[-1], fragment.together if fragment.lanes else 2) if 1 in fragment.axes else 1
    made = emit.registers(fragment.count // alike, widened(kind.element_type), op.result.name_hint)
    with emit.loop(0, fragment.count // alike, unroll=True) as number:
        index = emit.times(number, alike)
        rows, columns = in_tile(role, fragment, kind, index)
        at = source(rows), emit.part(columns, times[-1])
        emit.set(read_shared(emit, tile, *(at[::-1] if tile.transposed else at)), made, number)
    return LazyTile(fragment, kind.element_type, lambda emit, i: emit.get(made, emit.part(i, alike)))


def in_rows(emit: Emitter, kind: TileType, number: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where in its stage an element is of a tile that lies along rows: they go through all of its axes."""
    if kind.rank == 1:
        return emit.const(0), number
    return emit.part(number, kind.shape[-1]), emit.rest(number, kind.shape[-1])


def has_pairs(tile: Staged, fragment: Fragment) -> bool:
    """Whether a thread's elements of a staged tile are pairs of neighbours, beside MMAs."""
    return fragment.axes == (0, 1) and not (fragment.lanes or fragment.flat or tile.transposed)


def _load_pair(emit: Emitter, tile: Staged, at: tuple[SSAValue, SSAValue]) -> SSAValue:
    """Two neighbours of a staged tile, of which `at` is the first: two registers, or, of 16 and 8 bits, one."""
    size = dtype_bytes(tile.type.element_type)
    place = shared_address(emit, tile.address, tile.layout, size, at)
    if size < 4:
        return emit.value("load_shared_b32" if size > 1 else "load_shared_b8x2", place)
    both = emit.registers(2, b32)
    emit.do("load_shared_v2", both, place)
    return both


def _of_pair(emit: Emitter, kind: Attribute, pair: SSAValue, odd: int) -> SSAValue:
    """One of two neighbours."""
    if kind in PACKED:
        return emit.value(f"{'high' if odd else 'low'}_{PACKED[kind]}", pair)
    return emit.value("float_bits" if kind == f32 else "int_bits", emit.get(pair, odd))


def _in_pair(index: SSAValue) -> tuple[SSAValue | None, int]:
    """The index of the first of two neighbours, if it is known to be even, and which of them this one is."""
    odd = isinstance(index.owner, arith.AddiOp) and constant_of(index.owner.rhs) == 1
    even = index.owner.operands[0] if odd and isinstance(index.owner, arith.AddiOp) else index
    twice = isinstance(even.owner, arith.MuliOp) and constant_of(even.owner.rhs) == 2
    return (even if twice else None), int(odd)


def _chunks_from_stage(
    role: WarpRole, tile: Staged, fragment: Fragment, source: Callable[[SSAValue], SSAValue] | None = None
) -> RegisterTile:
    """All elements of a thread into registers, 16 bytes at a time; with `source`, from the row that it gives."""
    emit, kind = role.emit, tile.type.element_type
    size = dtype_bytes(kind)
    each, words = CHUNK // size, CHUNK // 4
    target = allocate(role, fragment, kind, None)
    load = "load_shared_v4_around" if fragment.columns % each else "load_shared_v4"
    with emit.loop(0, fragment.count // each, unroll=True) as number:
        first = emit.times(number, each)
        assert not tile.free, "a stage is read behind its release"
        place = emit.plus(tile.address, in_stage(role, fragment, tile.layout, size, first, source))
        bits = emit.registers(words, b32)
        if tile.shifts is None:
            emit.do(load, bits, place)
        else:
            inside = row_of_stage(role, fragment, first, source)
            shifting.read(emit, emit.plus(place, shifting.of_row(emit, tile.shifts, inside)), size, bits)
        for i in range(words):
            found = emit.get(bits, i)
            if not target.packed:
                found = emit.value("float_bits" if kind == f32 else "int_bits", found)
            emit.set(found, target.registers, emit.plus(emit.times(number, words), i))
    return target


def read_shared(emit: Emitter, tile: Staged, rows: SSAValue, columns: SSAValue) -> SSAValue:
    """One element of a staged tile."""
    assert not tile.free, "a stage is read behind its release"
    kind = tile.type.element_type
    if tile.shifts is not None:
        size = dtype_bytes(kind)
        place = shared_address(emit, tile.address, tile.layout, size, (rows, columns))
        word = shifting.read_one(emit, emit.plus(place, shifting.of_row(emit, tile.shifts, rows)), size)
        if kind in PACKED:
            return emit.value(f"low_{PACKED[kind]}", word)
        return emit.value("float_bits" if kind == f32 else "int_bits", word)
    if kind in PACKED:
        size = dtype_bytes(kind)
        even = shared_address(emit, tile.address, tile.layout, size, (rows, emit.bit_and(columns, ~1 & 0xFFFF)))
        pair = emit.value("load_shared_b32" if size > 1 else "load_shared_b8x2", even)
        name = PACKED[kind]
        odd = emit.compare("ne", emit.bit_and(columns, 1), 0)
        return emit.select(odd, emit.value(f"high_{name}", pair), emit.value(f"low_{name}", pair))
    bits = emit.value("load_shared_b32", shared_address(emit, tile.address, tile.layout, 4, (rows, columns)))
    return emit.value("float_bits" if kind == f32 else "int_bits", bits)
