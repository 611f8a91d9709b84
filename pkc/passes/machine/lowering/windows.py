"""Parts of tiles in stages, which begin anywhere in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import SSAValue

from pkc.dialect.machine import b32
from pkc.dialect.tile import chain_of, tile_type
from pkc.dialect.types import dtype_bytes, f32
from pkc.dialect.windows import WindowOp
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import fragments, spread, stages
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.fragments import LazyTile
from pkc.passes.machine.lowering.missing import CannotLowerError
from pkc.targets.layout import CHUNK, Fragment

_WORD = 4


def window(role: WarpRole, op: WindowOp) -> None:
    """A thread reads its elements from the stage: where it has so many neighbours, 16 bytes at a time, which windows of
    the same rows share; else one by one where they are used."""
    staged = role.tiles[op.tile]
    if not isinstance(staged, Staged) or staged.transposed or role.chunk is not None:
        raise CannotLowerError(op, "a part of a tile that is not in a stage")
    fragment, kind = spread.fragment_of(role, op.result), tile_type(op.result)
    if _in_chunks(staged, fragment, op):
        alike = _alike(role, op)
        if alike[0] is op:  # else it has been read by now
            _read_chunks(role, staged, fragment, alike)
        return

    def element(emit: Emitter, index: SSAValue) -> SSAValue:
        row, column = fragments.in_tile(role, fragment, kind, index)
        at = emit.plus(emit.times(column, op.every[-1]), op.begins[-1])
        return fragments.read_shared(emit, staged, _row(emit, op, row), at)

    role.tiles[op.result] = LazyTile(fragment, kind.element_type, element)


def _row(emit: Emitter, op: WindowOp, number: SSAValue) -> SSAValue:
    """The row in the stage of a row of the window; of more than two axes, rows go through all but the last."""
    there, here = tile_type(op.tile).shape[:-1], tile_type(op.result).shape[:-1]
    lengths, stride, found = list(here), 1, emit.const(0)
    for axis in reversed(range(len(there))):
        place = emit.const(op.begins[axis])
        if op.every[axis]:
            many = lengths.pop()
            inside = emit.rest(number, many) if lengths else number
            place, number = emit.plus(emit.times(inside, op.every[axis]), place), emit.part(number, many)
        found, stride = emit.plus(found, emit.times(place, stride)), stride * there[axis]
    return found


def _in_chunks(staged: Staged, fragment: Fragment, op: WindowOp) -> bool:
    """Whether a thread has as many neighbours as 16 bytes, of which no row ends within such."""
    size = dtype_bytes(staged.type.element_type)
    whole = fragment.columns % (CHUNK // size) == 0 and op.every[-1] == 1 and staged.shifts is None
    return whole and stages.in_chunks(fragment, staged.layout, size)


def _alike(role: WarpRole, op: WindowOp) -> list[WindowOp]:
    """All windows of a block, in their order, that are of the same rows of a tile and go together with the same."""
    assert op.parent is not None
    windows = (other for other in op.parent.ops if isinstance(other, WindowOp) and other.tile is op.tile)
    return [
        one
        for one in windows
        if (one.begins[:-1], one.every, one.result.type, chain_of(one), role.axes[one.result])
        == (op.begins[:-1], op.every, op.result.type, chain_of(op), role.axes[op.result])
    ]


def _read_chunks(role: WarpRole, staged: Staged, fragment: Fragment, windows: Sequence[WindowOp]) -> None:
    """All elements of a thread into registers."""
    assert not staged.free, "a stage is read behind its release"
    emit, kind, op = role.emit, staged.type.element_type, windows[0]
    size = dtype_bytes(kind)
    each, words = CHUNK // size, CHUNK // _WORD
    targets = [fragments.allocate(role, fragment, kind, one.result.name_hint) for one in windows]
    with emit.loop(0, fragment.count // each, unroll=True) as number:
        first = emit.times(number, each)
        row, begin = _row(emit, op, stages.row_of_stage(role, fragment, first)), spread.column(role, fragment, first)
        if fragment.ends_early:
            begin = emit.least(begin, fragment.columns - each)
        read: dict[int, list[SSAValue]] = {}
        for one, target in zip(windows, targets, strict=True):
            chunk, behind = divmod(one.begins[-1], each)
            for here in range(chunk, chunk + 1 + bool(behind)):
                if here not in read:
                    bits = emit.registers(words, b32)
                    place = _address(emit, staged, size, (row, emit.plus(begin, here * each)))
                    emit.do("load_shared_v4", bits, place)
                    read[here] = [emit.get(bits, i) for i in range(words)]
            found = read[chunk] + (read[chunk + 1] if behind else [])
            for i, word in enumerate(_shifted(emit, found, behind, size)):
                if not target.packed:
                    word = emit.value("float_bits" if kind == f32 else "int_bits", word)
                emit.set(word, target.registers, emit.plus(emit.times(number, words), i))
    for one, target in zip(windows, targets, strict=True):
        role.tiles[one.result] = target


def _address(emit: Emitter, staged: Staged, size: int, at: tuple[SSAValue, SSAValue]) -> SSAValue:
    """The address of a chunk; in rows of one piece, whatever their length, without a division."""
    layout = staged.layout
    if layout.panels > 1 or layout.swizzle:
        return stages.shared_address(emit, staged.address, layout, size, at)
    return emit.plus(staged.address, emit.plus(emit.times(at[0], layout.width), emit.times(at[1], size)))


def _shifted(emit: Emitter, words: list[SSAValue], behind: int, size: int) -> list[SSAValue]:
    """The registers of one chunk whose elements are so many behind the first of those of two."""
    first, inside = divmod(behind * size, _WORD)
    some = words[first : first + CHUNK // _WORD + bool(inside)]
    return [emit.value("pair_high_low", a, b) for a, b in pairwise(some)] if inside else some
