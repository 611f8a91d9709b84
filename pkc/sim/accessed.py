"""The last accesses to each box of an array, for each of its copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import Generic, TypeAlias, TypeVar

from pkc.sim.array import Where
from pkc.sim.memory_model import Access

Box: TypeAlias = tuple[tuple[int, int], ...]
"""The first position in each dimension and the one after the last."""

_Numbers: TypeAlias = tuple[int, ...]

_T = TypeVar("_T")


def box_of(where: Where) -> Box:
    """What an access addresses within a copy."""
    return tuple([(i.start, i.stop) if hasattr(i, "start") else (i, i + 1) for i in where[1:]])


def is_empty(box: Box) -> bool:
    """Whether there is no element in a box."""
    return any(first >= end for first, end in box)


class Places:
    """Boxes by their sizes and places: which meet another one is found without a look at all of them.

    A size is rounded up to a power of two. Boxes of one size lie in cells of that size, each in that of its first
    position, so that it reaches into the next one at most.
    """

    def __init__(self) -> None:
        self._sizes: dict[_Numbers, dict[_Numbers, dict[Box, int]]] = {}
        self._count = 0

    def add(self, box: Box) -> None:
        size, cell = _place(box)
        self._count += 1
        self._sizes.setdefault(size, {}).setdefault(cell, {})[box] = self._count

    def remove(self, box: Box) -> None:
        size, cell = _place(box)
        cells = self._sizes[size]
        del cells[cell][box]
        if not cells[cell]:
            del cells[cell]

    def meeting(self, box: Box) -> list[Box]:
        """The boxes that have an element in common with one, in the order in which they came."""
        found: list[tuple[int, Box]] = []
        for size, cells in self._sizes.items():
            around = [_cells(*of, log) for of, log in zip(box, size, strict=True)]
            near = cells if prod(map(len, around)) > len(cells) else product(*around)
            for cell in near:
                found += [(number, other) for other, number in cells.get(cell, {}).items() if _meet(box, other)]
        return [other for _, other in sorted(found)]


def _place(box: Box) -> tuple[_Numbers, _Numbers]:
    """The size of a box, as powers of two, and the cell of its first position."""
    size = tuple([(end - first - 1).bit_length() for first, end in box])
    return size, tuple([first >> log for (first, _), log in zip(box, size, strict=True)])


def _cells(first: int, end: int, log: int) -> range:
    """Where boxes of a size begin that meet the positions from `first` to `end`."""
    return range((first + 1 - (1 << log)) >> log, ((end - 1) >> log) + 1)


class Grid:
    """The boxes by which an array is accessed, as a rule tiles that are equal or disjoint."""

    def __init__(self) -> None:
        self._boxes: set[Box] = set()
        self._places = Places()
        self._disjoint = True

    def has(self, box: Box) -> bool:
        """Whether all boxes so far, with this one, are equal or disjoint."""
        if self._disjoint and box not in self._boxes:
            self._disjoint = not self._places.meeting(box)
            self._boxes.add(box)
            self._places.add(box)
        return self._disjoint


class Boxes(Generic[_T]):
    """An item for each box."""

    def __init__(self, grid: Grid) -> None:
        self.items: dict[Box, _T] = {}
        self._places = Places()
        self._grid = grid

    def put(self, box: Box, item: _T) -> _T:
        """Give a box an item; the item."""
        if box not in self.items:
            self._places.add(box)
        self.items[box] = item
        return item

    def meeting(self, box: Box) -> list[tuple[Box, _T]]:
        """The boxes that have an element in common with one."""
        if self._grid.has(box):
            same = self.items.get(box)
            return [] if same is None else [(box, same)]
        return [(other, self.items[other]) for other in self._places.meeting(box)]

    def drop_within(self, box: Box) -> None:
        """Forget all that lies inside of a box."""
        for other, _ in self.meeting(box):
            if all(first <= a and b <= last for (first, last), (a, b) in zip(box, other, strict=True)):
                del self.items[other]
                self._places.remove(other)


class Copy:
    """The accesses to one copy of an array since its rank began the launch.

    An access is dropped when a later one is ordered after it: what is ordered after the later one is so after both.
    """

    def __init__(self, grid: Grid, entry: Access | None) -> None:
        self.entry = entry
        """What the caller did before the launch; None if everybody knows."""
        self.stores = Boxes[list[Access]](grid)
        """Several stores of the same values to the same box are alternatives: it suffices to be ordered after one."""
        self.sums = Boxes[dict[int, Access]](grid)
        """The last addition of each component."""
        self.reads = Boxes[dict[int, Access]](grid)
        """The last read of each component."""
        self.constant: dict[int, Access] = {}
        """The same for an array that is not written, for all its elements together."""

    def everything(self) -> Iterator[tuple[Box, Access]]:
        """All accesses since the launch began."""
        for box, stores in self.stores.items.items():
            for access in stores:
                yield box, access
        yield from each(self.sums.items.items())
        yield from each(self.reads.items.items())
        yield from (((), access) for access in self.constant.values())

    def store(self, box: Box, access: Access) -> None:
        """Note a store that comes after all that was there."""
        self.reads.drop_within(box)
        self.sums.drop_within(box)
        self.stores.drop_within(box)
        self.stores.put(box, [access])


def note(boxes: Boxes[dict[int, Access]], box: Box, access: Access) -> None:
    """Note a read or an addition."""
    by = boxes.items.get(box)
    if by is None:
        by = boxes.put(box, {})
    by[access.component] = access


def each(found: Iterable[tuple[Box, dict[int, Access]]]) -> Iterator[tuple[Box, Access]]:
    """The accesses one by one."""
    for box, by in found:
        for access in by.values():
            yield box, access


def _meet(a: Box, b: Box) -> bool:
    for (first, end), (start, last) in zip(a, b, strict=True):  # noqa: SIM110  # a generator takes twice as long
        if first >= last or start >= end:
            return False
    return True
