"""Tiles in registers: element-wise operations, reductions of rows, and what only shows other values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from pkc.dialect import elementwise as ew
from pkc.dialect.layout import COLUMN_STEP, ROW_STEP, WARPGROUP_ROWS, Fragment, SharedLayout
from pkc.dialect.machine import b32
from pkc.dialect.tile import (
    BroadcastOp,
    CastOp,
    ClipOp,
    FullOp,
    PositionsOp,
    RowMaxOp,
    RowReduction,
    SplatOp,
    tile_type,
)
from pkc.dialect.types import TileType, bf16, dtype_bytes, f16, f32, i1, i32
from pkc.passes.emit import Emitter, constant_of
from pkc.passes.lowering import rounding
from pkc.passes.lowering.context import Staged, Worker, warpgroup
from pkc.passes.lowering.missing import CannotLowerError, origin

FLAT = 8
"""Neighbouring elements that a thread without a warpgroup works on at once: 16 bytes of a 16-bit type."""

PACKED: dict[Attribute, str] = {bf16: "bf16", f16: "f16"}
"""Element types of which one register holds two."""


@dataclass(frozen=True)
class Held:
    """A tile in registers; those of a two-dimensional tile of 16-bit elements hold two neighbours each."""

    registers: SSAValue
    fragment: Fragment
    element_type: Attribute

    @property
    def packed(self) -> bool:
        return self.element_type in PACKED and self.fragment.axes == (0, 1)


@dataclass(frozen=True)
class Shown:
    """A tile that is computed where it is used: element i of its fragment."""

    fragment: Fragment
    element_type: Attribute
    element: Callable[[Emitter, SSAValue], SSAValue]


Value = Held | Shown


def fragment_of(worker: Worker, value: SSAValue) -> Fragment:
    """How a tile is spread over the threads of the worker."""
    kind = value.type
    assert isinstance(kind, TileType)
    if dtype_bytes(kind.element_type) == 1 and kind.element_type != i1:
        raise CannotLowerError(origin(value), "computing with 8-bit floats", "multiply (`@`) or copy them as they are")
    if worker.chunk is not None:
        return Fragment(kind.shape, worker.axes[value], 1, FLAT * worker.chunks)
    fragment = Fragment(kind.shape, worker.axes[value], worker.threads.warpgroups)
    if kind.rank > 2:
        raise CannotLowerError(origin(value), f"computing with tiles of {kind.rank} dimensions")
    rows = WARPGROUP_ROWS * fragment.warpgroups
    if not rows:
        raise CannotLowerError(origin(value), "tiles in the registers of a part without a warpgroup")
    by_row, by_column = 0 in fragment.axes, 1 in fragment.axes
    short = by_row and kind.shape[0] < rows == WARPGROUP_ROWS and kind.shape[0] % ROW_STEP == 0
    if (by_row and kind.shape[0] % rows and not short) or (by_column and kind.shape[-1] % COLUMN_STEP):
        shape = "x".join(map(str, kind.shape))
        what = f"a tile of {shape} in the registers of a part with {worker.threads.warps} warps"
        hint = f"blocks of a multiple of {rows} rows and {COLUMN_STEP} columns; or other `consumers`"
        raise CannotLowerError(origin(value), what, hint)
    return fragment


def held(worker: Worker, value: SSAValue) -> Value:
    """A tile as elements; one that lies in a stage is read from there."""
    found = worker.tiles[value]
    if isinstance(found, Staged):
        return _from_stage(worker, found, fragment_of(worker, value))
    assert isinstance(found, Held | Shown)
    return found


def element(worker: Worker, value: Value, index: SSAValue) -> SSAValue:
    """Element `index` of a thread's part of a tile: f32, i32 or i1."""
    emit = worker.emit
    if isinstance(value, Shown):
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


def allocate(worker: Worker, fragment: Fragment, element_type: Attribute, hint: str | None) -> Held:
    """Registers for a tile."""
    packed = element_type in PACKED and fragment.axes == (0, 1)
    kind = b32 if packed else _register_type(element_type)
    count = fragment.count // 2 if packed else fragment.count
    return Held(worker.emit.registers(count, kind, hint), fragment, element_type)


