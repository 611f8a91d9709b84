"""Launches that are prepared, and serve again for other tensors of the same shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from pkc.dialect.words import RANKS
from pkc.runtime.arguments import Span
from pkc.runtime.beside import Work
from pkc.runtime.forms import Form
from pkc.runtime.kernel_parameters import KernelParameters
from pkc.runtime.rank import Rank

MOST_PLANS = 256
"""Sets of arguments whose kernel parameters are kept; the oldest goes first."""


class _Fixed(Protocol):
    @property
    def fixed(self) -> Sequence[int]: ...


Prepared = TypeVar("Prepared", bound=_Fixed)


_Pair: TypeAlias = tuple[int, int, int, int, int, int]


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
    """A launch that is prepared, on each rank of this process: for these arrays, and others of the same shapes.

    Arrays are at `pointers`, which a form places; those of the names `fixed` are not moved.
    """

    def __init__(
        self,
        starts: Sequence[Start],
        form: Form,
        pointers: list[int],
        spans: Sequence[Sequence[Span]],
        fixed: Collection[str] = (),
    ) -> None:
        self.starts = starts
        self._form, self._spans = form, spans
        self._pairs: list[_Pair] | None = None
        self._pointers = pointers
        self._moves: Sequence[tuple[int, Callable[[int], None], int]] | None = None
        """What moves an array on a rank: the number of its pointer, a function, and how many bytes to add."""
        # Copies are enqueued with the addresses that they had.
        stay = {*fixed, *[name for start in starts if start.work is not None for name in start.work.arrays]}
        self.fixed = [number for number, (name, _) in enumerate(form.places) if name in stay] if stay else ()
        """The pointers that must be the same."""

    def moved(self, pointers: list[int]) -> bool:
        """Whether the arrays may now be those at `pointers`; if not, they need another plan."""
        before = self._pointers
        if pointers == before:
            return True
        if not before:
            return False
        if self.fixed and any(pointers[number] != before[number] for number in self.fixed):
            return False
        if self._form.lent and self._form.too_low(pointers):
            return False
        if not self._apart(pointers):
            return False
        self._pointers = []  # after an interrupt on the way, nobody knows what is where
        api, context = self._form.mesh.driver.api, self.starts[0].rank.context
        _, current = api.cuCtxGetCurrent()
        # The driver writes tensor maps only within a context, of whatever GPU.
        outside = current != context and not int(current)
        if outside:
            api.cuCtxSetCurrent(context)
        try:
            self._move(before, pointers)
        finally:
            if outside:
                api.cuCtxSetCurrent(current)
        self._pointers = pointers
        return True

    def _move(self, before: Sequence[int], pointers: Sequence[int]) -> None:
        if self._moves is None:
            places, starts = enumerate(self._form.places), self.starts
            self._moves = [
                (number, starts[at].parameters.move(name), shift)
                for number, (name, each) in places
                for at, shift in each
            ]
        for number, move, shift in self._moves:
            pointer = pointers[number]
            if pointer != before[number]:
                move(pointer + shift)

    def _apart(self, pointers: list[int]) -> bool:
        """Whether no array that the kernel writes shares memory with another one."""
        if self._pairs is None:
            self._pairs = list(_pairs(self._form, self._spans, self._pointers))
        for one, first, size, two, other, length in self._pairs:
            begin, start = pointers[one] + first, pointers[two] + other
            if begin < start + length and start < begin + size:
                return False
        return True


def _pairs(form: Form, spans: Sequence[Sequence[Span]], pointers: Sequence[int]) -> Iterator[_Pair]:
    """Arrays of a rank that may not come to share memory when they move: which of the pointers each is at, how many
    bytes behind it, and its bytes."""
    for at, taken in enumerate(spans):
        numbers = [number for number, (_, each) in enumerate(form.places) for rank, _ in each if rank == at]
        for a, b in form.apart:
            (one, size), (two, other), first, second = taken[a], taken[b], numbers[a], numbers[b]
            yield first, one - pointers[first], size, second, two - pointers[second], other


class Plans(Generic[Prepared]):
    """What is prepared, by what tells calls apart. It has the plan's `fixed` pointers; the oldest goes first."""

    def __init__(self) -> None:
        self._kept: dict[object, Prepared] = {}
        self._last: tuple[object, Prepared | None] = None, None
        """What was looked up last: the next call is often the same."""

    def find(self, key: object, pointers: Sequence[int]) -> Prepared | None:
        """What was kept for the key, and for these pointers as far as they are fixed."""
        last, found = self._last
        if key != last:
            found = self._kept.get(key)
            self._last = key, found
        if found is not None and found.fixed:
            return self._kept.get((key, *[pointers[number] for number in found.fixed]))
        return found

    def keep(self, key: object, pointers: Sequence[int], prepared: Prepared) -> None:
        """Keep what is prepared; the oldest goes."""
        keys = [key, (key, *[pointers[number] for number in prepared.fixed])] if prepared.fixed else [key]
        for each in keys:
            while len(self._kept) >= MOST_PLANS:
                del self._kept[next(iter(self._kept))]
            self._kept[each] = prepared
        self._last = None, None

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._last = None, None

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Prepared]:
        return iter(self._kept.values())
