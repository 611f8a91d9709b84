"""Runs without arithmetic: instead of its elements, a tile is a number that stands for how it was computed.

What a kernel computes depends on the order of its coroutines only through what its loads read. So after one run with
elements, others need no arithmetic: if each output comes from the same inputs in the same way, it has the same bits.
Memory is cut where any access of the first run begins or ends; what lies between two cuts is one element here.
Integer arrays keep their elements, as they decide what is accessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from xdsl.ir import Operation

from pkc.dialect.elementwise import Binary
from pkc.dialect.numeric import Values
from pkc.dialect.tile import tile_type
from pkc.dialect.types import FLOATS, INTEGERS, Layout
from pkc.semantics import tile_ops
from pkc.sim.array import Array, Cut, Index, Placement, Where, poison
from pkc.sim.backing import Backing


class NeedsElements(Exception):
    """Raised by a run that cannot go on without the elements of tiles."""


class Term:
    """A tile, by how it was computed: equal terms are equal tiles."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    def __hash__(self) -> int:
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and other.key == self.key


def tile_term(op: Operation) -> Callable[..., Any]:
    """The semantics of a tile operation: a term for floats and what is computed from them, elements for integers."""
    of = tile_type(op.results[0]).element_type
    exact = None if of in FLOATS else tile_ops.value(op)
    properties = sorted((name, str(attribute)) for name, attribute in op.properties.items())
    name = _digest(repr((op.name, properties, [str(operand.type) for operand in op.operands], str(op.results[0].type))))

    def term(*operands: Any) -> Any:
        if exact is not None and not any(isinstance(operand, Term) for operand in operands):
            return exact(*operands)
        if of in INTEGERS:
            raise NeedsElements
        return Term(hash((name, *[_hashable(operand) for operand in operands])))

    return term


def _hashable(operand: Any) -> Any:
    return _digest(np.ascontiguousarray(operand).tobytes()) if hasattr(operand, "tobytes") else operand


def _digest(data: bytes | str) -> int:
    content = data.encode() if isinstance(data, str) else data
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


@cache
def _places(shape: tuple[int, ...]) -> Values:
    """A number for each place in a tile."""
    return np.random.default_rng(len(shape)).integers(-(2**62), 2**62, shape)


class Cuts:
    """Where accesses to the arrays of a run begin and end, for each axis."""

    def __init__(self) -> None:
        self._found: dict[str, list[set[int]]] = {}

    def add(self, array: Array, where: Where) -> None:
        """An access."""
        axes = self._found.setdefault(array.name, [set() for _ in where[1:]])
        for axis, index in zip(axes, where[1:], strict=True):
            axis.update((index.start, index.stop) if hasattr(index, "start") else (index, index + 1))

    def of(self, name: str, sizes: Sequence[int]) -> list[dict[int, int]]:
        """For each axis the cuts with their numbers; the first is 0, and the last the axis' size."""
        found = self._found.get(name, [set[int]() for _ in sizes])
        cut = ({0, size} | {at for at in axis if at <= size} for axis, size in zip(found, sizes, strict=True))
        return [{at: number for number, at in enumerate(sorted(axis))} for axis in cut]


class CutArray(Array):
    """An array that records where its accesses begin and end."""

    def __init__(self, place: Placement, content: Values | None, *, summed: bool, frozen: bool, cuts: Cuts) -> None:
        super().__init__(place, content, summed=summed, frozen=frozen)
        self._cuts = cuts

    def locate(self, op: Operation, rank: int, indices: Sequence[Index], at: int | None = None) -> Where:
        where = super().locate(op, rank, indices, at)
        self._cuts.add(self, where)
        return where


