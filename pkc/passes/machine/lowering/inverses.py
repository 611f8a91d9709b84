"""Lists of the entries of a table by the rows that they name, by threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from pkc.dialect.arrays import array_type
from pkc.dialect.inverse import BOUNDS, PARTS, InvertOp
from pkc.dialect.machine import SubviewOp, b32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import entries, indices
from pkc.passes.machine.lowering.context import WarpRole


def _add(emit: Emitter, register: SSAValue, value: SSAValue) -> None:
    emit.set(emit.plus(emit.get(register, 0), value), register, 0)


def _one_if(emit: Emitter, condition: SSAValue) -> SSAValue:
    return emit.select(condition, emit.const(1), emit.const(0))


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
    bounds, order = entries.local(role, op.bounds), entries.local(role, op.order)
    number = emit.minus(threads.warp, threads.first)
    part, team = emit.rest(number, parts), emit.part(number, parts)
    total = entries.elements(role, array_type(op.table).dimensions)
    each = emit.times(emit.round_up_over(total, warp * entries.AT_ONCE * parts), warp * entries.AT_ONCE)
    start = emit.times(part, each)
    stop = emit.least(emit.plus(start, each), total)
    with emit.loop(0, length, warp * threads.warps // parts) as turn:
        group = emit.plus(turn, emit.times(team, warp))
        count = emit.most(emit.least(emit.minus(length, group), warp), 0)
        window = _Window(low, emit.plus(position, group), count, start, stop)
        row = emit.plus(emit.plus(block.local, group), threads.lane)
        limits = entries.at(emit, bounds, emit.times(row, BOUNDS))
        before, found = _counted(role, op, window)
        exists = emit.compare("slt", threads.lane, count)
        with emit.when(exists):
            for first, value in ((2, found), (2 + PARTS, before)):
                emit.do("store_global_b32", entries.at(emit, limits, emit.plus(part, first)), entries.word(emit, value))
        emit.do(threads.sync)
        place, end = _places(role, limits, exists, part, parts)
        with emit.when(emit.both(exists, emit.compare("eq", part, 0))):
            for at, value in enumerate((emit.get(place, 0), end)):
                emit.do("store_global_b32", emit.plus(limits, at * entries.WORD), entries.word(emit, value))

        def list_entry(mine: SSAValue, entry: SSAValue) -> None:
            with emit.when(mine):
                emit.do("store_global_b32", entries.at(emit, order, emit.get(place, 0)), entries.word(emit, entry))
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
        emit.set(entries.word(emit, emit.const(0)), counts, at)
    for first in (0, PARTS):
        for at in range(first, first + parts):
            view = SubviewOp(counts, at, 1)
            emit.add(view)
            emit.do("load_global_v1_where", view.result, emit.plus(limits, (2 + at) * entries.WORD), exists)
    every, here, place = (emit.registers(1, IndexType()) for _ in range(3))
    for register in (every, here, place):
        emit.set(emit.const(0), register, 0)
    for number in range(parts):
        found = entries.index(emit, emit.get(counts, number))
        _add(emit, every, found)
        _add(emit, here, emit.select(emit.compare("sgt", part, number), found, emit.const(0)))
        # All rows of a window have the same before them.
        before = entries.index(emit, emit.get(counts, PARTS + number))
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
    emit, lanes, at_once = role.emit, role.threads.arch.warp, role.emit.target.threads.table_loads
    table, each = entries.local(role, op.table), lanes * entries.AT_ONCE
    length = emit.most(emit.minus(window.stop, window.start), 0)
    whole = emit.plus(window.start, emit.times(emit.over(length, each * at_once), each * at_once))

    def look_at(start: SSAValue, together: int, *, ends: bool) -> None:
        bits = emit.registers(together * entries.AT_ONCE, b32)
        first = emit.plus(start, emit.times(role.threads.lane, entries.AT_ONCE))
        for step in range(together):
            view = SubviewOp(bits, step * entries.AT_ONCE, entries.AT_ONCE)
            emit.add(view)
            address = entries.at(emit, table, emit.plus(first, step * each))
            if not ends:
                emit.do("load_global_v4", view.result, address)
                continue
            for place in range(entries.AT_ONCE):
                emit.set(entries.word(emit, emit.const(-1)), bits, place)
                single = SubviewOp(bits, place, 1)
                emit.add(single)
                exists = emit.compare("slt", emit.plus(first, place), window.stop)
                emit.do("load_global_v1_where", single.result, emit.plus(address, place * entries.WORD), exists)
        for step in range(together):
            _look(role, window, bits, step, emit.plus(start, step * each), note, found)

    with emit.loop(window.start, whole, each * at_once) as start:
        look_at(start, at_once, ends=False)
    with emit.loop(whole, window.stop, each) as start:
        look_at(start, 1, ends=True)


def _look(
    role: WarpRole,
    window: _Window,
    bits: SSAValue,
    step: int,
    start: SSAValue,
    note: Callable[[SSAValue], None] | None,
    found: Callable[[SSAValue, SSAValue], None],
) -> None:
    """The entries from `start` on, `AT_ONCE` of each thread."""
    emit, lane = role.emit, role.threads.lane
    places: list[SSAValue] = []
    hits = emit.const(0)
    for place in range(entries.AT_ONCE):
        value = entries.index(emit, emit.get(bits, step * entries.AT_ONCE + place))
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
            found(mine, emit.plus(emit.plus(start, emit.times(source, entries.AT_ONCE)), place))
