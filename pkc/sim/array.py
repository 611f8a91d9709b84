"""One array on all ranks: where its elements lie, and how tiles come from and go there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation

from pkc.diagnostics import PkcError
from pkc.dialect.access import AddToArrayOp, LoadOp, ReadOp, StoreOp
from pkc.dialect.blocks import Block, shard_bounds, shard_length, zigzag_halves
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import Binary
from pkc.dialect.numeric import Values, compute_dtype, numpy_dtype, round_to
from pkc.dialect.types import FLOATS, Layout
from pkc.location import span_of
from pkc.semantics.errors import ZEROS, IndexOutOfRange, RankOutOfRange
from pkc.sim import errors

Index: TypeAlias = Block | int
Where: TypeAlias = tuple[Any, ...]


class Cut(NamedTuple):
    """The positions of a tile from `first` to before `stop` along an axis."""

    axis: int
    first: int
    stop: int


POISON_INT = -(2**31) + 0xDEAD
"""What unwritten i32 elements hold; unwritten floats are NaN."""

_POISON = {4: 0x7FC0DEAD, 8: 0x7FF80000_0000DEAD}


def poison(shape: Sequence[int], dtype: np.dtype[Any]) -> Values:
    """An array of unwritten elements; floats are a NaN that no arithmetic gives."""
    if dtype.kind != "f":
        return np.full(shape, POISON_INT, dtype)
    return np.full(shape, _POISON[dtype.itemsize], f"u{dtype.itemsize}").view(dtype)


def is_poison(values: Values) -> Values:
    """Which elements hold what `poison` put there."""
    if values.dtype.kind != "f":
        return np.asarray(values == POISON_INT)
    return np.asarray(values).view(f"u{values.dtype.itemsize}") == _POISON[values.dtype.itemsize]


def within(at: Sequence[int | None], shape: Sequence[int]) -> tuple[int | slice, ...]:
    """The elements of a tile at some positions, and along its other axes the first ones of that shape."""
    extents = iter(shape)
    return tuple(slice(next(extents)) if position is None else position for position in at)


@dataclass(frozen=True)
class Placement:
    """How an array lies in the simulator's memory: `copies` arrays, of which each rank addresses one.

    With `sharded_axis`, each copy has one shard of that dimension. The simulator places arrays as a machine does; the
    reference has one copy of whatever is global. With `zigzag` the positions of dimension `shard` are in zigzag order
    in memory; callers have them in their order.
    """

    name: str
    sizes: tuple[int, ...]
    element: Attribute
    layout: Layout | None
    shard: int | None
    ranks: int
    is_global: bool
    scratch: bool
    zigzag: bool = False
    kept: bool = False
    """Whether the kernel has it between launches too."""
    given: tuple[int, ...] | None = None
    """The sizes that callers see, where these are others; the elements lie as they do there."""

    @property
    def per_rank(self) -> bool:
        """Whether each rank has its own content, so that callers see a leading axis of ranks."""
        return self.layout in (None, Layout.Symmetric)

    @property
    def sharded_axis(self) -> int | None:
        return None if self.is_global else self.shard

    @property
    def copies(self) -> int:
        return self.ranks if self.per_rank or not self.is_global else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the memory: copies first."""
        local = list(self.sizes)
        if self.sharded_axis is not None:
            local[self.sharded_axis] = shard_length(local[self.sharded_axis], self.ranks)
        return (self.copies, *local)


