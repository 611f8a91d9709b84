"""Tiles whose rows have the elements of several tiles in turn: picked from a stage, and written there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.machine import b32
from pkc.dialect.roles import CommitOp
from pkc.dialect.tile import tile_type
from pkc.dialect.types import TileType, dtype_bytes, f32, i32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import fragments, shifting, spread, stages
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.fragments import PACKED, LazyTile, RegisterTile
from pkc.passes.machine.lowering.missing import CannotLowerError
from pkc.targets.layout import CHUNK, Fragment, SharedLayout

_WORD = 4
_HALVES = ("low", "high")
_BITS: dict[Attribute, str] = {f32: "bits_f32", i32: "bits_i32"}


@dataclass(frozen=True)
class ZippedTile:
    """Tiles in registers, of whose elements a thread writes one of each in turn."""

    tiles: tuple[RegisterTile, ...]
    kind: TileType
    """The type of each of them."""

    @property
    def fragment(self) -> Fragment:
        """How each of them is spread over threads."""
        return self.tiles[0].fragment


def pick(role: WarpRole, op: PickOp) -> None:
    """A thread reads its elements from the stage: with those in between, 16 bytes at a time, where it has enough
    neighbours, for all that are picked of the tile; else one by one where they are used."""
    staged = role.tiles[op.tile]
    if not isinstance(staged, Staged) or staged.transposed or role.chunk is not None:
        raise CannotLowerError(op, "elements picked of a tile that is not in a stage")
    fragment, kind = spread.fragment_of(role, op.result), tile_type(op.result)
    if not _in_chunks(fragment, staged.layout, dtype_bytes(kind.element_type)):

        def element(emit: Emitter, index: SSAValue) -> SSAValue:
            row, column = fragments.in_tile(role, fragment, kind, index)
            return fragments.read_shared(emit, staged, row, emit.plus(emit.times(column, op.step), op.which))

        role.tiles[op.result] = LazyTile(fragment, kind.element_type, element)
        return
    alike = _alike(role, op)
    if alike[0] is op:  # else all have been read by now
        _pick_chunks(role, staged, fragment, alike)


def _alike(role: WarpRole, op: PickOp) -> list[PickOp]:
    """All operations of a block, in their order, that pick elements of a tile which the same threads have."""
    assert op.parent is not None
    picks = (other for other in op.parent.ops if isinstance(other, PickOp) and other.tile is op.tile)
    return [one for one in picks if one.step == op.step and role.axes[one.result] == role.axes[op.result]]


def _in_chunks(fragment: Fragment, layout: SharedLayout, size: int) -> bool:
    """Whether a thread has as many neighbours of a tile as 16 bytes, and no row ends within such."""
    return stages.in_chunks(fragment, layout, size) and fragment.columns % (CHUNK // size) == 0


def _pick_chunks(role: WarpRole, staged: Staged, fragment: Fragment, picks: Sequence[PickOp]) -> None:
    """What is picked of a tile into registers: of all that lies in a row where a chunk of each has its elements."""
    emit, kind, step = role.emit, staged.type.element_type, picks[0].step
    size = dtype_bytes(kind)
    each, words = CHUNK // size, CHUNK // _WORD
    targets = [fragments.allocate(role, fragment, kind, op.result.name_hint) for op in picks]
    with emit.loop(0, fragment.count // each, unroll=True) as number:
        first = emit.times(number, each)
        row, begin = stages.row_of_stage(role, fragment, first), spread.column(role, fragment, first)
        if fragment.ends_early:
            begin = emit.least(begin, fragment.columns - each)
        found: list[SSAValue] = []
        for chunk in range(step):
            column = emit.plus(emit.times(begin, step), chunk * each)
            bits = emit.registers(words, b32)
            _read(emit, staged, size, (row, column), bits)
            found += [emit.get(bits, i) for i in range(words)]
        for op, target in zip(picks, targets, strict=True):
            for i in range(words):
                if size == _WORD:
                    word = emit.value("float_bits" if kind == f32 else "int_bits", found[step * i + op.which])
                else:
                    word = _pair(emit, found, step * 2 * i + op.which, step * (2 * i + 1) + op.which)
                emit.set(word, target.registers, emit.plus(emit.times(number, words), i))
    for op, target in zip(picks, targets, strict=True):
        role.tiles[op.result] = target


def _read(emit: Emitter, staged: Staged, size: int, at: tuple[SSAValue, SSAValue], bits: SSAValue) -> None:
    """16 bytes of a staged tile."""
    assert not staged.free, "a stage is read behind its release"
    place = stages.shared_address(emit, staged.address, staged.layout, size, at)
    if staged.shifts is None:
        emit.do("load_shared_v4", bits, place)
    else:
        shifting.read(emit, emit.plus(place, shifting.of_row(emit, staged.shifts, at[0])), size, bits)


def _pair(emit: Emitter, words: Sequence[SSAValue], first: int, second: int) -> SSAValue:
    """A register with two elements of 16 bits, by their numbers in registers that have two each."""
    name = f"pair_{_HALVES[first % 2]}_{_HALVES[second % 2]}"
    return emit.value(name, words[first // 2], words[second // 2])


def zip_tiles(role: WarpRole, op: ZipOp) -> None:
    """Tiles in registers, until they are written to a stage."""
    if role.chunk is not None or not all(isinstance(use.operation, CommitOp) for use in op.result.uses):
        raise CannotLowerError(op, "elements of several tiles in turn, other than into a stage")
    role.tiles[op.result] = ZippedTile(
        tuple(fragments.materialize(role, tile) for tile in op.tiles), tile_type(op.tiles[0])
    )


def write(role: WarpRole, tile: ZippedTile, layout: SharedLayout, address: SSAValue) -> None:
    """Write the elements of tiles in turn to a stage: those of as many neighbours at once as a thread has."""
    emit, fragment, count = role.emit, tile.fragment, len(tile.tiles)
    each = _neighbours(tile, layout)
    with emit.loop(0, fragment.count // each, unroll=True) as number:
        first = emit.times(number, each)
        row = spread.row(role, fragment, first) if 0 in fragment.axes else emit.const(0)
        column = spread.column(role, fragment, first) if 1 in fragment.axes else emit.const(0)
        if fragment.axes == (0,):
            row, column = fragments.in_rows(emit, tile.kind, row)
        inside = spread.is_in_tile(role, fragment, first)
        with emit.when(inside) if inside is not None else nullcontext():
            stage = _Stage(address, layout, dtype_bytes(tile.kind.element_type), row, emit.times(column, count))
            (_write_one if each == 1 else _write_words)(role, tile, number, each, stage)


def _neighbours(tile: ZippedTile, layout: SharedLayout) -> int:
    """How many neighbours of each tile a thread writes at once: 16 bytes of them, a pair, or one."""
    fragment, size = tile.fragment, dtype_bytes(tile.kind.element_type)
    if _in_chunks(fragment, layout, size):
        return CHUNK // size
    return 2 if fragment.paired and fragment.columns % 2 == 0 and size > 1 else 1


@dataclass(frozen=True)
class _Stage:
    """A place in a stage of elements of `size` bytes, and how the stage lies."""

    address: SSAValue
    layout: SharedLayout
    size: int
    row: SSAValue
    column: SSAValue

    def at(self, emit: Emitter, elements: int) -> SSAValue:
        """The address of what lies so many elements behind."""
        at = self.row, emit.plus(self.column, elements)
        return stages.shared_address(emit, self.address, self.layout, self.size, at)


def _write_one(role: WarpRole, tile: ZippedTile, number: SSAValue, _: int, stage: _Stage) -> None:
    """One element of each tile."""
    emit, kind = role.emit, tile.kind.element_type
    for which, one in enumerate(tile.tiles):
        found = fragments.element(role, one, number)
        if kind in PACKED:
            bits = emit.value(f"pack_{PACKED[kind]}", found, found)
        else:
            bits = emit.value(_BITS[kind], found)
        emit.do(f"store_shared_b{8 * stage.size}", stage.at(emit, which), bits)


def _write_words(role: WarpRole, tile: ZippedTile, number: SSAValue, each: int, stage: _Stage) -> None:
    """Several neighbours of each tile, as many words at a time as are surely aligned."""
    emit, count, per_word = role.emit, len(tile.tiles), _WORD // stage.size
    kept = each // per_word
    registers = [
        [emit.get(one.registers, emit.plus(emit.times(number, kept), i)) for i in range(kept)] for one in tile.tiles
    ]
    words: list[SSAValue] = []
    for word in range(kept * count):
        if per_word == 1:
            words.append(emit.value(_BITS[tile.kind.element_type], registers[word % count][word // count]))
            continue
        places = [divmod(2 * word + odd, count) for odd in range(2)]
        halves = "_".join(_HALVES[i % 2] for i, _ in places)
        words.append(emit.value(f"pair_{halves}", *(registers[which][i // 2] for i, which in places)))
    at_once = CHUNK // _WORD if each * stage.size == CHUNK else 2 if len(words) % 2 == 0 else 1
    for first in range(0, len(words), at_once):
        place, some = stage.at(emit, first * per_word), words[first : first + at_once]
        if at_once < CHUNK // _WORD:
            emit.do("store_shared_v2" if at_once > 1 else "store_shared_b32", place, *some)
            continue
        bits = emit.registers(at_once, b32)
        for i, word in enumerate(some):
            emit.set(word, bits, i)
        emit.do("store_shared_v4", bits, place)
