"""The operations that touch memory, as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from pkc.dialect import access, by_table, copies, program
from pkc.dialect.blocks import Block
from pkc.dialect.by_table import ByTable
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.numeric import Values
from pkc.dialect.ranges import Bounded
from pkc.dialect.tile import block_type, tile_type
from pkc.dialect.transfers import boxes, moves_by_tma, unread_axes
from pkc.dialect.types import BlockType, Layout, PGLType, TileType
from pkc.semantics.evaluate import Call
from pkc.sim.array import Array, Where
from pkc.sim.machine import Calls, Frame, Machine
from pkc.sim.ordering import Note, note_addition, note_read, note_store

Indices: TypeAlias = Sequence[Block | int]
Located: TypeAlias = Callable[[Frame, Indices, "int | None"], Where]
ByShard: TypeAlias = Callable[[Frame, Indices, "int | None", Any], Iterator[tuple[Where, Any]]]


def _locator(op: Any, array: Array, machine: Machine) -> Located:
    """What finds the elements that an access addresses, after letting others run."""
    pause = machine.pause if isinstance(op.array.type, PGLType) else None

    def locate(frame: Frame, indices: Indices, rank: int | None) -> Where:
        if pause is not None:
            pause()
        return array.locate(op, frame.rank, indices, rank)

    return locate


def _by_shard(op: Any, array: Array, machine: Machine) -> ByShard:
    """What finds where a tile goes, shard by shard if several ranks own its rows, after letting others run."""
    locate = _locator(op, array, machine)

    def by_shard(frame: Frame, indices: Indices, rank: int | None, tile: Any) -> Iterator[tuple[Where, Any]]:
        for within, cut in array.shards(indices):
            yield locate(frame, within, rank), tile if cut is None else array.cut_of(tile, cut)

    return by_shard


def _at(op: Any) -> SSAValue | None:
    """The rank whose memory is accessed, if it is given."""
    return getattr(op, "rank", None)


# Reading


def _load(op: access.ReadOp | access.LoadOp, machine: Machine) -> Call:
    array, memory = machine.array(op.array), machine.memory
    locate, note = _locator(op, array, machine), note_read(op, op.array, machine)
    shape = None if isinstance(op, access.ReadOp) else tile_type(op.result).shape
    reaching = _reaching(op, array)

    def load(frame: Frame, indices: Indices, rank: int | None) -> Any:
        where = locate(frame, indices, rank)
        memory.check_load(array, where, frame.task, op)
        note(frame, where)
        if shape is None:
            return int(array.value[where])
        return array.load(where if reaching is None else array.locate(op, frame.rank, reaching(indices), rank), shape)

    def load_from_outside(frame: Frame, indices: Indices, rank: int | None) -> Any:
        tile = load(frame, [_from_zero(index) for index in indices], rank)
        starts = [index.start for index in indices if isinstance(index, Block)]
        for axis, start in enumerate(starts):
            tile = tile if start >= 0 else array.later(tile, axis, -start)
        return tile

    if any(isinstance(index.owner, BlockOp) and index.owner.outside is not None for index in op.indices):
        return Call(load_from_outside, op.indices, _at(op))

    if isinstance(op, access.LoadOp) and op.local is not None:
        return Call(_local_or(load, op, op.local, machine), op.indices, _at(op))
    return Call(load, op.indices, _at(op))


def _from_zero(index: Block | int) -> Block | int:
    """What a block has from the beginning of its dimension on."""
    if isinstance(index, int) or index.start >= 0:
        return index
    return Block(0, max(0, index.length + index.start))


def _reaching(op: access.ReadOp | access.LoadOp, array: Array) -> Callable[[Indices], Indices] | None:
    """The indices of what a load by TMA brings: it does not stop where a block does, but where its dimension does."""
    axes = unread_axes(op) if moves_by_tma(op) else ()
    if not axes:
        return None
    blocks = [place for place, index in enumerate(op.indices) if isinstance(index.type, BlockType)]
    extents = {blocks[axis]: block_type(op.indices[blocks[axis]]).extent for axis in axes}
    sizes = array.place.sizes

    def reach(indices: Indices) -> Indices:
        found = list(indices)
        for place, extent in extents.items():
            block = found[place]
            assert isinstance(block, Block)
            found[place] = Block(block.start, min(extent, sizes[place] - block.start))
        return found

    return reach


def _local_or(
    other: Callable[[Frame, Indices, int | None], Any], op: access.LoadOp, source: SSAValue, machine: Machine
) -> Callable[[Frame, Indices, int | None], Any]:
    """A load of this rank's shard from its own array, and of another rank's shard by `other`."""
    array, shape, note = machine.array(source), tile_type(op.result).shape, note_read(op, source, machine)

    def load(frame: Frame, indices: Indices, rank: int | None) -> Any:
        where = array.locate(op, frame.rank, indices)
        if where[0] != frame.rank:
            return other(frame, indices, rank)
        machine.memory.check_load(array, where, frame.task, op)
        note(frame, where)
        return array.load(where, shape)

    return load


def _gather(op: by_table.GatherOp, machine: Machine) -> Call:
    return _gather_rows(op, machine) if op.of_rows and not moves_by_tma(op) else _gather_along(op, machine)


class _Entries:
    """The entries of the tables of an access, and what each of them names."""

    def __init__(self, op: ByTable, shape: tuple[int, ...]) -> None:
        self._along = op.axes_of_places
        self._tables = {number for number, place in enumerate(op.places) if isinstance(place.type, TileType)}
        self._named = sorted({axis for number in self._tables for axis in self._along[number]})
        self._shape = shape

    def of(self, places: Sequence[Any]) -> Iterator[tuple[list[int | None], list[Block | int]]]:
        """The position of each entry along the axes of the tile, None along the others, and the indices that it names;
        none of an entry that is negative, or lies past the end of a block."""
        given = [_plain(value) if number in self._tables else value for number, value in enumerate(places)]
        for entry in np.ndindex(*(self._shape[axis] for axis in self._named)):
            at = dict(zip(self._named, entry, strict=True))
            found = [self._index(value, number, at) for number, value in enumerate(given)]
            indices = [index for index in found if index is not None and (isinstance(index, Block) or index >= 0)]
            if len(indices) == len(found):
                yield [at.get(axis) for axis in range(len(self._shape))], indices

    def _index(self, value: Any, number: int, at: Mapping[int, int]) -> Block | int | None:
        along = self._along[number]
        if number in self._tables:
            return int(value[tuple(at[axis] for axis in along)])
        if not along or along[0] not in at:
            return value
        inside = at[along[0]]
        return value.start + inside if inside < value.length else None


def _gather_along(op: by_table.GatherOp, machine: Machine) -> Call:
    """Elements that tables name along any dimension, and all of the others' blocks that go along no table."""
    array, memory, note = machine.array(op.array), machine.memory, note_read(op, op.array, machine)
    shape = tile_type(op.result).shape
    entries = _Entries(op, shape)
    brought = boxes(op) if moves_by_tma(op) else None

    def gather(frame: Frame, places: Sequence[Any]) -> Any:
        machine.pause()
        made, named = array.empty(shape), list(entries.of(places))
        for at, indices in named:
            where = array.locate(op, frame.rank, indices)
            memory.check_load(array, where, frame.task, op)
            note(frame, where)
            if brought is None:
                array.put(made, at, where)
        for at, indices in _in_boxes(named, *brought, array) if brought is not None else ():
            array.put(made, at, array.locate(op, frame.rank, indices))
        return made

    return Call(gather, op.places)