class Array:
    """The memory of one array in f32 or i32; values of narrower types are held exactly."""

    real: type[np.floating[Any]] = np.float32

    def __init__(self, place: Placement, content: Values | None, *, summed: bool, frozen: bool) -> None:
        self.place = place
        self.name = place.name
        self.frozen = frozen
        self.dtype = compute_dtype(place.element, self.real)
        self.is_float = place.element in FLOATS
        self._sharded_axis = place.sharded_axis
        self._shard_length = 0 if place.sharded_axis is None else place.shape[place.sharded_axis + 1]
        self._positions = _in_zigzag(place.sizes[place.shard or 0], place.ranks) if place.zigzag else []
        """Of a dimension in zigzag order the position of each element in memory, shard after shard."""
        self._copy_per_rank = place.copies > 1 and place.sharded_axis is None
        self._is_joined = place.given not in (None, place.sizes)
        self.value = self._initial(content, summed)

    def _initial(self, content: Values | None, summed: bool) -> Values:
        place = self.place
        if summed:
            return np.zeros(place.shape, self.dtype)
        if content is None:
            return poison(place.shape, self.dtype)
        values = content.astype(self.dtype)
        if self._is_joined:
            return values.reshape(place.shape)
        if place.zigzag:
            values = np.take(values, self._positions, place.shard)
        if place.per_rank:
            return values
        if place.sharded_axis is not None:
            return self._in_shards(values, place.sharded_axis)
        every = np.broadcast_to(values, place.shape)
        return every if self.frozen else every.copy()

    def _in_shards(self, values: Values, axis: int) -> Values:
        made = poison(self.place.shape, self.dtype)
        for rank in range(self.place.ranks):
            first, last = shard_bounds(self.place.sizes[axis], self.place.ranks, rank)
            piece = values[(*(slice(None),) * axis, slice(first, last))]
            made[(rank, *(slice(None),) * axis, slice(0, last - first))] = piece
        return made

    # Launches

    def begin_launch(self, rank: int, content: Values | None) -> None:
        """Set what a rank's memory holds when it launches a kernel again: new content, or poison, unless it is kept."""
        if self.place.kept:
            return
        fresh = poison(self.place.shape, self.dtype) if content is None else self._initial(content, summed=False)
        self.value[rank] = fresh[rank]

    # Addresses

    def locate(self, op: Operation, rank: int, indices: Sequence[Index], at: int | None = None) -> Where:
        """Where the elements lie that a rank addresses: the copy, then a position or slice for each dimension."""
        place = self.place
        if at is not None and not 0 <= at < place.ranks:
            raise PkcError(RankOutOfRange(span_of(op.location), at, rank, place.ranks - 1))
        copy = (rank if at is None else at) if self._copy_per_rank else 0
        where: list[Any] = [copy]
        for axis, index in enumerate(indices):
            if isinstance(index, int):
                if not 0 <= index < place.sizes[axis]:
                    raise self.out_of_range(op, rank, index, axis)
                if axis == self._sharded_axis:
                    where[0], index = divmod(index, self._shard_length)
                where.append(index)
                continue
            start, length = index
            if axis == self._sharded_axis and length:
                where[0], start = divmod(start, self._shard_length)
                if start + length > self._shard_length:
                    raise self._on_two_ranks(op, rank, index, axis)
            where.append(slice(start, start + length))
        return tuple(where)

    def shards(self, indices: Sequence[Index]) -> list[tuple[Sequence[Index], Cut | None]]:
        """The shards that a tile reaches into: for each the indices there, and the cut of the tile that goes there.

        The cut is None, for the whole tile, if a single rank owns it.
        """
        sharded_axis = self._sharded_axis
        block = None if sharded_axis is None else indices[sharded_axis]
        if sharded_axis is None or not isinstance(block, Block) or block.length == 0:
            return [(indices, None)]
        start, stop = block.start, block.start + block.length
        first, last = start // self._shard_length, (stop - 1) // self._shard_length
        if first == last:
            return [(indices, None)]
        axis = sum(isinstance(index, Block) for index in indices[:sharded_axis])
        found: list[tuple[Sequence[Index], Cut | None]] = []
        for rank in range(first, last + 1):
            begin, end = max(start, rank * self._shard_length), min(stop, (rank + 1) * self._shard_length)
            within = [*indices[:sharded_axis], Block(begin, end - begin), *indices[sharded_axis + 1 :]]
            found.append((within, Cut(axis, begin - start, end - start)))
        return found

    def everywhere(self, where: Where) -> Where:
        """Where a write goes: to every copy of a replicated array."""
        return (slice(None), *where[1:]) if self.place.layout is Layout.Replicate else where

    def element(self, where: Where, position: Sequence[int]) -> str:
        """The global coordinates of an element of a view, in words."""
        coordinates: list[int] = []
        left = list(position)
        for axis, index in enumerate(where[1:]):
            first = where[0] * self._shard_length if axis == self._sharded_axis else 0
            within: int = index.start + left.pop(0) if hasattr(index, "start") else index
            zigzag = self.place.zigzag and axis == self.place.shard
            coordinates.append(self._positions[first + within] if zigzag else first + within)
        if self._is_joined and self.place.given is not None:
            coordinates[-1:] = divmod(coordinates[-1], self.place.given[-1])
        text = f"[{', '.join(map(str, coordinates))}]"
        return f"{text} of rank {where[0]}" if self.place.per_rank else text

    def out_of_range(self, op: Operation, rank: int, index: int, axis: int) -> PkcError:
        last = self.place.sizes[axis] - 1
        outside = ZEROS if isinstance(op, LoadOp | ReadOp | StoreOp | AddToArrayOp) else ""
        return PkcError(IndexOutOfRange(span_of(op.location), index, axis, self.name, rank, last, outside))

    def _on_two_ranks(self, op: Operation, rank: int, block: Block, axis: int) -> PkcError:
        last = block.start + block.length - 1
        span = span_of(op.location)
        return PkcError(errors.TileOnTwoRanks(span, self.name, block.start, last, axis, rank, self._shard_length))

    # Tiles

    def load(self, where: Where, shape: tuple[int, ...]) -> Any:
        """The elements there, zero up to the shape of the tile."""
        return padded(self.value[where], shape, copy=not self.frozen)

    def later(self, tile: Any, axis: int, count: int) -> Any:
        """A tile whose elements come some places later along an axis, behind zeros; the last ones are left out."""
        made, before = np.zeros_like(tile), (slice(None),) * axis
        made[(*before, slice(count, None))] = tile[(*before, slice(0, max(0, tile.shape[axis] - count)))]
        return made

    def empty(self, shape: tuple[int, ...]) -> Any:
        """A tile of zeros, to be filled by `put`."""
        return np.zeros(shape, self.dtype)

    def put(self, tile: Any, at: Sequence[int | None], where: Where) -> None:
        """Copy elements to a place in a tile: `at` has a position for each axis, or None where they go along it."""
        view = self.value[where]
        tile[within(at, view.shape)] = view

    def piece_of(self, tile: Any, at: Sequence[int | None]) -> Any:
        """The elements of a tile at a place: `at` has a position for each axis, or None where they go along it."""
        return tile[tuple(slice(None) if position is None else position for position in at)]

    def cut_of(self, tile: Any, cut: Cut) -> Any:
        """Some positions of a tile along an axis."""
        return tile[(*(slice(None),) * cut.axis, slice(cut.first, cut.stop))]

    def as_float(self, tile: Any) -> Any:
        """A tile of this array's elements as a tile of floats."""
        return tile.astype(self.real)

    def store(self, where: Where, tile: Any) -> None:
        """Write the positions of a tile that exist there."""
        self.value[where] = fitted(tile, self.value[where].shape, where)

    def add(self, where: Where, tile: Any) -> None:
        """Add in f32, without rounding to the array's type."""
        self.value[where] += fitted(tile, self.value[where].shape, where)

    def add_rounded(self, where: Where, tile: Any) -> None:
        """Add, and round to the array's type at once."""
        self.add(where, tile)
        if self.is_float:
            self.value[where] = round_to(self.value[where], self.place.element)

    def reduce(self, where: Where, shape: tuple[int, ...], combine: type[Binary]) -> Any:
        """The elements there of all copies, combined in rank order."""
        function = OPERATIONS[combine].value
        total = self.value[(0, *where[1:])].copy()
        for copy in range(1, self.place.copies):
            total = function(total, self.value[(copy, *where[1:])])
        return padded(total, shape, copy=False)

    def exactly(self, values: Values) -> Any:
        """A tile of known elements."""
        return values.astype(self.dtype)

    def sum_of(self, tiles: Sequence[Any], shape: tuple[int, ...]) -> Any:
        """Tiles of this array's elements, added in f32 in their order and rounded once; zeros if there are none."""
        total = np.zeros(shape, self.dtype)
        for tile in tiles:
            total = total + tile
        return round_to(total, self.place.element) if self.is_float else total

    def store_everywhere(self, where: Where, tile: Any) -> None:
        """Round a tile and write it to all copies."""
        for copy in range(self.place.copies):
            self.store((copy, *where[1:]), round_to(tile, self.place.element) if self.is_float else tile)

    def finish_sums(self) -> None:
        """Round what a phase has added."""
        if self.is_float:
            self.value[...] = round_to(self.value, self.place.element)

    def round_copy(self, copy: int) -> None:
        """Round what has been added to one copy."""
        if self.is_float:
            self.value[copy] = round_to(self.value[copy], self.place.element)

    # Results

    def export(self) -> Values:
        """The array as callers see it, in its true type."""
        return self.gathered(self.value).astype(numpy_dtype(self.place.element))

    def address(self, element: tuple[int, ...]) -> tuple[str, int]:
        """The array's name, and the number in memory of an element, given as callers see it."""
        return self.name, int(self.gathered(np.arange(self.value.size).reshape(self.value.shape))[element])

    def gathered(self, memory: Values) -> Values:
        """From memory to the shape that callers see."""
        place = self.place
        if self._is_joined:
            assert place.given is not None
            return memory.reshape(place.copies, *place.given)
        if place.per_rank:
            return memory
        whole = memory[0] if place.sharded_axis is None else self._joined(memory, place.sharded_axis)
        return np.take(whole, np.argsort(self._positions), place.shard) if place.zigzag else whole

    def _joined(self, memory: Values, axis: int) -> Values:
        place = self.place
        bounds = [shard_bounds(place.sizes[axis], place.ranks, rank) for rank in range(place.ranks)]
        before = (slice(None),) * axis
        pieces = [memory[(rank, *before, slice(0, last - first))] for rank, (first, last) in enumerate(bounds)]
        return np.concatenate(pieces, axis=axis)


def _in_zigzag(n: int, ranks: int) -> list[int]:
    halves = [half for rank in range(ranks) for half in zigzag_halves(n, ranks, rank)]
    return [position for start, length in halves for position in range(start, start + length)]


def padded(view: Values, shape: tuple[int, ...], *, copy: bool) -> Values:
    """A view brought to the shape of its tile with zeros."""
    if view.shape == shape:
        return view.copy() if copy else view
    made = np.zeros(shape, view.dtype)
    made[tuple(map(slice, view.shape))] = view
    return made


def fitted(tile: Values, shape: tuple[int, ...], where: Where) -> Values:
    """The positions of a tile that fit into a place of this shape; a place on all copies has one axis more."""
    wanted = shape[1:] if isinstance(where[0], slice) else shape
    return tile if tile.shape == wanted else tile[tuple(map(slice, wanted))]


def reader(op: Operation, array: Array) -> Callable[[int, int | None, tuple[int, ...]], int]:
    """What reads an integer of an array, by the rank of the reader, the rank that has it, and its indices."""

    def read(rank: int, at: int | None, indices: tuple[int, ...]) -> int:
        return int(array.value[array.locate(op, rank, indices, at)])

    return read
