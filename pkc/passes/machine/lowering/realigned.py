"""Rows that begin anywhere, between memory and their stage: threads move whole chunks and shift them into place.

A chunk of a row that begins within 16 bytes of memory lies in two of these. A thread loads both, of which each has
something of the row, and takes from them what is its own; a store reads two chunks of the stage, and writes 16 bytes
at once where all of them are the tile's, single elements at the ends of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.machine import b32
from pkc.dialect.program import packed
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import moves_async
from pkc.dialect.types import PGLType, TileType, dtype_bytes
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import fragments, shifting, stages, tma
from pkc.passes.machine.lowering.context import Staged, WarpRole, first_thread
from pkc.passes.machine.lowering.memory import Element, Elements, store_element
from pkc.passes.machine.lowering.shifting import WORD, WORDS
from pkc.passes.machine.lowering.tma import placed
from pkc.targets.layout import CHUNK

_LEAST = 2 * CHUNK
"""Bytes of a row that are worth it: a shorter one has two ends, and little between."""

Along = Callable[[SSAValue, SSAValue], list[SSAValue]]
"""From a row and a column of a tile, its positions along each axis."""


def fits(role: WarpRole, op: Operation, kind: TileType) -> bool:
    """Whether the rows of a tile are neighbours in memory, as they are in its stage."""
    if not isinstance(op, LoadOp | StoreOp) or packed(op) or moves_async(op) or not kind.rank:
        return False
    index, array, size = op.indices[-1], array_type(op.array), dtype_bytes(kind.element_type)
    layout = role.emit.target.shared_layout(kind)
    panels = layout.panels == 1 or layout.columns * size % CHUNK == 0
    if index not in role.blocks or not panels or kind.shape[-1] * size < _LEAST:
        return False
    last = len(array.dimensions) - 1
    sharded = isinstance(array, PGLType) and array.shard_dim == last
    return not sharded or placed(role, op)[0][last].shard is not None


def load(
    role: WarpRole,
    op: LoadOp,
    places: tuple[Elements, SSAValue],
    along: Along,
    address: SSAValue,
) -> None:
    """A tile into its stage at an address; zero behind the end of a block or of the array."""
    emit, kind = role.emit, tile_type(op.result)
    elements, rows = places
    size, columns = dtype_bytes(kind.element_type), kind.shape[-1]
    layout, each = emit.target.shared_layout(kind), -(-columns * size // CHUNK)
    valid = role.dims.valid(role.blocks[op.indices[-1]])
    known = constant_of(valid)
    ends = known is None or known < columns
    total = emit.times(rows, each)
    at_once = emit.target.threads.loads
    count = constant_of(total)
    evenly = count is not None and count % (role.threads.count * at_once) == 0
    with emit.loop(*_threads(role), total, role.threads.count * at_once) as begin:
        loaded: list[tuple[SSAValue, SSAValue, SSAValue, SSAValue, SSAValue]] = []
        for step in range(at_once):
            number = emit.plus(begin, step * role.threads.count)
            if not evenly:  # some load the last chunk again, which is the same
                number = emit.least(number, emit.minus(total, 1))
            row, chunk = emit.part(number, each), emit.rest(number, each)
            start, exists = elements.at(along(row, emit.const(0)))
            start = emit.plus(start, emit.wide(emit.times(chunk, CHUNK)))
            shift = shifting.inside(emit, start)
            left = emit.minus(emit.times(valid, size), emit.times(chunk, CHUNK))
            first = emit.both(exists, emit.compare("sgt", left, 0))
            second = emit.both(exists, emit.compare("sgt", emit.minus(emit.plus(left, shift), CHUNK), 0))
            words, halves = shifting.pair(emit)
            for i in range(2 * WORDS):
                emit.set(emit.value("bits_f32", emit.real(0.0)), words, i)
            down = emit.minus(start, emit.wide(shift))
            for number, (half, there) in enumerate(zip(halves, (first, second), strict=True)):
                emit.do("load_global_v4_around_where", half, emit.plus(down, number * CHUNK), there)
            loaded.append((words, shift, left, row, emit.times(chunk, CHUNK // size)))
        for words, shift, left, row, column in loaded:
            found = shifting.shifted(emit, words, shift, size)
            if ends:
                found = [_cut(emit, word, emit.minus(left, i * WORD), size) for i, word in enumerate(found)]
            moved = emit.registers(WORDS, b32)
            for i, word in enumerate(found):
                emit.set(word, moved, i)
            here = stages.shared_address(emit, address, layout, size, (row, column))
            emit.do("store_shared_v4", moved, here)


def load_rows(role: WarpRole, op: LoadOp) -> None:
    """Each row of a tile into its place in each stage that the tile is committed to, by one copy with what lies around
    it; the stage says how far behind the begin of its place the first one is, and how much more each further one."""
    emit, kind = role.emit, tile_type(op.result)
    elements, layout, zero = Element(role, op), emit.target.shared_layout(kind), emit.const(0)
    size, columns = dtype_bytes(kind.element_type), kind.shape[-1]
    length = emit.times(emit.least(role.dims.valid(role.blocks[op.indices[-1]]), columns), size)

    def start(row: SSAValue) -> SSAValue:
        return elements.at([row, zero][2 - kind.rank :])[0]

    for each in tma.destinations(role, op):
        with first_thread(role):
            first = start(zero)
            apart = emit.minus(start(emit.const(1)), first) if kind.rank > 1 else emit.wide_const(0)
            shifting.note(emit, each.address, layout, shifting.inside(emit, first), shifting.inside(emit, apart))
            rows = emit.least(elements.rows, kind.shape[0]) if kind.rank > 1 else emit.const(1)
            with emit.loop(0, rows) as row:
                begin = start(row)
                shift = shifting.inside(emit, begin)
                moved = emit.bit_and(emit.plus(emit.plus(shift, length), CHUNK - 1), -CHUNK)
                place = emit.plus(each.address, emit.times(row, layout.width))
                emit.do("mbarrier_announce", each.barrier, moved)
                emit.do("tma_load_row_around", place, emit.minus(begin, emit.wide(shift)), each.barrier, moved)


def store(role: WarpRole, op: StoreOp, tile: Staged, places: tuple[Elements, SSAValue], along: Along) -> None:
    """A tile from its stage; what lies around it in memory stays as it is."""
    emit, kind = role.emit, tile_type(op.tile)
    size, columns = dtype_bytes(kind.element_type), kind.shape[-1]
    length = emit.times(emit.least(role.dims.valid(role.blocks[op.indices[-1]]), columns), size)
    _whole_chunks(role, tile, places, along, length)
    _ends(role, op, tile, places, along, length)


def _whole_chunks(
    role: WarpRole, tile: Staged, places: tuple[Elements, SSAValue], along: Along, length: SSAValue
) -> None:
    """The 16 bytes at each multiple of 16 between the first and the last element of a row, of `length` bytes."""
    emit, size = role.emit, dtype_bytes(tile.type.element_type)
    chunks = -(-tile.type.shape[-1] * size // CHUNK)
    elements, rows = places
    total, at_once = emit.times(rows, chunks), emit.target.threads.loads
    with emit.loop(*_threads(role), total, role.threads.count * at_once) as begin:
        found: list[tuple[SSAValue, SSAValue, SSAValue, SSAValue]] = []
        for step in range(at_once):
            number = emit.plus(begin, step * role.threads.count)
            row, place = emit.part(number, chunks), emit.rest(number, chunks)
            start, exists = elements.at(along(row, emit.const(0)))
            shift = shifting.inside(emit, emit.minus(emit.wide_const(0), start))
            offset = emit.times(place, CHUNK)
            ends = emit.compare("sle", emit.plus(emit.plus(offset, shift), CHUNK), length)
            inside = emit.both(emit.both(exists, ends), emit.compare("slt", number, total))
            words, halves = shifting.pair(emit)
            at = emit.least(row, _last_row(tile))
            first, inside_stage = _in_stage(emit, tile, at, emit.plus(offset, shift))
            for half, here in zip(halves, first, strict=True):
                emit.do("load_shared_v4_around", half, here)
            found.append((words, inside_stage, emit.plus(start, emit.wide(emit.plus(offset, shift))), inside))
        for words, shift, target, inside in found:
            moved = emit.registers(WORDS, b32)
            for i, word in enumerate(shifting.shifted(emit, words, shift, size)):
                emit.set(word, moved, i)
            emit.do("store_global_v4_where", moved, target, inside)


def _in_stage(
    emit: Emitter, tile: Staged, row: SSAValue, begin: SSAValue
) -> tuple[tuple[SSAValue, SSAValue], SSAValue]:
    """Two chunks of a stage, in which are 16 bytes of a row from byte `begin` on, and how far inside these begin."""
    layout, size = tile.layout, dtype_bytes(tile.type.element_type)
    if layout.panels == 1 and not layout.swizzle:
        place = emit.plus(emit.plus(tile.address, emit.times(row, layout.width)), begin)
        if tile.shifts is not None:
            place = emit.plus(place, shifting.of_row(emit, tile.shifts, row))
        down = emit.bit_and(place, -CHUNK)
        return (down, emit.plus(down, CHUNK)), emit.bit_and(place, CHUNK - 1)
    last = -(-tile.type.shape[-1] * size // CHUNK) - 1
    chunk = emit.part(begin, CHUNK)
    both = (emit.least(emit.plus(chunk, more), last) for more in range(2))
    first, second = (emit.times(number, CHUNK // size) for number in both)
    places = [stages.shared_address(emit, tile.address, layout, size, (row, column)) for column in (first, second)]
    return (places[0], places[1]), emit.bit_and(begin, CHUNK - 1)


def _last_row(tile: Staged) -> int:
    return prod(tile.type.shape[:-1]) - 1


def _ends(
    role: WarpRole, op: StoreOp, tile: Staged, places: tuple[Elements, SSAValue], along: Along, length: SSAValue
) -> None:
    """The elements of a row before the first multiple of 16 bytes, and from the last one on, each by another thread."""
    emit, size = role.emit, dtype_bytes(tile.type.element_type)
    each = CHUNK // size
    elements, rows = places
    with emit.loop(*_threads(role), emit.times(rows, 2 * each), role.threads.count) as number:
        row, one = emit.part(number, 2 * each), emit.rest(number, each)
        last = emit.compare("ne", emit.bit_and(number, each), 0)
        start, exists = elements.at(along(row, emit.const(0)))
        before = emit.least(shifting.inside(emit, emit.minus(emit.wide_const(0), start)), length)
        behind = emit.bit_and(emit.minus(length, before), CHUNK - 1)
        count = emit.right(emit.select(last, behind, before), size.bit_length() - 1)
        skipped = emit.select(last, emit.right(emit.minus(length, behind), size.bit_length() - 1), emit.const(0))
        with emit.when(emit.both(exists, emit.compare("slt", one, count))):
            column = emit.plus(skipped, one)
            element = fragments.read_shared(emit, tile, row, column)
            store_element(role, op, emit.plus(start, emit.wide(emit.times(column, size))), element)


def _threads(role: WarpRole) -> tuple[SSAValue]:
    return (role.emit.minus(role.threads.thread, role.threads.start),)


def _cut(emit: Emitter, word: SSAValue, left: SSAValue, size: int) -> SSAValue:
    """A word of which so many bytes are the tile's: zero behind them."""
    zero = emit.value("bits_f32", emit.real(0.0))
    for kept in range(WORD - size, 0, -size):
        up = emit.value("shift_pair", zero, word, emit.const(8 * kept))
        cut = emit.value("shift_pair", up, zero, emit.const(8 * (WORD - kept)))
        word = emit.select(emit.compare("eq", left, kept), cut, word)
    return emit.select(emit.compare("sgt", left, 0), word, zero)