def _in_boxes(
    named: Sequence[tuple[list[int | None], list[Block | int]]], rows: int, dim: int, array: Array
) -> Iterator[tuple[list[int | None], list[Block | int]]]:
    """All that boxes bring that begin with some of the rows of a tile, whatever the tables say of the rows behind, and
    wherever they end."""
    for at, indices in named:
        first, place = at[0], indices[dim]
        if first is None or first % rows or not isinstance(place, int):
            continue
        for step in range(min(rows, array.place.sizes[dim] - place)):
            yield [first + step, *at[1:]], [*indices[:dim], place + step, *indices[dim + 1 :]]


def _gather_rows(op: by_table.GatherOp, machine: Machine) -> Call:
    array, memory = machine.array(op.array), machine.memory
    shape, note = tile_type(op.result).shape, note_read(op, op.array, machine)
    pairs = array.place.layout is Layout.Symmetric
    near = machine.array(op.local) if op.local is not None else None
    note_near = note_read(op, op.local, machine) if op.local is not None else note

    def gather(frame: Frame, rows: Any, indices: Indices) -> Any:
        machine.pause()
        made = array.empty(shape)
        for position, entry in enumerate(_plain(rows).tolist()):
            at, row = entry if pairs else (None, entry)
            if row < 0:
                continue
            where = array.locate(op, frame.rank, (row, *indices), at)
            here = near.locate(op, frame.rank, (row, *indices)) if near is not None else None
            source, says = array, note
            if near is not None and here is not None and here[0] == frame.rank:
                where, source, says = here, near, note_near
            memory.check_load(source, where, frame.task, op)
            says(frame, where)
            source.put(made, [position, *[None] * (len(shape) - 1)], where)
        return made

    return Call(gather, op.rows, op.indices)


