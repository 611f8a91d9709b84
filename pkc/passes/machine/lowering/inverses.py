"""Lists of the entries of a table by the rows that they name, and sums of rows that lists name, by threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from pkc.dialect.access import array_type, is_pgl
from pkc.dialect.inverse import InvertOp, SumRowsOp
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
    rank begin at `low`."""

    low: SSAValue
    first: SSAValue
    count: SSAValue


def invert(role: WarpRole, op: InvertOp) -> None:
    """Each warp goes through the whole table, once to count and once to list, for as many rows as it has threads.

    What comes before the entries of its rows follows from the table, too, so no warp waits for another.
    """
    emit, threads, block = role.emit, role.threads, role.blocks[op.rows]
    warp = threads.arch.warp
    length, position = emit.least(role.dims.valid(block), block.extent), role.dims.position(block)
    low = emit.minus(position, block.local) if block.shard is not None else emit.const(0)
    bounds, order = _local(role, op.bounds), _local(role, op.order)
    begin = emit.times(emit.minus(threads.warp, threads.first), warp)
    with emit.loop(begin, length, warp * threads.warps) as group:
        window = _Window(low, emit.plus(position, group), emit.least(emit.minus(length, group), warp))
        before, found = (emit.registers(1, IndexType(), hint) for hint in ("before", "found"))
        for register in (before, found):
            emit.set(emit.const(0), register, 0)

        def note(value: SSAValue) -> None:
            indices.check_row(role, op, value)
            earlier = emit.both(emit.compare("sge", value, window.low), emit.compare("slt", value, window.first))
            _add(emit, before, _one_if(emit, earlier))

        _scan(role, op, window, note, lambda mine, entry: _add(emit, found, _one_if(emit, mine)))
        place = _begin(role, before, found)
        with emit.when(emit.compare("slt", threads.lane, window.count)):
            row = emit.times(emit.plus(emit.plus(block.local, group), threads.lane), 2)
            end = emit.plus(emit.get(place, 0), emit.get(found, 0))
            emit.do("store_global_b32", _at(emit, bounds, row), _word(emit, emit.get(place, 0)))
            emit.do("store_global_b32", _at(emit, bounds, emit.plus(row, 1)), _word(emit, end))

        def list_entry(mine: SSAValue, entry: SSAValue) -> None:
            with emit.when(mine):
                emit.do("store_global_b32", _at(emit, order, emit.get(place, 0)), _word(emit, entry))
                _add(emit, place, emit.const(1))

        _scan(role, op, window, None, list_entry)


def _begin(role: WarpRole, before: SSAValue, found: SSAValue) -> SSAValue:
    """A register with where the entries of a thread's row begin: behind those of all rows before it."""
    emit, warp = role.emit, role.threads.arch.warp
    place = emit.registers(1, IndexType(), "place")
    emit.set(emit.const(0), place, 0)
    with emit.loop(0, warp) as lane:
        _add(emit, place, emit.value("shuffle_index", emit.get(before, 0), lane))
        others = emit.value("shuffle_index", emit.get(found, 0), lane)
        earlier = emit.compare("slt", lane, role.threads.lane)
        _add(emit, place, emit.select(earlier, others, emit.const(0)))
    return place


def _scan(
    role: WarpRole,
    op: InvertOp,
    window: _Window,
    note: Callable[[SSAValue], None] | None,
    found: Callable[[SSAValue, SSAValue], None],
) -> None:
    """Go through a table in the order of its entries: `note` gets what each names, in any thread; `found`, in all
    threads of the warp, whether an entry names this thread's row, and its number."""
    emit, lanes = role.emit, role.threads.arch.warp
    total = _elements(role, array_type(op.table).dimensions)
    table, each = _local(role, op.table), lanes * _WORD
    whole = emit.times(emit.over(total, each * _TOGETHER), each * _TOGETHER)

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
                exists = emit.compare("slt", emit.plus(first, place), total)
                emit.do("load_global_v1_where", single.result, emit.plus(address, place * _WORD), exists)
        for step in range(together):
            _look(role, window, bits, step, emit.plus(start, step * each), note, found)

    with emit.loop(0, whole, each * _TOGETHER) as start:
        entries(start, _TOGETHER, ends=False)
    with emit.loop(whole, total, each) as start:
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
    """Store the sums of a block, `count` elements of a thread at once."""
    emit, threads = role.emit, role.threads
    blocks = [role.blocks[index] for index in op.indices]
    extents = [block.extent for block in blocks[1:]]
    each = prod(extents) // count
    rows = emit.least(role.dims.valid(blocks[0]), blocks[0].extent)
    bounds = _local(role, op.bounds)
    first = emit.minus(threads.thread, threads.start)
    with emit.loop(first, emit.times(rows, each), threads.count) as number:
        row, offsets = emit.part(number, each), _offsets(emit, emit.rest(number, each), extents, count)
        _, exists = Element(role, op).at([row, *offsets])
        with emit.when(exists):
            limit = _at(emit, bounds, emit.times(emit.plus(blocks[0].local, row), 2))
            begin, end = (_index(emit, emit.value("load_global_b32", emit.plus(limit, at))) for at in (0, _WORD))
            total = _added(_Listed(role, op, offsets, count), begin, end)
            if not is_pgl(op.array, Layout.Replicate):
                _put(emit, op, total, Element(role, op).at([row, *offsets])[0], count)
            else:
                with emit.loop(0, role.dims.extent(RANKS)) as rank:
                    _put(emit, op, total, Element(role, op, rank).at([row, *offsets])[0], count)