def fill(worker: Worker, target: Held, make: Callable[[SSAValue], SSAValue]) -> None:
    """Write every element of a tile: `make` gives the one at an index."""
    emit = worker.emit
    if not target.packed:
        with emit.loop(0, target.fragment.count, unroll=True) as i:
            emit.set(make(i), target.registers, i)
        return
    name = f"pack_{PACKED[target.element_type]}"
    with emit.loop(0, target.fragment.count // 2, unroll=True) as pair:
        first = emit.times(pair, 2)
        low, high = make(first), make(emit.plus(first, 1))
        emit.set(emit.value(name, low, high), target.registers, pair)


def copy(worker: Worker, value: Value, target: Held) -> None:
    """All elements of one tile into the registers of another."""
    if isinstance(value, Held) and value.registers is target.registers:
        return
    if isinstance(value, Held) and value.packed:
        emit = worker.emit
        with emit.loop(0, target.fragment.count // 2, unroll=True) as i:
            emit.set(emit.get(value.registers, i), target.registers, i)
        return
    fill(worker, target, lambda i: element(worker, value, i))


def materialize(worker: Worker, value: SSAValue) -> Held:
    """A tile in registers of its own, if it is not in registers yet."""
    found = held(worker, value)
    if isinstance(found, Held):
        return found
    target = allocate(worker, found.fragment, tile_type(value).element_type, value.name_hint)
    copy(worker, found, target)
    worker.tiles[value] = target
    return target


def _register_type(element_type: Attribute) -> Attribute:
    return f32 if element_type not in (i32, i1) else element_type


# Where an element is


def row(worker: Worker, fragment: Fragment, index: SSAValue) -> SSAValue:
    """The row, in the tile, of element `index` of a thread."""
    emit, threads = worker.emit, worker.threads
    if worker.chunk is not None:
        return emit.over(_first_of_chunk(worker, index), fragment.shape[-1])
    each = fragment.columns // 2 if fragment.columns else 2
    repeat = emit.over(index, each)
    half = emit.bit_and(emit.right(index, 1) if fragment.columns else index, 1)
    group = warpgroup(worker)
    block = emit.plus(group, emit.times(repeat, fragment.warpgroups))
    inside = emit.plus(emit.times(emit.bit_and(threads.warp, 3), 16), emit.right(threads.lane, 2))
    return emit.plus(emit.plus(emit.times(block, WARPGROUP_ROWS), inside), emit.times(half, 8))


def _first_of_chunk(worker: Worker, index: SSAValue) -> SSAValue:
    """Where the chunk that element `index` is in begins, counted through the tile."""
    emit = worker.emit
    assert worker.chunk is not None
    further = emit.times(emit.over(index, FLAT), worker.threads.count)
    return emit.times(emit.plus(worker.chunk, further), FLAT)


def column(worker: Worker, fragment: Fragment, index: SSAValue) -> SSAValue:
    """The column, in the tile, of element `index` of a thread."""
    emit = worker.emit
    if worker.chunk is not None:
        return emit.plus(emit.modulo(_first_of_chunk(worker, index), fragment.shape[-1]), emit.modulo(index, FLAT))
    if 0 in fragment.axes:
        inside = emit.modulo(index, fragment.columns // 2)
        j = emit.right(inside, 2)
    else:
        j = emit.right(index, 1)
    pair = emit.times(emit.bit_and(worker.threads.lane, 3), 2)
    return emit.plus(emit.plus(emit.times(j, 8), pair), emit.bit_and(index, 1))


def _along(worker: Worker, fragment: Fragment, axis: int, index: SSAValue) -> SSAValue:
    """The position along one axis of a tile; a tile of one axis may lie along either."""
    place = fragment.axes[axis]
    return row(worker, fragment, index) if place == 0 else column(worker, fragment, index)


def _from_stage(worker: Worker, tile: Staged, fragment: Fragment) -> Shown:
    def read(emit: Emitter, index: SSAValue) -> SSAValue:
        rows = row(worker, fragment, index) if 0 in fragment.axes else emit.const(0)
        columns = column(worker, fragment, index) if 1 in fragment.axes else emit.const(0)
        if fragment.cut:
            rows = emit.least(rows, fragment.shape[0] - 1)
        if tile.type.rank == 1 and fragment.axes == (0,):
            rows, columns = emit.const(0), rows
        if tile.transposed:
            rows, columns = columns, rows
        return read_shared(emit, tile, rows, columns)

    return Shown(fragment, tile.type.element_type, read)


def shared_address(
    emit: Emitter, base: SSAValue, layout: SharedLayout, size: int, at: tuple[SSAValue, SSAValue]
) -> SSAValue:
    """The address of an element of a staged tile: `at` is its row and column, `size` its bytes."""
    rows, columns = at
    panel = emit.over(columns, layout.columns)
    inside = emit.times(emit.modulo(columns, layout.columns), size)
    if layout.swizzle:
        turn = emit.bit_and(emit.over(rows, layout.lines), layout.width // 16 - 1)
        chunk = emit.bit_xor(emit.right(inside, 4), turn)
        inside = emit.plus(emit.left(chunk, 4), emit.bit_and(inside, 15))
    start = emit.plus(emit.times(panel, layout.panel_bytes), emit.times(rows, layout.width))
    return emit.plus(base, emit.plus(start, inside))


def read_shared(emit: Emitter, tile: Staged, rows: SSAValue, columns: SSAValue) -> SSAValue:
    """One element of a staged tile."""
    kind = tile.type.element_type
    if kind in PACKED:
        even = shared_address(emit, tile.address, tile.layout, 2, (rows, emit.bit_and(columns, ~1 & 0xFFFF)))
        pair = emit.value("load_shared_b32", even)
        name = PACKED[kind]
        odd = emit.compare("ne", emit.bit_and(columns, 1), 0)
        return emit.select(odd, emit.value(f"high_{name}", pair), emit.value(f"low_{name}", pair))
    bits = emit.value("load_shared_b32", shared_address(emit, tile.address, tile.layout, 4, (rows, columns)))
    return emit.value("float_bits" if kind == f32 else "int_bits", bits)


# Operations


def show(worker: Worker, op: Operation) -> bool:
    """Operations whose elements are computed where they are used; whether `op` is one."""
    if isinstance(op, FullOp):
        value = op.constant
        kind = tile_type(op.result).element_type
        _shown(worker, op.result, lambda emit, _: _constant(emit, value, kind))
    elif isinstance(op, SplatOp):
        scalar = op.scalar
        _shown(worker, op.result, lambda emit, _: _scalar(emit, worker.known.get(scalar, scalar)))
    elif isinstance(op, PositionsOp):
        block = worker.blocks[op.block]
        fragment = fragment_of(worker, op.result)
        start = worker.dims.position(block)
        _shown(worker, op.result, lambda emit, i: _as_i32(emit, emit.plus(start, _along(worker, fragment, 0, i))))
    elif isinstance(op, BroadcastOp):
        _broadcast(worker, op)
    elif isinstance(op, ClipOp):
        _clip(worker, op)
    else:
        return False
    return True


def _shown(worker: Worker, value: SSAValue, element_of: Callable[[Emitter, SSAValue], SSAValue]) -> None:
    worker.tiles[value] = Shown(fragment_of(worker, value), tile_type(value).element_type, element_of)


def _broadcast(worker: Worker, op: BroadcastOp) -> None:
    source, target = held(worker, op.tile), fragment_of(worker, op.result)
    if worker.chunk is not None and source.fragment.axes:
        raise CannotLowerError(op, "combining a tile with rows or columns in a part without a warpgroup")
    if len(target.axes) != 2 or not source.fragment.axes:
        _shown(worker, op.result, lambda emit, i: element(worker, source, i if source.fragment.axes else emit.const(0)))
        return

    def at(emit: Emitter, index: SSAValue) -> SSAValue:
        inside = emit.modulo(index, target.columns // 2)
        if source.fragment.axes == (0,):
            repeat = emit.over(index, target.columns // 2)
            return element(worker, source, emit.plus(emit.times(repeat, 2), emit.bit_and(emit.right(index, 1), 1)))
        return element(worker, source, emit.plus(emit.times(emit.right(inside, 2), 2), emit.bit_and(index, 1)))

    _shown(worker, op.result, at)


def _clip(worker: Worker, op: ClipOp) -> None:
    source = held(worker, op.tile)
    kind = tile_type(op.result).element_type
    valid = worker.dims.valid(worker.blocks[op.block])
    axis, fill_value = op.axis.value.data, op.constant

    def at(emit: Emitter, index: SSAValue) -> SSAValue:
        inside = emit.compare("slt", _along(worker, source.fragment, axis, index), valid)
        return emit.select(inside, element(worker, source, index), _constant(emit, fill_value, kind))

    _shown(worker, op.result, at)


def compute(worker: Worker, op: Operation) -> bool:
    """Element-wise operations, casts and reductions of rows; whether `op` is one."""
    if isinstance(op, CastOp):
        _cast(worker, op)
    elif isinstance(op, RowReduction):
        _reduce(worker, op)
    elif type(op) in _ELEMENTWISE:
        sources = [held(worker, operand) for operand in op.operands]
        make = _ELEMENTWISE[type(op)]
        _compute(worker, op.results[0], lambda i: make(worker.emit, op, [element(worker, s, i) for s in sources]))
    else:
        return False
    return True


def _compute(worker: Worker, value: SSAValue, make: Callable[[SSAValue], SSAValue]) -> None:
    target = allocate(worker, fragment_of(worker, value), tile_type(value).element_type, value.name_hint)
    fill(worker, target, make)
    worker.tiles[value] = target


def _cast(worker: Worker, op: CastOp) -> None:
    source = held(worker, op.tile)
    before, after = tile_type(op.tile).element_type, tile_type(op.result).element_type

    def convert(emit: Emitter, index: SSAValue) -> SSAValue:
        value = element(worker, source, index)
        if before == i32 and after != i32:
            cast = arith.SIToFPOp(value, f32)
            emit.add(cast)
            return cast.result
        if after == i32 and before != i32:
            cast = arith.FPToSIOp(value, i32)
            emit.add(cast)
            return cast.result
        return value

    target = fragment_of(worker, op.result)
    if after in PACKED and target.axes == (0, 1):
        _compute(worker, op.result, lambda i: convert(worker.emit, i))
        return
    if after in PACKED:
        name = PACKED[after]
        zero = worker.emit.real(0.0)

        def rounded(emit: Emitter, index: SSAValue) -> SSAValue:
            return emit.value(f"low_{name}", emit.value(f"pack_{name}", convert(emit, index), zero))

        _shown(worker, op.result, rounded)
        return
    _shown(worker, op.result, convert)


def _reduce(worker: Worker, op: RowReduction) -> None:
    """Over the registers of a thread, then over the four threads that share a row."""
    emit = worker.emit
    source = held(worker, op.tile)
    fragment = fragment_of(worker, op.result)
    combine = _combiner(op, tile_type(op.result).element_type)
    target = allocate(worker, fragment, tile_type(op.result).element_type, op.result.name_hint)
    pairs = source.fragment.columns // 8
    for repeat in range(fragment.repeats):
        for half in range(2):
            first = repeat * source.fragment.columns // 2 + half * 2
            at = emit.const(repeat * 2 + half)
            emit.set(element(worker, source, emit.const(first)), target.registers, at)
            emit.set(
                combine(emit, emit.get(target.registers, at), element(worker, source, emit.const(first + 1))),
                target.registers,
                at,
            )
            with emit.loop(1, pairs, unroll=True) as j:
                place = emit.plus(emit.times(j, 4), first)
                both = combine(emit, element(worker, source, place), element(worker, source, emit.plus(place, 1)))
                emit.set(combine(emit, emit.get(target.registers, at), both), target.registers, at)
            for distance in (1, 2):
                mine = emit.get(target.registers, at)
                other = emit.value("shuffle_xor", mine, emit.const(distance))
                emit.set(combine(emit, mine, other), target.registers, at)
    worker.tiles[op.result] = target


_Combine = Callable[[Emitter, SSAValue, SSAValue], SSAValue]


def _combiner(op: RowReduction, kind: Attribute) -> _Combine:
    if kind == i32:
        return lambda emit, a, b: emit.binary(arith.MaxSIOp if isinstance(op, RowMaxOp) else arith.AddiOp, a, b)
    if isinstance(op, RowMaxOp):
        return lambda emit, a, b: emit.value("max_nan", a, b)
    return lambda emit, a, b: emit.binary(arith.AddfOp, a, b)


# Element by element

_Make = Callable[[Emitter, Operation, list[SSAValue]], SSAValue]
_LOG2_E = 1.4426950408889634


def _constant(emit: Emitter, value: float, kind: Attribute) -> SSAValue:
    if kind in (i32, i1):
        op = arith.ConstantOp(IntegerAttr(int(value), i32 if kind == i32 else i1))
    else:
        op = arith.ConstantOp(FloatAttr(value, f32))
    emit.add(op)
    return op.result


def _scalar(emit: Emitter, value: SSAValue) -> SSAValue:
    return _as_i32(emit, value) if isinstance(value.type, IndexType) else value


def _as_i32(emit: Emitter, value: SSAValue) -> SSAValue:
    op = arith.IndexCastOp(value, i32)
    emit.add(op)
    return op.result


def _by(real: type[Operation] | str | None, integer: type[Operation] | None = None) -> _Make:
    """An operation on f32, by an instruction of the table or of `arith`, and one on i32."""

    def make(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
        if isinstance(real, str) and (values[0].type == f32 or integer is None):
            return emit.value(real, *values)
        kind = real if values[0].type == f32 else integer
        assert kind is not None and not isinstance(kind, str)
        op = kind(*values)
        emit.add(op)
        return op.results[0]

    return make


def _exp(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
    return emit.value("exp2_f32", emit.binary(arith.MulfOp, values[0], emit.real(_LOG2_E)))


def _negate(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
    zero = _constant(emit, -0.0 if values[0].type == f32 else 0, values[0].type)
    return emit.binary(arith.SubfOp if values[0].type == f32 else arith.SubiOp, zero, values[0])


def _absolute(emit: Emitter, op: Operation, values: list[SSAValue]) -> SSAValue:
    if values[0].type == f32:
        return emit.value("absolute", values[0])
    return emit.binary(arith.MaxSIOp, values[0], _negate(emit, op, values))


def _not(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
    return emit.binary(arith.XOrIOp, values[0], _constant(emit, 1, i1))


def _compare(emit: Emitter, op: Operation, values: list[SSAValue]) -> SSAValue:
    assert isinstance(op, ew.CompareOp)
    name = str(op.predicate.data)
    if values[0].type == f32:
        ordered = ("u" if name == "ne" else "o") + name
        found: Operation = arith.CmpfOp(values[0], values[1], ordered)
    else:
        found = arith.CmpiOp(values[0], values[1], name if name in ("eq", "ne") else f"s{name}")
    emit.add(found)
    return found.results[0]


def _select(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
    return emit.select(values[0], values[1], values[2])


_ELEMENTWISE: dict[type[Operation], _Make] = {
    ew.NegOp: _negate,
    ew.AbsOp: _absolute,
    ew.ExpOp: _exp,
    ew.Exp2Op: _by("exp2_f32"),
    ew.Log2Op: _by("log2_f32"),
    ew.SqrtOp: _by("sqrt_f32"),
    ew.NotOp: _not,
    ew.AddOp: _by(arith.AddfOp, arith.AddiOp),
    ew.SubOp: _by(arith.SubfOp, arith.SubiOp),
    ew.MulOp: _by(arith.MulfOp, arith.MuliOp),
    ew.DivOp: _by("divide"),
    ew.FloorDivOp: lambda emit, _, values: rounding.divide_down(emit, *values),
    ew.ModOp: lambda emit, _, values: rounding.remainder_down(emit, *values),
    ew.MaxOp: _by("max_nan", arith.MaxSIOp),
    ew.MinOp: _by("min_nan", arith.MinSIOp),
    ew.AndOp: _by(None, arith.AndIOp),
    ew.OrOp: _by(None, arith.OrIOp),
    ew.CompareOp: _compare,
    ew.SelectOp: _select,
}
