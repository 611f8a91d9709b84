"""Lists of the entries of a table by the rows that they name, and sums of rows that lists name, by threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from pkc.dialect.access import array_type, is_pgl
from pkc.dialect.inverse import BOUNDS, PARTS, InvertOp, SumRowsOp
from pkc.dialect.machine import SubviewOp, b32
from pkc.dialect.types import RANKS, Dim, Layout, PGLType, dtype_bytes, f32, i32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import indices
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.fragments import FLAT, PACKED
from pkc.passes.machine.lowering.memory import Element
from pkc.targets.layout import CHUNK

_TOGETHER = 8
"""Loads of 16 bytes of a table that a thread has in flight."""

_ROWS = 4
"""Rows of slots that a thread has in flight."""

_CHUNKS = 4
"""Chunks of 16 bytes of each of them."""

_WORD = 4
"""Bytes of an entry; and entries that a thread loads at once."""


def _local(role: WarpRole, array: SSAValue) -> SSAValue:
    """Where this rank's copy or shard of an array begins."""
    emit = role.emit
    if not isinstance(array.type, PGLType):
        return emit.address(array)
    return emit.plus(emit.address(array), emit.times(emit.wide(role.rank), emit.launch_value("heap_stride")))


def _elements(role: WarpRole, dims: Sequence[Dim]) -> SSAValue:
    total = role.emit.const(1)
    for dim in dims:
        total = role.emit.times(total, role.dims.extent(dim))
    return total


def _index(emit: Emitter, bits: SSAValue) -> SSAValue:
    cast = arith.IndexCastOp(emit.value("int_bits", bits), IndexType())
    emit.add(cast)
    return cast.result


def _word(emit: Emitter, value: SSAValue) -> SSAValue:
    return emit.value("bits_i32", emit.i32(value))


def _nothing(emit: Emitter) -> SSAValue:
    """A register of zero, whatever it has."""
    return emit.value("bits_f32", emit.real(0.0))


def _at(emit: Emitter, base: SSAValue, number: SSAValue) -> SSAValue:
    """The address of an entry."""
    return emit.plus(base, emit.times(emit.wide(number), _WORD))


def _add(emit: Emitter, register: SSAValue, value: SSAValue) -> None:
    emit.set(emit.plus(emit.get(register, 0), value), register, 0)


def _one_if(emit: Emitter, condition: SSAValue) -> SSAValue:
    return emit.select(condition, emit.const(1), emit.const(0))


# The inverse of a table


@dataclass(frozen=True)
class _Window:
    """The rows of which a warp lists the entries, one for each thread: from `first` on, `count` of them; those of this
    rank begin at `low`. It looks at the entries from `start` to `stop`."""

    low: SSAValue
    first: SSAValue
    count: SSAValue
    start: SSAValue
    stop: SSAValue