class TermArray(Array):
    """The memory of an array of floats: a number for each piece between two cuts."""

    def __init__(self, place: Placement, content: Values | None, *, summed: bool, frozen: bool, cuts: Cuts) -> None:
        self._cuts = cuts.of(place.name, place.shape[1:])
        self._launches = [0] * place.copies
        super().__init__(place, content, summed=summed, frozen=frozen)

    def _initial(self, content: Values | None, summed: bool) -> Values:
        shape = (self.place.shape[0], *[len(cuts) - 1 for cuts in self._cuts])
        if summed:
            return np.zeros(shape, np.int64)
        if content is None:
            return poison(shape, np.dtype(np.int64))
        return np.stack([self._content(copy) for copy in range(shape[0])])

    def _content(self, copy: int) -> Values:
        """What one copy holds at the beginning of its current launch."""
        shape = tuple(len(cuts) - 1 for cuts in self._cuts)
        same = 0 if self.place.layout is Layout.Replicate else copy
        return _places(shape) ^ np.int64(hash(_digest(f"{self.name} {same} {self._launches[copy]}")))

    def begin_launch(self, rank: int, content: Values | None) -> None:
        if self.place.kept:
            return
        self._launches[rank] += 1
        fresh = poison(self.value.shape[1:], self.value.dtype) if content is None else self._content(rank)
        self.value[rank] = fresh

    # Addresses

    def locate(self, op: Operation, rank: int, indices: Sequence[Index], at: int | None = None) -> Where:
        where = super().locate(op, rank, indices, at)
        try:
            return (where[0], *map(_numbered, self._cuts, where[1:]))
        except KeyError:
            raise NeedsElements from None

    def element(self, where: Where, position: Sequence[int]) -> str:
        left = list(position)
        first: list[int] = []
        for cuts, index in zip(self._cuts, where[1:], strict=False):
            number: int = index.start + left.pop(0) if hasattr(index, "start") else index
            first.append(list(cuts)[number])
        return super().element((where[0], *first), ())

    # Tiles

    def load(self, where: Where, shape: tuple[int, ...]) -> Term:
        return Term(hash((shape, *np.atleast_1d(self.value[where]).ravel().tolist())))

    def later(self, tile: Term, axis: int, count: int) -> Term:
        return Term(hash((tile.key, axis, count)))

    def empty(self, shape: tuple[int, ...]) -> Term:
        return Term(0)

    def put(self, tile: Term, at: Sequence[int | None], where: Where) -> None:
        tile.key = hash((tile.key, *at, *np.atleast_1d(self.value[where]).ravel().tolist()))

    def piece_of(self, tile: Term, at: Sequence[int | None]) -> Term:
        return Term(hash((tile.key, *at)))

    def cut_of(self, tile: Term, cut: Cut) -> Term:
        return Term(hash((tile.key, *cut)))

    def as_float(self, tile: Term) -> Term:
        return tile

    def store(self, where: Where, tile: Term) -> None:
        self.value[where] = self._pieces(where, tile)

    def add(self, where: Where, tile: Term) -> None:
        # The factor is odd, so that what is there stays distinct from what is added.
        self.value[where] = self.value[where] * np.int64(0x5851F42D4C957F2D) ^ self._pieces(where, tile)

    def add_rounded(self, where: Where, tile: Term) -> None:
        self.add(where, tile)

    def reduce(self, where: Where, shape: tuple[int, ...], combine: type[Binary]) -> Term:
        copies = (self.load((copy, *where[1:]), shape) for copy in range(self.place.copies))
        return Term(hash((combine.name, *copies)))

    def sum_of(self, tiles: Sequence[Term], shape: tuple[int, ...]) -> Term:
        return Term(hash(("sum", shape, *tiles)))

    def store_everywhere(self, where: Where, tile: Term) -> None:
        for copy in range(self.place.copies):
            self.store((copy, *where[1:]), tile)

    def finish_sums(self) -> None:
        """Nothing to do: terms are not rounded."""

    def round_copy(self, copy: int) -> None:
        """Nothing to do: terms are not rounded."""

    def _pieces(self, where: Where, tile: Any) -> Values:
        key = tile.key if isinstance(tile, Term) else hash(_hashable(tile))
        shape = self.value[where].shape
        of_copy = shape[1:] if isinstance(where[0], slice) else shape
        return _places(of_copy) ^ np.int64(key)


def _numbered(cuts: Mapping[int, int], index: Any) -> Any:
    if not hasattr(index, "start"):
        return cuts[index]
    if index.start == index.stop:
        return slice(0, 0)
    return slice(cuts[index.start], cuts[index.stop])


def with_terms(cuts: Cuts) -> Backing:
    """Terms for floats, with memory cut as an earlier run has recorded."""

    def make(place: Placement, content: Values | None, *, summed: bool, frozen: bool) -> Array:
        if place.element not in FLOATS:
            return Array(place, content, summed=summed, frozen=frozen)
        return TermArray(place, content, summed=summed, frozen=frozen, cuts=cuts)

    return Backing(make, tile_term)


def with_cuts(cuts: Cuts) -> Backing:
    """Elements; records where accesses begin and end."""
    return Backing(partial(CutArray, cuts=cuts), tile_ops.value)