def _reduce(op: access.ReduceOp, machine: Machine) -> Call:
    array, shape = machine.array(op.array), tile_type(op.result).shape
    locate, check = _locator(op, array, machine), _check_copies(op, array, machine)

    def reduce(frame: Frame, indices: Indices, rank: int | None) -> Any:
        where = locate(frame, indices, rank)
        check(frame, where)
        return array.as_float(array.reduce(where, shape, op.combine))

    return Call(reduce, op.indices, _at(op))


def _check_copies(op: access.ReduceOp | access.AllReduceOp, array: Array, machine: Machine) -> Note:
    note = note_read(op, op.array, machine)

    def check(frame: Frame, where: Where) -> None:
        for copy in range(array.place.copies):
            machine.memory.check_load(array, (copy, *where[1:]), frame.task, op)
            note(frame, (copy, *where[1:]))

    return check


# Writing


def _store(op: access.StoreOp, machine: Machine) -> Call:
    array, memory = machine.array(op.array), machine.memory
    by_shard, note = _by_shard(op, array, machine), note_store(op, op.array, machine)

    def store(frame: Frame, tile: Any, indices: Indices, rank: int | None) -> None:
        for where, piece in by_shard(frame, indices, rank, tile):
            place = where if rank is not None else array.everywhere(where)
            memory.check_store(array, where, place, frame.task, op)
            note(frame, place, piece)
            array.store(place, piece)

    return Call(store, op.tile, op.indices, _at(op))


def _store_add(op: access.StoreAddOp, machine: Machine) -> Call:
    array = machine.array(op.array)
    locate, note = _locator(op, array, machine), note_addition(op, op.array, machine)

    def store_add(frame: Frame, tile: Any, indices: Indices, rank: int | None) -> None:
        where = locate(frame, indices, rank)
        machine.memory.check_addition(array, where, frame.task, op)
        note(frame, where)
        machine.memory.add_later(array, where, tile, frame.task, op)

    return Call(store_add, op.tile, op.indices, _at(op))


def _accumulate(op: access.AccumulateOp | access.AtomicAddOp, machine: Machine) -> Call:
    array = machine.array(op.array)
    add = machine.memory.add_later if isinstance(op, access.AtomicAddOp) else machine.memory.contribute
    by_shard, note = _by_shard(op, array, machine), note_addition(op, op.array, machine)

    def accumulate(frame: Frame, tile: Any, indices: Indices, rank: int | None) -> None:
        for where, piece in by_shard(frame, indices, rank, tile):
            note(frame, array.everywhere(where))
            add(array, array.everywhere(where), piece, frame.task, op)

    return Call(accumulate, op.tile, op.indices, _at(op))


