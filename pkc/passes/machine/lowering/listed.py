"""Sums of rows that lists name, by threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.inverse import BOUNDS, SumRowsOp
from pkc.dialect.machine import SubviewOp, b32
from pkc.dialect.types import RANKS, Layout, dtype_bytes, f32, i32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import entries
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.fragments import PACKED
from pkc.passes.machine.lowering.memory import Element
from pkc.targets.layout import CHUNK, NEIGHBOURS


def sum_rows(role: WarpRole, op: SumRowsOp) -> None:
    """Each thread adds up 16 bytes of 16-bit elements at once, or as many elements of 32 bits, where rows begin and end
    at multiples of that; else single elements, and those of 8 bits."""
    emit = role.emit
    last, kind = role.blocks[op.indices[-1]], array_type(op.array)
    if last.extent % NEIGHBOURS or len(op.indices) == 1 or dtype_bytes(kind.element_type) == 1:
        _sum(role, op, 1)
        return
    ends = (role.dims.extent(kind.dimensions[-1]), role.dims.row_length(kind), role.dims.valid(last))
    whole = emit.compare("eq", emit.const(0), 0)
    for end in ends:
        whole = emit.both(whole, emit.compare("eq", emit.bit_and(end, NEIGHBOURS - 1), 0))
    with emit.when(whole):
        _sum(role, op, NEIGHBOURS)
    with emit.when(emit.negated(whole)):
        _sum(role, op, 1)


def _sum(role: WarpRole, op: SumRowsOp, count: int) -> None:
    """Store the sums of a block. A thread has a row at a time, and a few chunks of `count` elements of it, for which it
    reads the list once."""
    emit, threads = role.emit, role.threads
    blocks = [role.blocks[index] for index in op.indices]
    extents = [block.extent for block in blocks[1:]]
    size = dtype_bytes(array_type(op.array).element_type)
    chunks = emit.target.threads.slot_chunks * CHUNK // (count * size) if count > 1 else 1
    chunks = next(n for n in (chunks, 1) if not extents or extents[-1] % (n * count) == 0)
    each = prod(extents) // (count * chunks)
    rows = emit.least(role.dims.valid(blocks[0]), blocks[0].extent)
    bounds = entries.local(role, op.bounds)
    first = emit.minus(threads.thread, threads.start)
    with emit.loop(first, emit.times(rows, each), threads.count) as number:
        row = emit.part(number, each)
        places = [[row, *offsets] for offsets in _offsets(emit, emit.rest(number, each), extents, count, chunks)]
        limit = entries.at(emit, bounds, emit.times(emit.plus(blocks[0].local, row), BOUNDS))
        begin, end = (
            entries.index(emit, emit.value("load_global_b32", emit.plus(limit, at))) for at in (0, entries.WORD)
        )
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
        self._order, self._slots = entries.local(role, op.order), emit.address(op.slots)
        self._entries = entries.elements(role, array_type(op.order).dimensions[1:])
        self._columns = entries.elements(role, kind.dimensions[1:])
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
        emit.set(entries.nothing(emit), entry, 0)
        emit.do("load_global_v1_where", entry, entries.at(emit, self._order, place), exists)
        number = entries.index(emit, emit.get(entry, 0))
        rank = emit.over(number, self._entries)
        row = emit.minus(number, emit.times(rank, self._entries))
        base = emit.on_rank(self._slots, rank)
        return emit.plus(base, emit.times(emit.times(emit.wide(row), emit.wide(self._columns)), self._size))

    def load(self, row: SSAValue, exists: SSAValue, chunk: int) -> SSAValue:
        """Registers with a chunk of a row; zero if it does not exist."""
        emit, words = self.emit, max(1, self.count * self._size // entries.WORD)
        address = emit.plus(row, emit.times(emit.wide(self._places[chunk]), self._size))
        exists = emit.both(exists, self._exist[chunk])
        bits = emit.registers(words, b32)
        for word in range(words):
            emit.set(entries.nothing(emit), bits, word)
        if self.count == 1 and self._size < entries.WORD:
            with emit.when(exists):
                emit.set(emit.value(f"load_global_b{8 * self._size}", address), bits, 0)
            return bits
        wide = min(words, entries.AT_ONCE)
        for word in range(0, words, wide):
            view = SubviewOp(bits, word, wide)
            emit.add(view)
            emit.do(f"load_global_v{wide}_where", view.result, emit.plus(address, word * entries.WORD), exists)
        return bits

    def elements(self, bits: SSAValue) -> list[SSAValue]:
        """The elements of a chunk, as they are added."""
        emit, words = self.emit, max(1, self.count * self._size // entries.WORD)
        if self._size == entries.WORD:
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
    at_once = emit.target.threads.slots
    with emit.loop(begin, end, at_once) as start:
        exist = [emit.compare("slt", emit.plus(start, step), end) for step in range(at_once)]
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
        for word in range(0, len(found), entries.AT_ONCE):
            view = SubviewOp(words, word, entries.AT_ONCE)
            emit.add(view)
            emit.do("store_global_v4_where", view.result, emit.plus(address, word * entries.WORD), exists)
