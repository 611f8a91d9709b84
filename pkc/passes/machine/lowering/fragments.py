"""Tiles in registers: which thread holds which element, and how it gets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from pkc.dialect.machine import b32
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import tile_type
from pkc.dialect.types import TileType, bf16, dtype_bytes, e4m3, e5m2, f16, f32, i1, i32
from pkc.passes.analysis.row_lanes import of_rows
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import Staged, WarpRole, warp_of_group, warpgroup
from pkc.passes.machine.lowering.missing import CannotLowerError, origin
from pkc.targets.layout import CHUNK, COLUMN_STEP, NEIGHBOURS, ROW_STEP, WARP_ROWS, Fragment, SharedLayout

PACKED: dict[Attribute, str] = {bf16: "bf16", f16: "f16", e4m3: "e4m3", e5m2: "e5m2"}
"""Element types of which one register has two: of 8 bits in its low half."""


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


@dataclass(frozen=True, kw_only=True)
class PieceTile(LazyTile):
    """A tile of which one piece, some columns of some rows of each warpgroup, is in `registers` at a time."""

    registers: SSAValue


Value = RegisterTile | LazyTile


def fragment_of(role: WarpRole, value: SSAValue) -> Fragment:
    """How a tile is spread over the threads of the role."""
    kind = value.type
    assert isinstance(kind, TileType)
    if role.chunk is not None:
        axes = role.axes[value]
        # Of rows, each chunk has one element.
        return Fragment(role.chunked if axes == (0,) else kind.shape, axes, 1, 0, flat=per_chunk(axes) * role.chunks)
    if role.threads.lanes is not None:
        return of_rows(kind.shape, role.axes[value], role.threads.count, role.threads.lanes)
    fragment = role.emit.target.fragment(kind.shape, role.axes[value], role.threads.warpgroups)
    if kind.rank > 2:
        raise CannotLowerError(origin(value), f"computing with tiles of {kind.rank} dimensions")
    rows = fragment.rows * fragment.warpgroups
    if not rows:
        raise CannotLowerError(origin(value), "tiles in the registers of a role without a warpgroup")
    by_row, by_column = 0 in fragment.axes, 1 in fragment.axes
    length = kind.shape[0] if by_row else 0
    short = length < ROW_STEP or length % ROW_STEP == 0
    if (length % rows and not short) or (by_column and kind.shape[-1] % COLUMN_STEP):
        shape = "x".join(map(str, kind.shape))
        what = f"a tile of {shape} in the registers of a role with {role.threads.warps} warps"
        hint = f"blocks of a multiple of {rows} rows and {COLUMN_STEP} columns; or other `consumers`"
        raise CannotLowerError(origin(value), what, hint)
    return fragment


def per_chunk(axes: tuple[int, ...]) -> int:
    """How many elements of a tile along these axes a chunk needs."""
    return NEIGHBOURS if axes[-1:] == (1,) else 1


def as_elements(role: WarpRole, value: SSAValue) -> Value:
    """A tile as one whose elements can be read; those of a tile in a stage are loaded from there."""
    found = role.tiles[value]
    if isinstance(found, Staged):
        return _from_stage(role, found, fragment_of(role, value))
    assert isinstance(found, RegisterTile | LazyTile)
    return found


def held(role: WarpRole, value: SSAValue) -> Value:
    """As `as_elements`; but a staged row or column of 32-bit elements beside MMAs, of which a thread has few, is in
    registers: each of them goes with many elements of a tile."""
    found, kind = role.tiles[value], tile_type(value)
    if not isinstance(found, Staged) or kind.rank != 1 or kind.element_type in PACKED or not role.threads.warpgroups:
        return as_elements(role, value)
    fragment = fragment_of(role, value)
    if role.chunk is not None or fragment.lanes or fragment.count > role.emit.target.threads.kept:
        return as_elements(role, value)
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
    name = PACKED[value.element_type]
    pair = emit.get(value.registers, emit.right(index, 1))
    known = constant_of(emit.bit_and(index, 1))
    low, high = emit.value(f"low_{name}", pair), emit.value(f"high_{name}", pair)
    if known is not None:
        return high if known else low
    return emit.select(emit.compare("eq", emit.bit_and(index, 1), 0), low, high)


def allocate(role: WarpRole, fragment: Fragment, element_type: Attribute, hint: str | None) -> RegisterTile:
    """Registers for a tile."""
    packed = element_type in PACKED and fragment.paired
    kind = b32 if packed else _register_type(element_type)
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
    with emit.loop(0, target.fragment.count // 2, unroll=True) as pair:
        first = emit.times(pair, 2)
        low, high = make(first), make(emit.plus(first, 1))
        emit.set(emit.value(name, low, high), target.registers, pair)


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


def _register_type(element_type: Attribute) -> Attribute:
    return f32 if element_type not in (i32, i1) else element_type


# Where an element is


def row(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue:
    """The row, in the tile, of element `index` of a thread."""
    emit, threads = role.emit, role.threads
    if role.chunk is not None:
        return emit.part(_first_of_chunk(role, fragment, index), fragment.shape[-1])
    if fragment.lanes:
        inside = emit.part(_number(role), fragment.lanes)
        return emit.plus(inside, emit.times(emit.part(index, fragment.per_row), fragment.rows))
    each = fragment.columns // 2 if fragment.columns else 2
    repeat = emit.part(index, each)
    half = emit.bit_and(emit.right(index, 1) if fragment.columns else index, 1)
    group = warpgroup(role)
    block = emit.plus(group, emit.times(repeat, fragment.warpgroups))
    inside = emit.plus(emit.times(warp_of_group(role), WARP_ROWS), emit.right(threads.lane, 2))
    return emit.plus(emit.plus(emit.times(block, fragment.rows), inside), emit.times(half, 8))


def _first_of_chunk(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue:
    """Where the chunk that element `index` is in begins, counted through the tile."""
    emit = role.emit
    assert role.chunk is not None
    further = emit.times(emit.part(index, per_chunk(fragment.axes)), role.threads.count)
    return emit.times(emit.plus(role.chunk, further), NEIGHBOURS)


def column(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue:
    """The column, in the tile, of element `index` of a thread."""
    emit = role.emit
    if role.chunk is not None:
        begin = emit.rest(_first_of_chunk(role, fragment, index), fragment.shape[-1])
        return emit.plus(begin, emit.rest(index, NEIGHBOURS))
    if fragment.lanes:
        j = emit.part(emit.rest(index, fragment.per_row), fragment.together)
        lane = emit.rest(_number(role), fragment.lanes)
        first = emit.times(emit.plus(emit.times(j, fragment.lanes), lane), fragment.together)
        return emit.plus(first, emit.rest(index, fragment.together))
    if 0 in fragment.axes:
        inside = emit.rest(index, fragment.columns // 2)
        j = emit.right(inside, 2)
    else:
        j = emit.right(index, 1)
    pair = emit.times(emit.bit_and(role.threads.lane, 3), 2)
    return emit.plus(emit.plus(emit.times(j, 8), pair), emit.bit_and(index, 1))


def _number(role: WarpRole) -> SSAValue:
    """The number of this thread in the role."""
    return role.emit.minus(role.threads.thread, role.threads.start)


def along(role: WarpRole, value: SSAValue, axis: int, index: SSAValue) -> SSAValue:
    """The position along one axis of a tile; a tile of one axis may lie along either.

    Of several axes the last one lies along columns, the others along rows, the first one outermost.
    """
    emit, fragment, shape = role.emit, fragment_of(role, value), tile_type(value).shape
    if len(shape) <= 2:
        place = fragment.axes[axis]
        return row(role, fragment, index) if place == 0 else column(role, fragment, index)
    if axis == len(shape) - 1:
        return column(role, fragment, index)
    further = emit.part(row(role, fragment, index), prod(shape[axis + 1 : -1]))
    return emit.rest(further, shape[axis]) if axis else further


def row_number(emit: Emitter, fragment: Fragment, index: SSAValue) -> SSAValue:
    """Which of the rows that a thread has element `index` is in."""
    if fragment.lanes:
        return emit.part(index, fragment.per_row)
    repeat = emit.part(index, fragment.columns // 2)
    return emit.plus(emit.times(repeat, 2), emit.bit_and(emit.right(index, 1), 1))


def column_number(emit: Emitter, fragment: Fragment, index: SSAValue) -> SSAValue:
    """Which of the columns that a thread has element `index` is in."""
    if fragment.lanes:
        return emit.rest(index, fragment.per_row)
    inside = emit.rest(index, fragment.columns // 2)
    return emit.plus(emit.times(emit.right(inside, 2), 2), emit.bit_and(index, 1))


def is_in_tile(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue | None:
    """Whether an element of a thread is in the tile; nothing if all are."""
    emit = role.emit
    inside: list[SSAValue] = []
    if fragment.cut:
        inside.append(emit.compare("slt", row(role, fragment, index), fragment.shape[0]))
    if fragment.ends_early:
        inside.append(emit.compare("slt", column(role, fragment, index), fragment.columns))
    return emit.both(*inside) if len(inside) > 1 else next(iter(inside), None)


def _from_stage(role: WarpRole, tile: Staged, fragment: Fragment) -> Value:
    if in_chunks(fragment, tile.layout, dtype_bytes(tile.type.element_type)) and not tile.transposed:
        return _chunks_from_stage(role, tile, fragment)
    pairs: dict[tuple[Block, SSAValue], SSAValue] = {}

    def read(emit: Emitter, index: SSAValue) -> SSAValue:
        even, odd = _in_pair(index) if has_pairs(tile, fragment) else (None, 0)
        if even is not None:
            if (emit.block, even) not in pairs:
                at = row(role, fragment, even), column(role, fragment, even)
                pairs[emit.block, even] = _load_pair(emit, tile, at)
            return _of_pair(emit, tile.type.element_type, pairs[emit.block, even], odd)
        rows = row(role, fragment, index) if 0 in fragment.axes else emit.const(0)
        columns = column(role, fragment, index) if 1 in fragment.axes else emit.const(0)
        if fragment.cut:
            rows = emit.least(rows, fragment.shape[0] - 1)
        if fragment.ends_early:
            columns = emit.least(columns, fragment.columns - 1)
        if tile.type.rank == 1 and fragment.axes == (0,):
            rows, columns = emit.const(0), rows
        if tile.transposed:
            rows, columns = columns, rows
        return read_shared(emit, tile, rows, columns)

    return LazyTile(fragment, tile.type.element_type, read)


def has_pairs(tile: Staged, fragment: Fragment) -> bool:
    """Whether a thread's elements of a staged tile are pairs of neighbours, beside MMAs."""
    return fragment.axes == (0, 1) and not (fragment.lanes or fragment.flat or fragment.cut or tile.transposed)


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


