"""Launches that are prepared, and serve again for other tensors of the same shapes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pkc.dialect.words import RANKS
from pkc.runtime.arguments import Span
from pkc.runtime.beside import Work
from pkc.runtime.kernel_parameters import KernelParameters
from pkc.runtime.rank import Rank

Prepared = TypeVar("Prepared")

MOST_PLANS = 256
"""Sets of arguments whose kernel parameters are kept; the oldest goes first."""


_Pair: TypeAlias = tuple[int | None, int, int, int | None, int, int]


@dataclass(slots=True)
class Start:
    """All that a launch on one rank needs, prepared."""

    rank: Rank
    config: Any
    function: Any
    parameters: KernelParameters
    work: Work | None
    """What copy engines do."""
    kernel: str
    dims: Mapping[str, int]

    @property
    def what(self) -> str:
        """The kernel and the sizes, for messages."""
        sizes = ", ".join(f"{dim}={size}" for dim, size in self.dims.items() if dim != RANKS)
        return f"`{self.kernel}` with {sizes}" if sizes else f"`{self.kernel}`"


class Plan:
    """A launch that is prepared, on each rank of this process: for these tensors, and others of the same shapes."""

    def __init__(
        self,
        starts: Sequence[Start],
        places: Sequence[tuple[str, int]],
        pointers: list[int],
        spans: Sequence[Sequence[Span]],
    ) -> None:
        self.starts = starts
        self._places, self._spans = places, spans
        self._pairs: list[_Pair] | None = None
        self._pointers = pointers
        # Copies are enqueued with the addresses that they had.
        copied = {name for start in starts if start.work is not None for name in start.work.arrays}
        self._fixed = not copied.isdisjoint(name for name, _ in places)

    def moved(self, pointers: list[int]) -> bool:
        """Whether the tensors may now be those at `pointers`; if not, they need another plan."""
        if pointers == self._pointers:
            return True
        if self._fixed or not self._apart(pointers):
            return False
        for (name, at), before, pointer in zip(self._places, self._pointers, pointers, strict=True):
            if before != pointer:
                self.starts[at].parameters.move(name, pointer)
        self._pointers = pointers
        return True

    def _apart(self, pointers: list[int]) -> bool:
        """Whether no array that the kernel writes shares memory with another one."""
        if self._pairs is None:
            self._pairs = list(_pairs(self._places, self._spans))
        for one, first, size, two, other, length in self._pairs:
            begin = first if one is None else pointers[one]
            start = other if two is None else pointers[two]
            if begin < start + length and start < begin + size:
                return False
        return True


def _pairs(places: Sequence[tuple[str, int]], spans: Sequence[Sequence[Span]]) -> Iterator[_Pair]:
    """Arrays of a rank that may not come to share memory when tensors move: which of the pointers is the first address,
    the address if none is, and the bytes, of both."""
    numbers = {place: number for number, place in enumerate(places)}
    for at, taken in enumerate(spans):
        for one, two in itertools.combinations(taken, 2):
            pointers = numbers.get((one.name, at)), numbers.get((two.name, at))
            if (one.written or two.written) and pointers != (None, None):
                yield pointers[0], one.first, one.bytes, pointers[1], two.first, two.bytes


def keep(plans: dict[object, Prepared], key: object, prepared: Prepared) -> None:
    """Keep what is prepared for a key; the oldest goes."""
    while len(plans) >= MOST_PLANS:
        del plans[next(iter(plans))]
    plans[key] = prepared
