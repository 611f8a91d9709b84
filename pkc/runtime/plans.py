"""Launches that are prepared, and serve again for other tensors of the same shapes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pkc.runtime.arguments import Span
from pkc.runtime.beside import Work
from pkc.runtime.kernel_parameters import KernelParameters
from pkc.runtime.mesh import Rank

Prepared = TypeVar("Prepared")

MOST_PLANS = 256
"""Sets of arguments whose kernel parameters are kept; the oldest goes first."""


@dataclass(frozen=True)
class Start:
    """All that a launch on one rank needs, prepared."""

    rank: Rank
    config: Any
    function: Any
    parameters: KernelParameters
    work: Work | None
    """What copy engines do."""


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
        numbers = {place: number for number, place in enumerate(places)}
        self._spans = [[(span, numbers.get((span.name, at))) for span in taken] for at, taken in enumerate(spans)]
        """By rank of this process, the memory of each array, and which of the pointers is its first address, if any."""
        self._places = [(starts[at].parameters, name) for name, at in places]
        self._pointers = pointers
        # Copies are enqueued with the addresses that they had.
        copied = {name for start in starts if start.work is not None for name in start.work.arrays}
        self._fixed = not copied.isdisjoint(name for _, name in self._places)

    def moved(self, pointers: list[int]) -> bool:
        """Whether the tensors may now be those at `pointers`; if not, they need another plan."""
        if pointers == self._pointers:
            return True
        if self._fixed or not self._apart(pointers):
            return False
        for (parameters, name), before, pointer in zip(self._places, self._pointers, pointers, strict=True):
            if before != pointer:
                parameters.move(name, pointer)
        self._pointers = pointers
        return True

    def _apart(self, pointers: list[int]) -> bool:
        """Whether no array that the kernel writes shares memory with another one."""
        for spans in self._spans:
            taken = [(span.first if at is None else pointers[at], span.bytes, span.written) for span, at in spans]
            for (first, size, written), (other, length, also) in itertools.combinations(taken, 2):
                if (written or also) and first < other + length and other < first + size:
                    return False
        return True


def keep(plans: dict[object, Prepared], key: object, prepared: Prepared) -> None:
    """Keep what is prepared for a key; the oldest goes."""
    while len(plans) >= MOST_PLANS:
        del plans[next(iter(plans))]
    plans[key] = prepared