def _scatter_store(op: by_table.ScatterStoreOp, machine: Machine) -> Call:
    array, memory = machine.array(op.array), machine.memory
    entries, note = _Entries(op, tile_type(op.tile).shape), note_store(op, op.array, machine)

    def store(frame: Frame, tile: Any, places: Sequence[Any], rank: int | None) -> None:
        machine.pause()
        for at, indices in entries.of(places):
            where = array.locate(op, frame.rank, indices, rank)
            place, piece = where if rank is not None else array.everywhere(where), array.piece_of(tile, at)
            memory.check_store(array, where, place, frame.task, op)
            note(frame, place, piece)
            array.store(place, piece)

    return Call(store, op.tile, op.places, _at(op))


def _scatter(op: by_table.ScatterAccumulateOp | by_table.AddByTableOp, machine: Machine) -> Call:
    array, memory = machine.array(op.array), machine.memory
    add = memory.add_later if isinstance(op, by_table.AddByTableOp) else memory.contribute
    entries, note = _Entries(op, tile_type(op.tile).shape), note_addition(op, op.array, machine)
    to_what_is_there = isinstance(op, access.StoreAdd)

    def scatter(frame: Frame, tile: Any, places: Sequence[Any], rank: int | None) -> None:
        machine.pause()
        for at, indices in entries.of(places):
            where = array.everywhere(array.locate(op, frame.rank, indices, rank))
            if to_what_is_there:
                memory.check_addition(array, where, frame.task, op)
            note(frame, where)
            add(array, where, array.piece_of(tile, at), frame.task, op)

    return Call(scatter, op.tile, op.places, _at(op))


def _all_reduce(op: access.AllReduceOp, machine: Machine) -> Call:
    array, shape = machine.array(op.array), program.index_shape([index.type for index in op.indices])
    locate, check = _locator(op, array, machine), _check_copies(op, array, machine)
    note = note_store(op, op.array, machine)

    def all_reduce(frame: Frame, indices: Indices, rank: int | None) -> None:
        where = locate(frame, indices, rank)
        check(frame, where)
        total = array.reduce(where, shape, op.combine)
        note(frame, (slice(None), *where[1:]), total)
        machine.memory.note_change(array, (slice(None), *where[1:]), op)
        array.store_everywhere(where, total)

    return Call(all_reduce, op.indices, _at(op))


# Copying


def _copy(op: copies.CopyOp, machine: Machine) -> Call:
    source, target, memory = machine.array(op.source), machine.array(op.target), machine.memory
    there, here = _box(op.source_box, source), _box(op.target_box, target)
    read, written = note_read(op, op.source, machine), note_store(op, op.target, machine)

    def copy(frame: Frame, source_indices: Indices, target_indices: Indices) -> None:
        machine.pause()
        where = source.locate(op, frame.rank, there(source_indices))
        memory.check_load(source, where, frame.task, op)
        read(frame, where)
        values = source.load(where, source.value[where].shape)
        machine.pause()
        where = target.locate(op, frame.rank, here(target_indices))
        memory.check_store(target, where, target.everywhere(where), frame.task, op)
        written(frame, target.everywhere(where), values)
        target.store(target.everywhere(where), values)

    return Call(copy, op.source_indices, op.target_indices)


def _box(along: Iterable[int], array: Array) -> Callable[[Indices], Indices]:
    """What finds the index of each dimension, the whole of it where a box has none."""
    dims, whole = tuple(along), {number: Block(0, size) for number, size in enumerate(array.place.sizes)}
    return lambda indices: tuple({**whole, **dict(zip(dims, indices, strict=True))}.values())


def _plain(tile: Values | Bounded) -> Values:
    return np.asarray(tile.value if isinstance(tile, Bounded) else tile)


ACCESSES: Calls = {
    access.ReadOp: _load,
    access.LoadOp: _load,
    by_table.GatherOp: _gather,
    access.ReduceOp: _reduce,
    access.StoreOp: _store,
    access.StoreAddOp: _store_add,
    access.AccumulateOp: _accumulate,
    access.AtomicAddOp: _accumulate,
    by_table.ScatterStoreOp: _scatter_store,
    by_table.ScatterAccumulateOp: _scatter,
    by_table.ScatterStoreAddOp: _scatter,
    by_table.ScatterAddOp: _scatter,
    access.AllReduceOp: _all_reduce,
    copies.CopyOp: _copy,
}