def _chunks_from_stage(role: WarpRole, tile: Staged, fragment: Fragment) -> RegisterTile:
    """All elements of a thread into registers, 16 bytes at a time."""
    emit, kind = role.emit, tile.type.element_type
    size = dtype_bytes(kind)
    each, words = CHUNK // size, CHUNK // 4
    target = allocate(role, fragment, kind, None)
    with emit.loop(0, fragment.count // each, unroll=True) as number:
        place = in_stage(role, fragment, tile.layout, size, emit.times(number, each))
        bits = emit.registers(words, b32)
        emit.do("load_shared_v4", bits, emit.plus(tile.address, place))
        for i in range(words):
            found = emit.get(bits, i)
            if not target.packed:
                found = emit.value("float_bits" if kind == f32 else "int_bits", found)
            emit.set(found, target.registers, emit.plus(emit.times(number, words), i))
    return target


def in_stage(role: WarpRole, fragment: Fragment, layout: SharedLayout, size: int, first: SSAValue) -> SSAValue:
    """Where in a stage a chunk of 16 bytes is of which a thread has element `first`; of one behind the tile, some."""
    emit = role.emit
    rows = row(role, fragment, first) if 0 in fragment.axes else emit.const(0)
    columns = column(role, fragment, first)
    if fragment.cut:
        rows = emit.least(rows, fragment.shape[0] - 1)
    if fragment.ends_early:
        columns = emit.least(columns, fragment.columns - CHUNK // size)
    return shared_address(emit, emit.const(0), layout, size, (rows, columns))


def in_chunks(fragment: Fragment, layout: SharedLayout, size: int) -> bool:
    """Whether a thread's elements of a staged tile are whole chunks of 16 bytes."""
    each = CHUNK // size
    many = bool(fragment.lanes) and 1 in fragment.axes and fragment.together % each == 0
    return many and size > 1 and layout.columns % each == 0


def shared_address(
    emit: Emitter, base: SSAValue, layout: SharedLayout, size: int, at: tuple[SSAValue, SSAValue]
) -> SSAValue:
    """The address of an element of a staged tile: `at` is its row and column, `size` its bytes."""
    rows, columns = at
    panel = emit.part(columns, layout.columns) if layout.panels > 1 else emit.const(0)
    inside = emit.times(emit.rest(columns, layout.columns), size)
    if layout.swizzle:
        chunks = layout.width // 16
        swizzle = emit.bit_and(emit.part(emit.congruent(rows, layout.lines * chunks), layout.lines), chunks - 1)
        chunk = emit.bit_xor(emit.right(inside, 4), swizzle)
        inside = emit.plus(emit.left(chunk, 4), emit.bit_and(inside, 15))
    start = emit.plus(emit.times(panel, layout.panel_bytes), emit.times(rows, layout.width))
    return emit.plus(base, emit.plus(start, inside))


def read_shared(emit: Emitter, tile: Staged, rows: SSAValue, columns: SSAValue) -> SSAValue:
    """One element of a staged tile."""
    kind = tile.type.element_type
    if kind in PACKED:
        size = dtype_bytes(kind)
        even = shared_address(emit, tile.address, tile.layout, size, (rows, emit.bit_and(columns, ~1 & 0xFFFF)))
        pair = emit.value("load_shared_b32" if size > 1 else "load_shared_b8x2", even)
        name = PACKED[kind]
        odd = emit.compare("ne", emit.bit_and(columns, 1), 0)
        return emit.select(odd, emit.value(f"high_{name}", pair), emit.value(f"low_{name}", pair))
    bits = emit.value("load_shared_b32", shared_address(emit, tile.address, tile.layout, 4, (rows, columns)))
    return emit.value("float_bits" if kind == f32 else "int_bits", bits)
