"""Where elements of staged tiles are in shared memory, and in chunks of 16 bytes."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from pkc.dialect.machine import b32
from pkc.dialect.types import dtype_bytes
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.spread import column, row
from pkc.targets.layout import CHUNK, Fragment, SharedLayout


def in_stage(
    role: WarpRole,
    fragment: Fragment,
    layout: SharedLayout,
    size: int,
    first: SSAValue,
    source: Callable[[SSAValue], SSAValue] | None = None,
) -> SSAValue:
    """Where in a stage a chunk of 16 bytes is of which a thread has element `first`; of one behind the tile, some."""
    emit = role.emit
    rows, columns = row_of_stage(role, fragment, first, source), column(role, fragment, first)
    if fragment.ends_early:
        columns = emit.least(columns, (fragment.columns - 1) // (CHUNK // size) * (CHUNK // size))
    return shared_address(emit, emit.const(0), layout, size, (rows, columns))


def row_of_stage(
    role: WarpRole, fragment: Fragment, first: SSAValue, source: Callable[[SSAValue], SSAValue] | None = None
) -> SSAValue:
    """The row, in its stage, of element `first` of a thread; of one behind the tile, the last one."""
    found = row(role, fragment, first) if 0 in fragment.axes else role.emit.const(0)
    found = role.emit.least(found, fragment.shape[0] - 1) if fragment.cut else found
    return found if source is None else source(found)


def in_chunks(fragment: Fragment, layout: SharedLayout, size: int) -> bool:
    """Whether a thread's elements of a staged tile are whole chunks of 16 bytes."""
    each = CHUNK // size
    many = bool(fragment.lanes) and 1 in fragment.axes and fragment.together % each == 0
    return many and size > 1 and (layout.panels == 1 or layout.columns % each == 0)


def lies_across(tile: Staged, fragment: Fragment) -> bool:
    """Whether a thread has rows side by side that are whole chunks of a row of the stage."""
    size = dtype_bytes(tile.type.element_type)
    whole = tile.transposed and tile.shifts is None and fragment.axes == (0, 1) and fragment.side > 1 and size > 1
    return (
        whole
        and fragment.side % (CHUNK // size) == 0
        and (tile.layout.panels == 1 or tile.layout.columns % (CHUNK // size) == 0)
    )


def read_across(role: WarpRole, tile: Staged, fragment: Fragment) -> SSAValue:
    """Registers with the elements that a thread has of such a tile, in the order of `place_across`, read 16 bytes at a
    time; two of 16 bits in each."""
    assert not tile.free, "a stage is read behind its release"
    emit, size = role.emit, dtype_bytes(tile.type.element_type)
    side, per_row = fragment.side, fragment.per_row
    each, words = CHUNK // size, CHUNK // 4
    registers = emit.registers(fragment.count * size // 4, b32)
    with emit.loop(0, fragment.count // each, unroll=True) as number:
        first = emit.times(number, each)
        rows = emit.plus(emit.times(emit.part(first, side * per_row), side), emit.rest(first, side))
        index = emit.plus(emit.times(rows, per_row), emit.rest(emit.part(first, side), per_row))
        along = row(role, fragment, index)
        along = emit.least(along, fragment.shape[0] - each) if fragment.cut else along
        bits, at = emit.registers(words, b32), (column(role, fragment, index), along)
        emit.do("load_shared_v4", bits, shared_address(emit, tile.address, tile.layout, size, at))
        for i in range(words):
            emit.set(emit.get(bits, i), registers, emit.plus(emit.times(number, words), i))
    return registers


def place_across(emit: Emitter, fragment: Fragment, index: SSAValue) -> SSAValue:
    """Where element `index` of a thread is among those that `read_across` gives: neighbours of a chunk come first."""
    side, per_row = fragment.side, fragment.per_row
    number = emit.part(index, per_row)
    chunks = emit.plus(emit.times(emit.part(number, side), per_row), emit.rest(index, per_row))
    return emit.plus(emit.times(chunks, side), emit.rest(number, side))


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