def invert(role: WarpRole, op: InvertOp) -> None:
    """A few warps have as many rows as one has threads, and each of them a part of the table: it goes through that once
    to count, and once to list. Counts of all parts are in `bounds`: with them each warp knows where its entries go.

    What comes before the entries of these rows follows from the table, too, so no CTA waits for another.
    """
    emit, threads, block = role.emit, role.threads, role.blocks[op.rows]
    warp, parts = threads.arch.warp, next(n for n in (PARTS, 2, 1) if threads.warps % n == 0)
    length, position = emit.least(role.dims.valid(block), block.extent), role.dims.position(block)
    low = emit.minus(position, block.local) if block.shard is not None else emit.const(0)
    bounds, order = _local(role, op.bounds), _local(role, op.order)
    number = emit.minus(threads.warp, threads.first)
    part, team = emit.rest(number, parts), emit.part(number, parts)
    total = _elements(role, array_type(op.table).dimensions)
    each = emit.times(emit.round_up_over(total, warp * _WORD * parts), warp * _WORD)
    start = emit.times(part, each)
    stop = emit.least(emit.plus(start, each), total)
    with emit.loop(0, length, warp * threads.warps // parts) as turn:
        group = emit.plus(turn, emit.times(team, warp))
        count = emit.most(emit.least(emit.minus(length, group), warp), 0)
        window = _Window(low, emit.plus(position, group), count, start, stop)
        row = emit.plus(emit.plus(block.local, group), threads.lane)
        limits = _at(emit, bounds, emit.times(row, BOUNDS))
        before, found = _counted(role, op, window)
        exists = emit.compare("slt", threads.lane, count)
        with emit.when(exists):
            for first, value in ((2, found), (2 + PARTS, before)):
                emit.do("store_global_b32", _at(emit, limits, emit.plus(part, first)), _word(emit, value))
        emit.do(threads.sync)
        place, end = _places(role, limits, exists, part, parts)
        with emit.when(emit.both(exists, emit.compare("eq", part, 0))):
            for at, value in enumerate((emit.get(place, 0), end)):
                emit.do("store_global_b32", emit.plus(limits, at * _WORD), _word(emit, value))

        def list_entry(mine: SSAValue, entry: SSAValue) -> None:
            with emit.when(mine):
                emit.do("store_global_b32", _at(emit, order, emit.get(place, 0)), _word(emit, entry))
                _add(emit, place, emit.const(1))

        _scan(role, op, window, None, list_entry)


def _counted(role: WarpRole, op: InvertOp, window: _Window) -> tuple[SSAValue, SSAValue]:
    """Of the entries of a part, how many name rows of this rank before the window, and how many this thread's row."""
    emit = role.emit
    earlier, found, before = (emit.registers(1, IndexType(), hint) for hint in ("earlier", "found", "before"))
    for register in (earlier, found, before):
        emit.set(emit.const(0), register, 0)

    def note(value: SSAValue) -> None:
        indices.check_row(role, op, value)
        inside = emit.both(emit.compare("sge", value, window.low), emit.compare("slt", value, window.first))
        _add(emit, earlier, _one_if(emit, inside))

    _scan(role, op, window, note, lambda mine, entry: _add(emit, found, _one_if(emit, mine)))
    with emit.loop(0, role.threads.arch.warp) as lane:
        _add(emit, before, emit.value("shuffle_index", emit.get(earlier, 0), lane))
    return emit.get(before, 0), emit.get(found, 0)


def _places(
    role: WarpRole, limits: SSAValue, exists: SSAValue, part: SSAValue, parts: int
) -> tuple[SSAValue, SSAValue]:
    """A register with where the entries begin that a part has of this thread's row, first where those of all parts
    begin; and where these end."""
    emit, lanes = role.emit, role.threads.arch.warp
    counts = emit.registers(2 * PARTS, b32)
    for at in range(2 * PARTS):
        emit.set(_word(emit, emit.const(0)), counts, at)
    for first in (0, PARTS):
        for at in range(first, first + parts):
            view = SubviewOp(counts, at, 1)
            emit.add(view)
            emit.do("load_global_v1_where", view.result, emit.plus(limits, (2 + at) * _WORD), exists)
    every, here, place = (emit.registers(1, IndexType()) for _ in range(3))
    for register in (every, here, place):
        emit.set(emit.const(0), register, 0)
    for number in range(parts):
        found = _index(emit, emit.get(counts, number))
        _add(emit, every, found)
        _add(emit, here, emit.select(emit.compare("sgt", part, number), found, emit.const(0)))
        # All rows of a window have the same before them.
        before = _index(emit, emit.get(counts, PARTS + number))
        _add(emit, place, emit.value("shuffle_index", before, emit.const(0)))
    total = emit.get(every, 0)
    with emit.loop(0, lanes) as lane:
        others = emit.value("shuffle_index", total, lane)
        _add(emit, place, emit.select(emit.compare("slt", lane, role.threads.lane), others, emit.const(0)))
    end = emit.plus(emit.get(place, 0), total)
    _add(emit, place, emit.get(here, 0))
    return place, end


def _scan(
    role: WarpRole,
    op: InvertOp,
    window: _Window,
    note: Callable[[SSAValue], None] | None,
    found: Callable[[SSAValue, SSAValue], None],
) -> None:
    """Go through the entries of a window in their order: `note` gets what each names, in any thread; `found`, in all
    threads of the warp, whether an entry names this thread's row, and its number."""
    emit, lanes = role.emit, role.threads.arch.warp
    table, each = _local(role, op.table), lanes * _WORD
    length = emit.most(emit.minus(window.stop, window.start), 0)
    whole = emit.plus(window.start, emit.times(emit.over(length, each * _TOGETHER), each * _TOGETHER))

    def entries(start: SSAValue, together: int, *, ends: bool) -> None:
        bits = emit.registers(together * _WORD, b32)
        first = emit.plus(start, emit.times(role.threads.lane, _WORD))
        for step in range(together):
            view = SubviewOp(bits, step * _WORD, _WORD)
            emit.add(view)
            address = _at(emit, table, emit.plus(first, step * each))
            if not ends:
                emit.do("load_global_v4", view.result, address)
                continue
            for place in range(_WORD):
                emit.set(_word(emit, emit.const(-1)), bits, place)
                single = SubviewOp(bits, place, 1)
                emit.add(single)
                exists = emit.compare("slt", emit.plus(first, place), window.stop)
                emit.do("load_global_v1_where", single.result, emit.plus(address, place * _WORD), exists)
        for step in range(together):
            _look(role, window, bits, step, emit.plus(start, step * each), note, found)

    with emit.loop(window.start, whole, each * _TOGETHER) as start:
        entries(start, _TOGETHER, ends=False)
    with emit.loop(whole, window.stop, each) as start:
        entries(start, 1, ends=True)


def _look(
    role: WarpRole,
    window: _Window,
    bits: SSAValue,
    step: int,
    start: SSAValue,
    note: Callable[[SSAValue], None] | None,
    found: Callable[[SSAValue, SSAValue], None],
) -> None:
    """The entries from `start` on, `_WORD` of each thread."""
    emit, lane = role.emit, role.threads.lane
    places: list[SSAValue] = []
    hits = emit.const(0)
    for place in range(_WORD):
        value = _index(emit, emit.get(bits, step * _WORD + place))
        if note is not None:
            note(value)
        inside = emit.minus(value, window.first)
        hit = emit.both(emit.compare("sge", inside, 0), emit.compare("slt", inside, window.count))
        hits = emit.plus(hits, _one_if(emit, hit))
        places.append(emit.select(hit, inside, emit.const(-1)))
    left = emit.registers(1, IndexType())
    emit.set(emit.value("vote", emit.compare("ne", hits, 0)), left, 0)
    with emit.loop(0, emit.value("count_bits", emit.get(left, 0))):
        now = emit.get(left, 0)
        source = emit.value("lowest_bit", now)
        emit.set(emit.bit_and(now, emit.minus(now, 1)), left, 0)
        for place, inside in enumerate(places):
            mine = emit.compare("eq", emit.value("shuffle_index", inside, source), lane)
            found(mine, emit.plus(emit.plus(start, emit.times(source, _WORD)), place))


# Sums of rows


def sum_rows(role: WarpRole, op: SumRowsOp) -> None:
    """Each thread adds up 16 bytes of 16-bit elements at once, or as many elements of 32 bits, where rows begin and end
    at multiples of that; else single elements."""
    emit = role.emit
    last, kind = role.blocks[op.indices[-1]], array_type(op.array)
    if last.extent % FLAT or len(op.indices) == 1:
        _sum(role, op, 1)
        return
    ends = (role.dims.extent(kind.dimensions[-1]), role.dims.row_length(kind), role.dims.valid(last))
    whole = emit.compare("eq", emit.const(0), 0)
    for end in ends:
        whole = emit.both(whole, emit.compare("eq", emit.bit_and(end, FLAT - 1), 0))
    with emit.when(whole):
        _sum(role, op, FLAT)
    with emit.when(emit.negated(whole)):
        _sum(role, op, 1)


def _sum(role: WarpRole, op: SumRowsOp, count: int) -> None:
    """Store the sums of a block. A thread has a row at a time, and a few chunks of `count` elements of it, for which it
    reads the list once."""
    emit, threads = role.emit, role.threads
    blocks = [role.blocks[index] for index in op.indices]
    extents = [block.extent for block in blocks[1:]]
    chunks = _CHUNKS * CHUNK // (count * dtype_bytes(array_type(op.array).element_type)) if count > 1 else 1
    chunks = next(n for n in (chunks, 1) if not extents or extents[-1] % (n * count) == 0)
    each = prod(extents) // (count * chunks)
    rows = emit.least(role.dims.valid(blocks[0]), blocks[0].extent)
    bounds = _local(role, op.bounds)
    first = emit.minus(threads.thread, threads.start)
    with emit.loop(first, emit.times(rows, each), threads.count) as number:
        row = emit.part(number, each)
        places = [[row, *offsets] for offsets in _offsets(emit, emit.rest(number, each), extents, count, chunks)]
        limit = _at(emit, bounds, emit.times(emit.plus(blocks[0].local, row), BOUNDS))
        begin, end = (_index(emit, emit.value("load_global_b32", emit.plus(limit, at))) for at in (0, _WORD))
        listed = _Listed(role, op, [offsets for _, *offsets in places], count)
        total = _added(listed, begin, end)
        if not is_pgl(op.array, Layout.Replicate):
            _put(emit, op, total, Element(role, op), places, count)
            return
        with emit.loop(0, role.dims.extent(RANKS)) as rank:
            _put(emit, op, total, Element(role, op, rank), places, count)


def _offsets(emit: Emitter, number: SSAValue, extents: Sequence[int], count: int, chunks: int) -> list[list[SSAValue]]:
    """Where each chunk of a thread begins along each axis of the columns."""
    found: list[SSAValue] = []
    for extent in reversed(extents):
        here = extent if found else extent // (count * chunks)
        inside = emit.rest(number, here)
        found.append(inside if found else emit.times(inside, count))
        number = emit.part(number, here)
    if not found:
        return [[]]
    last, *others = found
    apart = extents[-1] // chunks
    return [[*reversed(others), emit.plus(last, chunk * apart)] for chunk in range(chunks)]


class _Listed:
    """The rows of slots that a list names, as far as one thread adds them up: some chunks of each."""

    def __init__(self, role: WarpRole, op: SumRowsOp, offsets: Sequence[Sequence[SSAValue]], count: int) -> None:
        emit, kind = role.emit, array_type(op.array)
        self.emit, self.element, self.count, self.chunks = emit, kind.element_type, count, len(offsets)
        self._size = dtype_bytes(kind.element_type)
        self._order, self._slots = _local(role, op.order), emit.address(op.slots)
        self._entries = _elements(role, array_type(op.order).dimensions[1:])
        self._columns = _elements(role, kind.dimensions[1:])
        places = [self._chunk(role, op, chunk) for chunk in offsets]
        self._places = [place for place, _ in places]
        self._exist = [exists for _, exists in places]

    def _chunk(self, role: WarpRole, op: SumRowsOp, offsets: Sequence[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """Where in a row a chunk begins, and whether the row has it."""
        emit = self.emit
        place, exists = emit.const(0), emit.compare("eq", emit.const(0), 0)
        dims = array_type(op.array).dimensions[1:]
        for dim, index, offset in zip(dims, op.indices[1:], offsets, strict=True):
            block = role.blocks[index]
            position = emit.plus(role.dims.position(block), offset)
            place = emit.plus(emit.times(place, role.dims.extent(dim)), position)
            exists = emit.both(exists, emit.compare("slt", offset, role.dims.valid(block)))
        return place, exists

    def row(self, place: SSAValue, exists: SSAValue) -> SSAValue:
        """Where the row begins that a place of the list names; not used if there is no such place."""
        emit, entry = self.emit, self.emit.registers(1, b32)
        emit.set(_nothing(emit), entry, 0)
        emit.do("load_global_v1_where", entry, _at(emit, self._order, place), exists)
        number = _index(emit, emit.get(entry, 0))
        rank = emit.over(number, self._entries)
        row = emit.minus(number, emit.times(rank, self._entries))
        base = emit.plus(self._slots, emit.times(emit.wide(rank), emit.launch_value("heap_stride")))
        return emit.plus(base, emit.times(emit.times(emit.wide(row), emit.wide(self._columns)), self._size))

    def load(self, row: SSAValue, exists: SSAValue, chunk: int) -> SSAValue:
        """Registers with a chunk of a row; zero if it does not exist."""
        emit, words = self.emit, max(1, self.count * self._size // _WORD)
        address = emit.plus(row, emit.times(emit.wide(self._places[chunk]), self._size))
        exists = emit.both(exists, self._exist[chunk])
        bits = emit.registers(words, b32)
        for word in range(words):
            emit.set(_nothing(emit), bits, word)
        if self.count == 1 and self._size < _WORD:
            with emit.when(exists):
                emit.set(emit.value(f"load_global_b{8 * self._size}", address), bits, 0)
            return bits
        wide = min(words, CHUNK // _WORD)
        for word in range(0, words, wide):
            view = SubviewOp(bits, word, wide)
            emit.add(view)
            emit.do(f"load_global_v{wide}_where", view.result, emit.plus(address, word * _WORD), exists)
        return bits

    def elements(self, bits: SSAValue) -> list[SSAValue]:
        """The elements of a chunk, as they are added."""
        emit, words = self.emit, max(1, self.count * self._size // _WORD)
        if self._size == _WORD:
            name = "int_bits" if self.element == i32 else "float_bits"
            return [emit.value(name, emit.get(bits, word)) for word in range(words)]
        kind = PACKED[self.element]
        halves = _HALVES[: self.count]
        return [emit.value(f"{half}_{kind}", emit.get(bits, word)) for word in range(words) for half in halves]


_HALVES = ("low", "high")


def _added(listed: _Listed, begin: SSAValue, end: SSAValue) -> SSAValue:
    """Registers with the sums of all chunks of the rows at some places of a list, in their order."""
    emit, integers = listed.emit, listed.element == i32
    total = emit.registers(listed.count * listed.chunks, i32 if integers else f32, "total")
    add = arith.AddiOp if integers else arith.AddfOp
    for element in range(listed.count * listed.chunks):
        emit.set(emit.i32(emit.const(0)) if integers else emit.real(0.0), total, element)
    with emit.loop(begin, end, _ROWS) as start:
        exist = [emit.compare("slt", emit.plus(start, step), end) for step in range(_ROWS)]
        rows = [listed.row(emit.plus(start, step), exists) for step, exists in enumerate(exist)]
        bits = [
            [listed.load(row, exists, chunk) for chunk in range(listed.chunks)]
            for row, exists in zip(rows, exist, strict=True)
        ]
        for loaded in bits:  # what does not exist adds zero to a sum that is never -0
            found = [element for chunk in loaded for element in listed.elements(chunk)]
            for element, value in enumerate(found):
                emit.set(emit.binary(add, emit.get(total, element), value), total, element)
    return total


def _put(
    emit: Emitter, op: SumRowsOp, total: SSAValue, elements: Element, places: Sequence[list[SSAValue]], count: int
) -> None:
    """The sums of chunks, rounded, to memory."""
    kind = array_type(op.array).element_type
    size = dtype_bytes(kind)
    plain = "bits_i32" if kind == i32 else "bits_f32"
    for chunk, place in enumerate(places):
        address, exists = elements.at(place)
        values = [emit.get(total, chunk * count + element) for element in range(count)]
        if count == 1:
            bits = emit.value(f"pack_{PACKED[kind]}", *values * 2) if kind in PACKED else emit.value(plain, *values)
            with emit.when(exists):
                emit.do(f"store_global_b{8 * size}", address, bits)
            continue
        if kind in PACKED:
            pairs = zip(values[::2], values[1::2], strict=True)
            found = [emit.value(f"pack_{PACKED[kind]}", low, high) for low, high in pairs]
        else:
            found = [emit.value(plain, value) for value in values]
        words = emit.registers(len(found), b32)
        for word, bits in enumerate(found):
            emit.set(bits, words, word)
        for word in range(0, len(found), CHUNK // _WORD):
            view = SubviewOp(words, word, CHUNK // _WORD)
            emit.add(view)
            emit.do("store_global_v4_where", view.result, emit.plus(address, word * _WORD), exists)