def _offsets(emit: Emitter, number: SSAValue, extents: Sequence[int], count: int) -> list[SSAValue]:
    """Where a chunk begins along each axis of the columns."""
    found: list[SSAValue] = []
    for extent in reversed(extents):
        chunks = extent if found else extent // count
        inside = emit.rest(number, chunks)
        found.append(inside if found else emit.times(inside, count))
        number = emit.part(number, chunks)
    return found[::-1]


class _Listed:
    """The rows of slots that a list names, as far as one thread adds them up."""

    def __init__(self, role: WarpRole, op: SumRowsOp, offsets: Sequence[SSAValue], count: int) -> None:
        emit, kind = role.emit, array_type(op.array)
        self.emit, self.element, self.count = emit, kind.element_type, count
        self._size = dtype_bytes(kind.element_type)
        self._order, self._slots = _local(role, op.order), emit.address(op.slots)
        self._entries = _elements(role, array_type(op.order).dimensions[1:])
        self._columns, self._column = _elements(role, kind.dimensions[1:]), emit.const(0)
        for dim, index, offset in zip(kind.dimensions[1:], op.indices[1:], offsets, strict=True):
            position = emit.plus(role.dims.position(role.blocks[index]), offset)
            self._column = emit.plus(emit.times(self._column, role.dims.extent(dim)), position)

    def address(self, place: SSAValue, exists: SSAValue) -> SSAValue:
        """Where the row lies that a place of the list names; not used if there is no such place."""
        emit, entry = self.emit, self.emit.registers(1, b32)
        emit.set(_word(emit, emit.const(0)), entry, 0)
        emit.do("load_global_v1_where", entry, _at(emit, self._order, place), exists)
        number = _index(emit, emit.get(entry, 0))
        rank = emit.over(number, self._entries)
        row = emit.minus(number, emit.times(rank, self._entries))
        element = emit.plus(emit.times(emit.wide(row), emit.wide(self._columns)), emit.wide(self._column))
        base = emit.plus(self._slots, emit.times(emit.wide(rank), emit.launch_value("heap_stride")))
        return emit.plus(base, emit.times(element, self._size))

    def load(self, address: SSAValue, exists: SSAValue) -> list[SSAValue]:
        """The elements there, as they are added; zero if they do not exist."""
        emit, words = self.emit, max(1, self.count * self._size // _WORD)
        bits = emit.registers(words, b32)
        for word in range(words):
            emit.set(_word(emit, emit.const(0)), bits, word)
        if self.count == 1 and self._size < _WORD:
            with emit.when(exists):
                emit.set(emit.value(f"load_global_b{8 * self._size}", address), bits, 0)
        else:
            wide = min(words, CHUNK // _WORD)
            for word in range(0, words, wide):
                view = SubviewOp(bits, word, wide)
                emit.add(view)
                emit.do(f"load_global_v{wide}_where", view.result, emit.plus(address, word * _WORD), exists)
        if self._size == _WORD:
            name = "int_bits" if self.element == i32 else "float_bits"
            return [emit.value(name, emit.get(bits, word)) for word in range(words)]
        halves = [
            emit.value(f"{half}_{PACKED[self.element]}", emit.get(bits, word))
            for word in range(words)
            for half in ("low", "high")
        ]
        return halves[: self.count]


def _added(listed: _Listed, begin: SSAValue, end: SSAValue) -> SSAValue:
    """Registers with the sum of the rows at some places of a list, in their order."""
    emit, integers = listed.emit, listed.element == i32
    total = emit.registers(listed.count, i32 if integers else f32, "total")
    for element in range(listed.count):
        emit.set(emit.i32(emit.const(0)) if integers else emit.real(0.0), total, element)
    with emit.loop(begin, end, _ROWS) as start:
        exist = [emit.compare("slt", emit.plus(start, step), end) for step in range(_ROWS)]
        addresses = [listed.address(emit.plus(start, step), exists) for step, exists in enumerate(exist)]
        rows = [listed.load(address, exists) for address, exists in zip(addresses, exist, strict=True)]
        for row in rows:  # what does not exist adds zero to a sum that is never -0
            for element, value in enumerate(row):
                add = arith.AddiOp if integers else arith.AddfOp
                emit.set(emit.binary(add, emit.get(total, element), value), total, element)
    return total


def _put(emit: Emitter, op: SumRowsOp, total: SSAValue, address: SSAValue, count: int) -> None:
    """A sum, rounded, to memory."""
    kind = array_type(op.array).element_type
    size = dtype_bytes(kind)
    if count == 1:
        value = emit.get(total, 0)
        name = f"pack_{PACKED[kind]}" if kind in PACKED else "bits_i32" if kind == i32 else "bits_f32"
        bits = emit.value(name, value, *[value] * (kind in PACKED))
        emit.do(f"store_global_b{8 * size}", address, bits)
        return
    words = count * size // _WORD
    bits = emit.registers(words, b32)
    for word in range(words):
        if kind in PACKED:
            pair = (emit.get(total, 2 * word), emit.get(total, 2 * word + 1))
            emit.set(emit.value(f"pack_{PACKED[kind]}", *pair), bits, word)
        else:
            emit.set(emit.value("bits_i32" if kind == i32 else "bits_f32", emit.get(total, word)), bits, word)
    for word in range(0, words, CHUNK // _WORD):
        view = SubviewOp(bits, word, CHUNK // _WORD)
        emit.add(view)
        emit.do("store_global_v4", view.result, emit.plus(address, word * _WORD))
